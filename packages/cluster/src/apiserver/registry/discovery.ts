import { apiVersionOf, type ServedKind } from '../objects/served-kind.ts'
import type { KindRegistry } from './kind-registry.ts'

const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']
const CUSTOM_VERBS = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch']
const SUBRESOURCE_VERBS = ['get', 'patch', 'update']

/** The media type of the aggregated form; kubectl asks for it once, and caches the answer. */
export const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'

export function wantsAggregated(accept: string): boolean {
  return accept.split(',').some((range) => {
    const parts = range.split(';').map((part) => part.trim())
    return parts.includes('g=apidiscovery.k8s.io') && parts.includes('v=v2') && parts.includes('as=APIGroupDiscoveryList')
  })
}

/** The answer to a path of discovery, or undefined when it is none, or of a group that is not there. */
export function discoveryDocument(registry: KindRegistry, path: string, address: string): object | undefined {
  const parts = path.split('/').filter((part) => part !== '')
  const groups = groupsOf(registry)
  if (parts.length === 1 && parts[0] === 'api')
    return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: address }] }
  if (parts.length === 1 && parts[0] === 'apis')
    return {
      kind: 'APIGroupList',
      apiVersion: 'v1',
      groups: groups.filter(([group]) => group !== '').map(([group, versions]) => groupObject(group, versions)),
    }
  if (parts.length === 2 && parts[0] === 'apis') {
    const found = groups.find(([group]) => group === parts[1] && group !== '')
    return found ? { kind: 'APIGroup', apiVersion: 'v1', ...groupObject(...found) } : undefined
  }
  const [group, version] =
    parts[0] === 'api' && parts.length === 2 ? ['', parts[1]] : parts.length === 3 && parts[0] === 'apis' ? [parts[1], parts[2]] : []
  const kinds = groups.find(([name]) => name === group)?.[1].get(version ?? '')
  if (kinds === undefined || group === undefined || version === undefined) return undefined
  const resources = kinds.flatMap((kind) => [resourceObject(kind), ...subresources(kind).map((sub) => subresourceObject(kind, sub))])
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: apiVersionOf({ group, version }), resources }
}

export function aggregatedDiscovery(registry: KindRegistry, root: 'api' | 'apis'): object {
  const items = groupsOf(registry)
    .filter(([group]) => (group === '') === (root === 'api'))
    .map(([group, versions]) => ({
      metadata: group === '' ? { creationTimestamp: null } : { name: group, creationTimestamp: null },
      versions: [...versions].map(([version, kinds]) => ({ version, freshness: 'Current', resources: kinds.map(aggregatedResource) })),
    }))
  return { kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2', metadata: {}, items }
}

/** Groups in the order in which they came, versions with the most stable first. */
export function groupsOf(registry: KindRegistry): [string, Map<string, ServedKind[]>][] {
  const groups = new Map<string, Map<string, ServedKind[]>>()
  for (const kind of registry.all()) {
    const versions = groups.get(kind.group) ?? new Map<string, ServedKind[]>()
    groups.set(kind.group, versions)
    versions.set(kind.version, [...(versions.get(kind.version) ?? []), kind])
  }
  return [...groups].map(([group, versions]) => [group, new Map([...versions].sort(([a], [b]) => compareVersions(a, b)))])
}

/** v2, v1, v1beta2, v1beta1, v1alpha1, and then the rest by name: the order of priority that Kubernetes gives versions. */
function compareVersions(a: string, b: string): number {
  const [left, right] = [rank(a), rank(b)]
  for (const [index, value] of left.entries()) if (value !== right[index]) return (right[index] ?? 0) - value
  return a < b ? -1 : 1
}

function rank(version: string): number[] {
  const match = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version)
  if (match === null) return [0, 0, 0]
  const stability = match[2] === undefined ? 3 : match[2] === 'beta' ? 2 : 1
  return [stability, Number(match[1]), Number(match[3] ?? 0)]
}

function groupObject(name: string, versions: Map<string, ServedKind[]>): object {
  const list = [...versions.keys()].map((version) => ({ groupVersion: `${name}/${version}`, version }))
  return { name, versions: list, preferredVersion: list[0] }
}

function resourceObject(kind: ServedKind): object {
  return {
    name: kind.plural,
    singularName: kind.singular,
    namespaced: kind.namespaced,
    kind: kind.kind,
    verbs: verbsOf(kind),
    ...(kind.shortNames.length > 0 ? { shortNames: kind.shortNames } : {}),
    ...(kind.categories.length > 0 ? { categories: kind.categories } : {}),
  }
}

/** Namespaces go one by one: too much would go with them. */
function verbsOf({ custom, type }: ServedKind): readonly string[] {
  if (custom) return CUSTOM_VERBS
  return type === 'namespaces' ? VERBS.filter((verb) => verb !== 'deletecollection') : VERBS
}

interface Subresource {
  readonly name: string
  readonly response: { readonly group: string; readonly version: string; readonly kind: string }
  readonly verbs?: readonly string[]
}

/** Of kinds that have more of them than their own status and scale. */
const MORE_SUBRESOURCES: Readonly<Record<string, readonly Subresource[]>> = {
  pods: [
    { name: 'attach', response: { group: '', version: 'v1', kind: 'PodAttachOptions' }, verbs: ['create', 'get'] },
    { name: 'log', response: { group: '', version: 'v1', kind: 'Pod' }, verbs: ['get'] },
  ],
  serviceaccounts: [
    { name: 'token', response: { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' }, verbs: ['create'] },
  ],
}

function subresources(kind: ServedKind): Subresource[] {
  const own = { group: kind.group, version: kind.version, kind: kind.kind }
  return [
    ...(MORE_SUBRESOURCES[kind.type] ?? []),
    ...(kind.status ? [{ name: 'status', response: own }] : []),
    ...(kind.scale ? [{ name: 'scale', response: { group: 'autoscaling', version: 'v1', kind: 'Scale' } }] : []),
  ]
}

function subresourceObject(kind: ServedKind, { name, response, verbs = SUBRESOURCE_VERBS }: Subresource): object {
  const foreign = response.group === kind.group ? {} : { group: response.group, version: response.version }
  return {
    name: `${kind.plural}/${name}`,
    singularName: '',
    namespaced: kind.namespaced,
    ...foreign,
    kind: response.kind,
    verbs,
  }
}

function aggregatedResource(kind: ServedKind): object {
  const below = subresources(kind).map(({ name, response, verbs = SUBRESOURCE_VERBS }) => ({
    subresource: name,
    responseKind: response,
    verbs,
  }))
  return {
    resource: kind.plural,
    responseKind: { group: kind.group, version: kind.version, kind: kind.kind },
    scope: kind.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: kind.singular,
    verbs: verbsOf(kind),
    ...(kind.shortNames.length > 0 ? { shortNames: kind.shortNames } : {}),
    ...(kind.categories.length > 0 ? { categories: kind.categories } : {}),
    ...(below.length > 0 ? { subresources: below } : {}),
  }
}
