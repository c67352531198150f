import { systemClock } from '@thv/kernel/clock'
import {
  bearerToken,
  createEventRecorder,
  createKubeClient,
  createSharedCaches,
  type KubeClient,
  type KubeObject,
  namespaces,
  type ReflectorClient,
  type ResourceType,
  serviceAccounts,
} from '@thv/kube'
import { type EmbeddedApiServer, startApiServer } from '../../../../apiserver/api-server.ts'
import type { ControllerEnv } from '../../../controller-env.ts'
import { deploymentController } from '../../../deployment/deployment-controller.ts'
import { replicaSetController } from '../../../replicaset/replica-set-controller.ts'
import { statefulSetController } from '../../../statefulset/stateful-set-controller.ts'
import type { StageOptions } from './stage.ts'

/** Our API server and our workload controllers, with whatever stands between them. */
export interface OurPlane extends AsyncDisposable {
  readonly server: EmbeddedApiServer
  readonly client: KubeClient
  /** Unexpected errors. */
  readonly errors: readonly unknown[]
  /** A new one, with all that a scenario needs. */
  stage(namespace: string): Promise<StageOptions>
  /** As if the process had ended and begun again. */
  restartControllers(): Promise<void>
}

export interface PlaneOptions {
  /** Client for the writes of controllers. */
  readonly writes?: (client: KubeClient) => KubeClient
  /** Client for the reads of caches. */
  readonly reads?: (client: KubeClient) => ReflectorClient
}

export async function startOurPlane(options: PlaneOptions = {}): Promise<OurPlane> {
  const errors: unknown[] = []
  const onError = (error: unknown) => errors.push(error)
  const server = await startApiServer({ onError })
  const connection = { server: server.url, auth: bearerToken(server.adminToken), tls: { ca: server.caPem } }
  const client = createKubeClient(connection)
  let controllers = await startWorkloadControllers(client, options, onError)
  return {
    server,
    client,
    errors,
    async stage(namespace) {
      await client.create(namespaces, { metadata: { name: namespace } })
      await client.create(serviceAccounts, { metadata: { name: 'default', namespace } })
      return { client, namespace, list: async (type) => stored(server, type, namespace) }
    },
    async restartControllers() {
      await controllers.stop()
      controllers = await startWorkloadControllers(client, options, onError)
    },
    async [Symbol.asyncDispose]() {
      await controllers.stop()
      await client.close()
      await server.close()
    },
  }
}

/** Straight from the store: looking often must not slow down what is looked at. */
function stored<T extends KubeObject>({ store }: EmbeddedApiServer, { group, plural }: ResourceType<T>, namespace: string): T[] {
  const page = store.list({ type: group === '' ? plural : `${plural}.${group}`, namespace })
  return page === 'expired' ? [] : page.objects.map(({ body }) => body as unknown as T)
}

async function startWorkloadControllers(client: KubeClient, { writes, reads }: PlaneOptions, onError: (error: unknown) => void) {
  const stop = new AbortController()
  const caches = createSharedCaches(reads?.(client) ?? client, { onError })
  const env: ControllerEnv = {
    client: writes?.(client) ?? client,
    caches,
    events: createEventRecorder({
      client,
      controller: 'toolhive.stacklok.dev/workloads',
      instance: 'test',
      signal: stop.signal,
      onError,
      rate: { perSecond: 1_000, burst: 1_000 },
    }),
    clock: systemClock,
    onError,
  }
  const running = [deploymentController, replicaSetController, statefulSetController].map((make) => make(env).run(stop.signal))
  await caches.waitForSync()
  return {
    async stop() {
      stop.abort()
      await Promise.all(running)
      await caches.close()
    },
  }
}
