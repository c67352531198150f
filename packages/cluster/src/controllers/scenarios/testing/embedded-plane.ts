import { systemClock } from '@thv/kernel/clock'
import { bearerToken, createEventRecorder, createKubeClient, createSharedCaches } from '@thv/kube'
import { startApiServer } from '../../../apiserver/api-server.ts'
import type { ControllerEnv, ControllerFactory } from '../../controller-env.ts'

export interface EmbeddedPlane extends AsyncDisposable {
  readonly env: ControllerEnv
  readonly errors: unknown[]
}

/** An API server in memory with some controllers. */
export async function startEmbeddedPlane(controllers: readonly ControllerFactory[]): Promise<EmbeddedPlane> {
  const errors: unknown[] = []
  const onError = (error: unknown) => errors.push(error)
  const server = await startApiServer({ onError })
  const client = createKubeClient({ server: server.url, tls: { ca: server.caPem }, auth: bearerToken(server.adminToken) })
  const caches = createSharedCaches(client, { onError })
  const stop = new AbortController()
  const events = createEventRecorder({ client, controller: 'thv.test/plane', instance: 'test', signal: stop.signal, onError })
  const env: ControllerEnv = { client, caches, events, clock: systemClock, onError }
  const running = controllers.map((factory) => factory(env).run(stop.signal))
  await caches.waitForSync()
  return {
    env,
    errors,
    [Symbol.asyncDispose]: async () => {
      stop.abort()
      await Promise.all(running)
      await caches.close()
      await client.close()
      await server.close()
    },
  }
}
