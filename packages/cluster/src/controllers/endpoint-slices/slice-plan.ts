import { jsonEqual } from '@thv/kernel/json'
import { controllerRef, type EndpointSlice, type Service, services } from '@thv/kube'
import { type Endpoint, type EndpointGroup, portKey, type SlicePort } from './desired-endpoints.ts'

export const SERVICE_NAME = 'kubernetes.io/service-name'
export const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by'
export const MANAGER = 'endpointslice-controller.k8s.io'
const HEADLESS = 'service.kubernetes.io/headless'
const RESERVED: ReadonlySet<string> = new Set([SERVICE_NAME, MANAGED_BY, HEADLESS])
const MAX_ENDPOINTS = 100

export interface SlicePlan {
  readonly create: readonly EndpointSlice[]
  readonly update: readonly EndpointSlice[]
  readonly remove: readonly EndpointSlice[]
}

/** A slice as it shall be. Without an `old` it is new. */
interface Draft {
  readonly old: EndpointSlice | undefined
  readonly ports: readonly SlicePort[]
  endpoints: Endpoint[]
}

/**
 * The fewest writes that make the slices say what they shall. An endpoint stays in its slice; new ones go into slices that change anyway,
 * or all into one that has room, or into new slices.
 */
export function planSlices(service: Service, existing: readonly EndpointSlice[], desired: ReadonlyMap<string, EndpointGroup>): SlicePlan {
  const slices = existing.filter(({ addressType, metadata }) => addressType === 'IPv4' && metadata.deletionTimestamp === undefined)
  const drafts: Draft[] = []
  for (const [key, group] of desired) {
    const own = slices.filter((slice) => portKey(slice.ports ?? []) === key)
    drafts.push(...fillGroup(group, own))
  }
  // Shows that the Service has been seen, and has no endpoint.
  if (drafts.length === 0) drafts.push({ old: undefined, ports: [], endpoints: [] })

  const kept = new Set(drafts.map(({ old }) => old))
  const spare = existing.filter((slice) => !kept.has(slice) && slice.metadata.deletionTimestamp === undefined)
  const create: EndpointSlice[] = []
  const update: EndpointSlice[] = []
  for (const draft of drafts) {
    // A slice that would go can become one that is missing.
    const old = draft.old ?? takeSpare(spare)
    const slice = sliceOf(service, { ...draft, old })
    if (old === undefined) create.push(slice)
    else if (!isSame(slice, old)) update.push(slice)
  }
  return { create, update, remove: spare }
}

function takeSpare(spare: EndpointSlice[]): EndpointSlice | undefined {
  const at = spare.findIndex(({ addressType }) => addressType === 'IPv4')
  return at < 0 ? undefined : spare.splice(at, 1)[0]
}

function fillGroup({ ports, endpoints }: EndpointGroup, slices: readonly EndpointSlice[]): Draft[] {
  const missing = new Map(endpoints.map((endpoint) => [identity(endpoint), endpoint]))
  const drafts = slices.map((old): Draft => {
    const kept = (old.endpoints ?? []).flatMap((current) => {
      const wanted = missing.get(identity(current as Partial<Endpoint>))
      if (wanted !== undefined) missing.delete(identity(wanted))
      return wanted === undefined ? [] : [wanted]
    })
    return { old, ports, endpoints: kept }
  })
  const rest = [...missing.values()]
  const changes = ({ old, endpoints: now }: Draft) => !jsonEqual(now, old?.endpoints ?? [])
  for (const draft of drafts.filter(changes)) draft.endpoints.push(...rest.splice(0, Math.max(0, MAX_ENDPOINTS - draft.endpoints.length)))
  const roomy = drafts
    .filter((draft) => rest.length > 0 && draft.endpoints.length + rest.length <= MAX_ENDPOINTS)
    .sort((a, b) => b.endpoints.length - a.endpoints.length)[0]
  if (roomy !== undefined) roomy.endpoints.push(...rest.splice(0))
  while (rest.length > 0) drafts.push({ old: undefined, ports, endpoints: rest.splice(0, MAX_ENDPOINTS) })
  return drafts.filter((draft) => draft.endpoints.length > 0)
}

function identity({ addresses, targetRef }: Partial<Endpoint>): string {
  return JSON.stringify([addresses, targetRef?.uid])
}

function sliceOf(service: Service, { old, ports, endpoints }: Draft): EndpointSlice {
  const { name, namespace = '' } = service.metadata
  const base = old?.metadata ?? { generateName: `${name}-`, namespace, name: '' }
  return {
    metadata: { ...base, labels: labelsOf(service), ownerReferences: [controllerRef(service, services)] },
    addressType: 'IPv4',
    endpoints: endpoints as EndpointSlice['endpoints'] & object,
    ports: [...ports],
  }
}

/** The Service's own, and those by which slices are found. */
function labelsOf({ metadata, spec }: Service): Record<string, string> {
  const own = Object.entries(metadata.labels ?? {}).filter(([key]) => !RESERVED.has(key))
  return {
    ...Object.fromEntries(own),
    ...(spec?.clusterIP === 'None' ? { [HEADLESS]: '' } : {}),
    [SERVICE_NAME]: metadata.name,
    [MANAGED_BY]: MANAGER,
  }
}

function isSame(slice: EndpointSlice, old: EndpointSlice): boolean {
  return (
    jsonEqual(slice.endpoints, old.endpoints ?? []) &&
    portKey(slice.ports ?? []) === portKey(old.ports ?? []) &&
    jsonEqual(slice.metadata.labels, old.metadata.labels) &&
    jsonEqual(slice.metadata.ownerReferences, old.metadata.ownerReferences)
  )
}
