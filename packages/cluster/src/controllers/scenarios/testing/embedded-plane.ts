import { systemClock } from '@thv/kernel/clock'
import { bearerToken, createEventRecorder, createKubeClient, createSharedCaches, type KubeClient } from '@thv/kube'
import { startApiServer } from '../../../apiserver/api-server.ts'
import type { ControllerEnv, ControllerFactory } from '../../controller-env.ts'

export interface EmbeddedPlane extends AsyncDisposable {
  readonly env: ControllerEnv
  readonly errors: unknown[]
  /** Requests of the controllers, by verb; watches and lists of caches apart. */
  readonly requests: Map<string, number>
}

/** An API server in memory with some controllers. */
export async function startEmbeddedPlane(controllers: readonly ControllerFactory[]): Promise<EmbeddedPlane> {
  const errors: unknown[] = []
  const onError = (error: unknown) => errors.push(error)
  const server = await startApiServer({ onError })
  const client = createKubeClient({ server: server.url, tls: { ca: server.caPem }, auth: bearerToken(server.adminToken) })
  const requests = new Map<string, number>()
  const counted = countCalls(client, requests)
  const caches = createSharedCaches(client, { onError })
  const stop = new AbortController()
  const events = createEventRecorder({ client, controller: 'thv.test/plane', instance: 'test', signal: stop.signal, onError })
  const env: ControllerEnv = { client: counted, caches, events, clock: systemClock, onError }
  const running = controllers.map((factory) => factory(env).run(stop.signal))
  await caches.waitForSync()
  return {
    env,
    errors,
    requests,
    [Symbol.asyncDispose]: async () => {
      stop.abort()
      await Promise.all(running)
      await caches.close()
      await client.close()
      await server.close()
    },
  }
}

const COUNTED: ReadonlySet<string> = new Set(['get', 'tryGet', 'listAll', 'create', 'update', 'patch', 'delete', 'deleteCollection', 'raw'])

function countCalls(client: KubeClient, requests: Map<string, number>): KubeClient {
  return new Proxy(client, {
    get(target, name, receiver) {
      const member: unknown = Reflect.get(target, name, receiver)
      if (typeof member !== 'function' || typeof name !== 'string' || !COUNTED.has(name)) return member
      return (...args: unknown[]) => {
        requests.set(name, (requests.get(name) ?? 0) + 1)
        return Reflect.apply(member, target, args) as unknown
      }
    },
  })
}
