import { type ApiServerOptions, startApiServer } from './api-server.ts'
import { startEmbeddedServer } from './embedded/embedded-server.ts'
import type { TestServer } from './server-handle.ts'
import { sharedCluster } from './test-cluster.ts'

export type { TestServer } from './server-handle.ts'

/** A private API server without controllers, of the plane that this run is about. Ours has no watch cache to switch off. */
export function startTestServer(options: Pick<ApiServerOptions, 'uncachedResources'> = {}): Promise<TestServer> {
  return sharedCluster().plane === 'embedded' ? startEmbeddedServer() : startApiServer(options)
}
