import { type Clock, systemClock } from '@thv/kernel/clock'
import {
  type EndpointSlice,
  endpointSlices,
  formatKey,
  keyOf,
  type ReadonlyStore,
  type Service,
  type SharedCaches,
  services,
} from '@thv/kube'
import type { ClaimedNetwork } from './claim-network.ts'
import { type ClusterName, readClusterName } from './cluster-names.ts'
import { LoadBalancer } from './load-balancer.ts'
import { affinityMsOf, type Backend, backendsOf, type EndpointFilter, endpointFilter, endpointsIn, slicesOf } from './service-endpoints.ts'

export interface NameQuestion {
  readonly host: string
  readonly port: number
  /** Of the caller. */
  readonly namespace?: string | undefined
  /** The caller's address, for Services whose clients stay with their pod. */
  readonly from?: string | undefined
}

/** As it goes over the wire; an empty one: not a name of this cluster. */
export interface NameAnswer {
  readonly addresses?: readonly Backend[]
  readonly sticky?: boolean
  readonly alias?: string
  readonly refused?: string
  readonly missing?: string
}

export interface NameService {
  answer(question: NameQuestion): NameAnswer
  close(): void
}

export interface NameServiceOptions {
  readonly caches: SharedCaches
  readonly network: Pick<ClaimedNetwork, 'mode' | 'podRange'>
  readonly clusterDomain?: string | undefined
  readonly clock?: Clock | undefined
}

/** More are never tried by a caller. */
const MAX_ADDRESSES = 8

/** Cluster DNS and kube-proxy together: from a name and a port to ready pods. Wait for the caches before asking. */
export function createNameService(options: NameServiceOptions): NameService {
  const { caches, clock = systemClock, clusterDomain: domain = 'cluster.local' } = options
  const known = caches.of(services)
  const slices: ReadonlyStore<EndpointSlice> = caches.of(endpointSlices).store
  const accepts: EndpointFilter = endpointFilter(options.network)
  /** By Service and port. */
  const balancers = new Map<string, Map<number, LoadBalancer>>()
  const unsubscribe = known.addHandler((event) => {
    if (known.store.get(keyOf(event.object)) === undefined) balancers.delete(formatKey(keyOf(event.object)))
  })

  function answerFor(service: Service, name: ClusterName, { port, from = '' }: NameQuestion): NameAnswer {
    const { spec } = service
    const label = `Service ${name.namespace}/${name.service}`
    if (spec?.type === 'ExternalName') return { alias: String(spec['externalName'] ?? '') }
    const mine = slicesOf(slices, keyOf(service))
    if (name.pod !== undefined || spec?.clusterIP === 'None') {
      const endpoints = endpointsIn(mine, accepts).filter(({ endpoint }) => name.pod === undefined || endpoint['hostname'] === name.pod)
      const addresses = [...new Set(endpoints.map(({ address }) => address))].map((address) => ({ address, port }))
      if (addresses.length > 0) return { addresses: addresses.slice(0, MAX_ADDRESSES) }
      return {
        refused: name.pod === undefined ? `no pod behind ${label} is ready` : `pod ${name.pod} of ${label} is not ready or not there`,
      }
    }
    const servicePort = spec?.ports?.find((one) => one.port === port && (one.protocol ?? 'TCP') === 'TCP')
    if (servicePort === undefined) return { refused: `${label} has no TCP port ${port}; it has ${portsOf(service)}` }
    const balancer = balancerOf(service, port)
    const affinityMs = affinityMsOf(service)
    balancer.set(backendsOf(servicePort, mine, accepts), affinityMs)
    const addresses = balancer.candidates(from).slice(0, MAX_ADDRESSES)
    const [first] = addresses
    if (first === undefined) return { refused: `no pod behind ${label} is ready` }
    balancer.keep(from, first)
    return affinityMs === undefined ? { addresses } : { addresses, sticky: true }
  }

  function balancerOf(service: Service, port: number): LoadBalancer {
    const key = formatKey(keyOf(service))
    const ports = balancers.get(key) ?? new Map<number, LoadBalancer>()
    balancers.set(key, ports)
    const balancer = ports.get(port) ?? new LoadBalancer(clock)
    ports.set(port, balancer)
    return balancer
  }

  return {
    answer(question) {
      const { host, namespace } = question
      const { candidates, certain } = readClusterName(host, { domain, ...(namespace === undefined ? {} : { namespace }) })
      for (const name of candidates) {
        const service = known.store.get({ namespace: name.namespace, name: name.service })
        if (service !== undefined) return answerFor(service, name, question)
      }
      return certain ? { missing: `there is no Service with the name ${host} in the cluster` } : {}
    },
    close: unsubscribe,
  }
}

function portsOf({ spec }: Service): string {
  return (spec?.ports ?? []).map(({ port }) => port).join(', ') || 'none'
}
