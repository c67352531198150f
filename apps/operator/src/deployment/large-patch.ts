import type { KubeObject } from '@thv/kube'

/* Large ConfigMaps are changed by a JSON merge patch (RFC 7396), which must name what goes. */

type Texts = Readonly<Record<string, string>>
type WithData = KubeObject & { readonly data?: Texts; readonly binaryData?: Texts }

/** Prefix of the operator's own annotations. */
const OWN = 'toolhive.stacklok.dev/'

/** Whether a live ConfigMap has data that are not wanted. */
export function hasMoreData(live: WithData, wanted: WithData): boolean {
  return Object.keys(live.binaryData ?? {}).length > 0 || namesBeyond(live.data, wanted.data).length > 0
}

/**
 * Makes the data of `live` those of `wanted`, and sets its metadata. Labels, annotations and owners of others stay. With the uid of `live`: another
 * object of the name is not touched. Pure.
 */
export function patchOf(wanted: WithData, live: WithData): object {
  const { labels, annotations = {}, ownerReferences = [] } = wanted.metadata
  const stale = namesBeyond(live.metadata.annotations, annotations).filter((name) => name.startsWith(OWN))
  const own = new Set(ownerReferences.map(({ uid }) => uid))
  const others = (live.metadata.ownerReferences ?? []).filter(({ uid }) => !own.has(uid))
  return {
    metadata: {
      uid: live.metadata.uid,
      labels,
      annotations: { ...nulls(stale), ...annotations },
      ownerReferences: [...others, ...ownerReferences],
    },
    data: { ...nulls(namesBeyond(live.data, wanted.data)), ...wanted.data },
    ...(live.binaryData !== undefined && { binaryData: null }),
  }
}

function namesBeyond(live: Texts = {}, wanted: Texts = {}): string[] {
  return Object.keys(live).filter((name) => !Object.hasOwn(wanted, name))
}

function nulls(names: readonly string[]): Record<string, null> {
  return Object.fromEntries(names.map((name) => [name, null]))
}
