import { systemClock } from '@thv/kernel/clock'
import {
  bearerToken,
  createEventRecorder,
  createKubeClient,
  createSharedCaches,
  type EndpointSlice,
  type EventRecorder,
  endpointSlices,
  type KubeClient,
  type Service,
  type SharedCaches,
  services,
} from '@thv/kube'
import { startApiServer } from '../../../apiserver/api-server.ts'

/** An API server in memory and what a part of the node is given. */
export interface TestCluster {
  readonly client: KubeClient
  readonly caches: SharedCaches
  readonly events: EventRecorder
  /** Creates or replaces it. */
  service(name: string, spec: NonNullable<Service['spec']>): Promise<Service>
  /** The endpoints of one Service port, each `address:port`; `!` before it: not ready. */
  endpoints(
    service: string,
    endpoints: readonly string[],
    options?: { readonly port?: string; readonly hostnames?: readonly string[] },
  ): Promise<void>
  close(): Promise<void>
}

export async function startTestCluster(options: { readonly serviceRange?: string } = {}): Promise<TestCluster> {
  const server = await startApiServer(options)
  const client = createKubeClient({ server: server.url, tls: { ca: server.caPem }, auth: bearerToken(server.adminToken) })
  const caches = createSharedCaches(client)
  const stop = new AbortController()
  const events = createEventRecorder({ client, controller: 'toolhive.stacklok.dev/test', instance: 'test', signal: stop.signal })
  return {
    client,
    caches,
    events,
    service: (name, spec) => client.apply(services, serviceObject(name, spec), { fieldManager: 'test', force: true }),
    async endpoints(service, endpoints, { port = '', hostnames = [] } = {}) {
      const byPort = Map.groupBy(endpoints.entries(), ([, text]) => Number(text.split(':')[1]))
      const wanted = [...byPort].map(([number, entries]) =>
        sliceObject({ service, port, number, entries: entries.map(([i, text]) => ({ text, hostname: hostnames[i] })) }),
      )
      const keep = new Set(wanted.map(({ metadata }) => metadata.name))
      const { items } = await client.list(endpointSlices, { namespace: 'default' })
      for (const { metadata } of items) {
        if (!metadata.name.startsWith(`${service}-${port}-`) || keep.has(metadata.name)) continue
        await client.delete(endpointSlices, { namespace: 'default', name: metadata.name })
      }
      for (const slice of wanted) await client.apply(endpointSlices, slice, { fieldManager: 'test', force: true })
    },
    async close() {
      await events.flush(AbortSignal.timeout(2_000))
      stop.abort()
      await caches.close()
      await client.close()
      await server.close()
    },
  }
}

export const clock = systemClock

function serviceObject(name: string, spec: NonNullable<Service['spec']>): Service {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: 'default' }, spec }
}

interface SliceInput {
  readonly service: string
  readonly port: string
  readonly number: number
  readonly entries: readonly { readonly text: string; readonly hostname: string | undefined }[]
}

function sliceObject({ service, port, number, entries }: SliceInput): EndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${service}-${port}-${number}`, namespace: 'default', labels: { 'kubernetes.io/service-name': service } },
    addressType: 'IPv4',
    endpoints: entries.map(({ text, hostname }) => ({
      addresses: [text.replace('!', '').split(':')[0] ?? ''],
      conditions: { ready: !text.startsWith('!') },
      targetRef: { kind: 'Pod', name: hostname ?? 'some-pod', namespace: 'default' },
      ...(hostname === undefined ? {} : { hostname }),
    })),
    ports: [{ name: port, port: number, protocol: 'TCP' }],
  }
}
