import type { Json, JsonObject } from '../../catalog-entry.ts'
import { isJsonObject, member } from '../../json-guard.ts'
import { compareCodePoints } from '../../text.ts'
import { ExportAnnotation } from '../objects/annotations.ts'
import type { ExportOptions } from '../objects/export-options.ts'
import { ExportReason, type ExportWarning, exportWarning } from '../objects/export-warning.ts'
import { annotatedDescription } from './description.ts'
import type { ExportedEntry } from './exported-entry.ts'
import { type ExportedRemote, exportMeta, exportMetaKey } from './exported-remote.ts'
import type { KnownEntry, KnownServers } from './known-servers.ts'
import { type ResourceEvaluation, withoutDoubles } from './resource-evaluation.ts'

/** A resource that runs the image of a known version. */
export interface KnownResource {
  readonly evaluation: ResourceEvaluation
  readonly version: string
}

export interface CopiedEntries {
  readonly entries: readonly ExportedEntry[]
  readonly warnings: readonly ExportWarning[]
}

/**
 * A known server with the remotes of the resources that run it. The copy stands before its origin and hides its whole name, so it holds
 * all versions, each with the claims of its origin.
 */
export function copiedEntries(
  name: string,
  resources: readonly KnownResource[],
  { known, options }: { readonly known: KnownServers; readonly options: ExportOptions },
): CopiedEntries {
  const sorted = resources.toSorted((a, b) => byPlace(a.evaluation, b.evaluation))
  const warnings = sorted.flatMap(({ evaluation: { resource } }) =>
    resource.annotations[ExportAnnotation.claims] === undefined
      ? []
      : [
          exportWarning(
            ExportReason.ClaimsIgnored,
            { kind: resource.kind, namespace: resource.namespace, name: resource.name },
            `a source lists its image, and the claims of that entry count, not ${ExportAnnotation.claims}`,
          ),
        ],
  )
  const entries = known.versions(name).map((origin) => {
    const running = sorted.filter(({ version }) => version === origin.version).map(({ evaluation }) => evaluation)
    return running.length === 0 ? origin : withRemotes(origin, running, options)
  })
  return { entries, warnings }
}

function withRemotes(origin: KnownEntry, running: readonly ResourceEvaluation[], options: ExportOptions): ExportedEntry {
  const document = JSON.parse(origin.text) as JsonObject
  const listed = member(document, 'remotes')
  const remotes = Array.isArray(listed) ? listed : []
  const added = withoutDoubles(running.flatMap((evaluation) => evaluation.remotes))
  const fresh = added.filter((remote) => !remotes.some((other) => isSame(other, remote)))
  const override =
    options.mode === 'server'
      ? running.map(({ resource }) => annotatedDescription(resource.annotations)?.text).find((text) => text !== undefined)
      : undefined
  const meta = member(document, '_meta')
  const resources = running.map(({ resource: { kind, namespace, name } }) => ({ kind, namespace, name }))
  const copy = {
    ...document,
    ...(override === undefined ? {} : { description: override }),
    remotes: [...remotes, ...fresh.map(({ type, url }) => ({ type, url }))],
    _meta: {
      ...(isJsonObject(meta) ? meta : {}),
      [exportMetaKey]: exportMeta({ resources, remotes: added, clusterName: options.clusterName }),
    },
  }
  return { ...origin, text: JSON.stringify(copy) }
}

function isSame(remote: Json, { type, url }: ExportedRemote): boolean {
  return isJsonObject(remote) && member(remote, 'type') === type && member(remote, 'url') === url
}

export function byPlace({ resource: a }: ResourceEvaluation, { resource: b }: ResourceEvaluation): number {
  return compareCodePoints(a.namespace, b.namespace) || compareCodePoints(a.name, b.name) || compareCodePoints(a.kind, b.kind)
}
