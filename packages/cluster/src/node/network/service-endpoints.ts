import { classifyIp } from '@thv/http/ip-address'
import type { EndpointSlice, ObjectKey, ReadonlyStore, Service } from '@thv/kube'
import type { ClaimedNetwork } from './claim-network.ts'
import { isInRange, parseIpv4Range } from './ipv4-range.ts'

/** Where a connection may go. */
export interface Backend {
  readonly address: string
  readonly port: number
}

export type ServicePort = NonNullable<NonNullable<Service['spec']>['ports']>[number]
type Endpoint = NonNullable<EndpointSlice['endpoints']>[number]

const SERVICE_LABEL = 'kubernetes.io/service-name'

/** The Service that a slice belongs to. */
export function serviceOfSlice(slice: EndpointSlice): readonly ObjectKey[] {
  const name = slice.metadata.labels?.[SERVICE_LABEL]
  const { namespace } = slice.metadata
  return name === undefined || namespace === undefined ? [] : [{ namespace, name }]
}

export function slicesOf(store: ReadonlyStore<EndpointSlice>, { namespace, name }: ObjectKey): readonly EndpointSlice[] {
  return store.list({ namespace }).filter((slice) => slice.metadata.labels?.[SERVICE_LABEL] === name)
}

/** Whether an endpoint may be called at all. */
export type EndpointFilter = (endpoint: Endpoint, address: string) => boolean

/**
 * On loopback only pods are endpoints: a slice that somebody wrote must not open the other servers of this machine. In mode `single`
 * all share one address, so there the reference to the pod must do.
 */
export function endpointFilter({ mode, podRange }: Pick<ClaimedNetwork, 'mode' | 'podRange'>): EndpointFilter {
  const pods = parseIpv4Range(podRange)
  return (endpoint, address) => {
    const is = classifyIp(address)
    if (is === 'private' || is === 'public') return true
    if (is !== 'loopback') return false
    return mode === 'single' ? address === '127.0.0.1' && isRecordOfPod(endpoint['targetRef']) : isInRange(address, pods)
  }
}

/** Ready ones; if there is none, those that still serve while they end, as kube-proxy does it. */
export function endpointsIn(
  slices: readonly EndpointSlice[],
  accepts: EndpointFilter,
): readonly { endpoint: Endpoint; address: string; slice: EndpointSlice }[] {
  const all = slices.flatMap((slice) =>
    (slice.endpoints ?? []).flatMap((endpoint) => {
      const address = endpoint.addresses[0] // the others are of no meaning, says the API
      return address !== undefined && accepts(endpoint, address) ? [{ endpoint, address, slice }] : []
    }),
  )
  const ready = all.filter(({ endpoint }) => endpoint.conditions?.ready !== false)
  return ready.length > 0 ? ready : all.filter(({ endpoint }) => endpoint.conditions?.serving === true && endpoint.conditions.terminating)
}

export function backendsOf(port: Pick<ServicePort, 'name'>, slices: readonly EndpointSlice[], accepts: EndpointFilter): readonly Backend[] {
  const found = new Map<string, Backend>()
  for (const { address, slice } of endpointsIn(slices, accepts)) {
    for (const { name = '', port: number, protocol = 'TCP' } of slice.ports ?? []) {
      if (number === undefined || protocol !== 'TCP' || name !== (port.name ?? '')) continue
      found.set(backendKey({ address, port: number }), { address, port: number })
    }
  }
  return [...found.values()]
}

export function backendKey({ address, port }: Backend): string {
  return `${address} ${port}`
}

/** How long a client stays with its pod; undefined: not at all. */
export function affinityMsOf(service: Service): number | undefined {
  if (service.spec?.['sessionAffinity'] !== 'ClientIP') return undefined
  const config = service.spec['sessionAffinityConfig'] as { clientIP?: { timeoutSeconds?: number } } | undefined
  return (config?.clientIP?.timeoutSeconds ?? 10_800) * 1_000
}

function isRecordOfPod(reference: unknown): boolean {
  return typeof reference === 'object' && reference !== null && 'kind' in reference && reference.kind === 'Pod'
}
