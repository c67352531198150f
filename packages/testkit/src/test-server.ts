import { type ApiServerOptions, startApiServer } from './cluster/api-server.ts'
import type { TestServer } from './cluster/server-handle.ts'
import { sharedCluster } from './cluster/test-cluster.ts'
import { startEmbeddedServer } from './embedded/embedded-server.ts'

export type { TestServer } from './cluster/server-handle.ts'

/** A private API server without controllers, of the plane that this run is about. Ours has no watch cache to switch off. */
export function startTestServer(options: Pick<ApiServerOptions, 'uncachedResources'> = {}): Promise<TestServer> {
  return sharedCluster().plane === 'embedded' ? startEmbeddedServer() : startApiServer(options)
}
