import type { JsonObject } from '../../catalog-entry.ts'
import type { RemoteType } from '../objects/mcp-resource.ts'
import type { ObjectRef } from '../objects/object-ref.ts'

/** A remote of an entry, and the object that caused it. */
export interface ExportedRemote {
  readonly type: RemoteType
  readonly url: string
  /** The resource itself for a direct URL, else the HTTPRoute. */
  readonly origin: ObjectRef
  /** Name of the Gateway, of a route only. */
  readonly gateway?: string
}

/** Below `_meta`: the resources of an entry and the origin of each remote. */
export const exportMetaKey = 'dev.stacklok.toolhive/export'

export interface ExportMeta {
  readonly resources: readonly ObjectRef[]
  readonly remotes: readonly ExportedRemote[]
  readonly clusterName?: string | undefined
}

export function exportMeta({ resources, remotes, clusterName }: ExportMeta): JsonObject {
  return {
    ...(clusterName === undefined ? {} : { cluster: clusterName }),
    resources: resources.map(({ kind, namespace, name }) => ({ kind, namespace, name })),
    remotes: remotes.map(({ url, origin, gateway }) => ({
      url,
      origin: { kind: origin.kind, namespace: origin.namespace, name: origin.name },
      ...(gateway === undefined ? {} : { gateway }),
    })),
  }
}
