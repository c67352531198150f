import type { KubeClient, ResourceType } from '@thv/kube'

/** One kind in one version, as discovery lists it. */
export interface ServedResource extends ResourceType {
  readonly verbs: readonly string[]
  /** Whether this is the version in which the server wants the kind to be read. */
  readonly preferred: boolean
}

const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'

interface GroupDiscovery {
  readonly metadata?: { readonly name?: string }
  readonly versions?: readonly { readonly version: string; readonly resources?: readonly ResourceDiscovery[] }[]
}

interface ResourceDiscovery {
  readonly resource: string
  readonly responseKind?: { readonly kind?: string }
  readonly scope?: string
  readonly verbs?: readonly string[]
}

/** Everything the server serves now, subresources apart. */
export async function listServedResources(client: KubeClient, signal: AbortSignal): Promise<ServedResource[]> {
  const documents = await Promise.all(['/api', '/apis'].map((path) => client.raw('GET', path, { accept: AGGREGATED, signal })))
  const groups = documents.flatMap((document) => (document.json() as { items?: GroupDiscovery[] }).items ?? [])
  return groups.flatMap(resourcesOf)
}

/** Versions come in the server's order of preference; the first that has a kind is the kind's own. */
function resourcesOf({ metadata, versions = [] }: GroupDiscovery): ServedResource[] {
  const group = metadata?.name ?? ''
  const seen = new Set<string>()
  return versions.flatMap(({ version, resources = [] }) =>
    resources.map(({ resource: plural, responseKind, scope, verbs = [] }): ServedResource => {
      const preferred = !seen.has(plural)
      seen.add(plural)
      return { group, version, kind: responseKind?.kind ?? '', plural, namespaced: scope === 'Namespaced', verbs, preferred }
    }),
  )
}
