import type { UnknownObject } from '@thv/kernel/json'
import type { EntryStatus } from '../../catalog-entry.ts'
import { packageImages } from '../../images/document-images.ts'
import { type ImageReference, isSameImage, parseImageReference } from '../../images/image-reference.ts'
import type { Claims } from '../../sources/fetch/source-config.ts'
import { compareCodePoints } from '../../text.ts'
import { compareVersions } from '../../version-order.ts'
import { GENERATED_NAMESPACE } from './server-names.ts'

/** One version of one server that another source lists. */
export interface KnownEntry {
  readonly name: string
  readonly version: string
  /** The document as JSON. */
  readonly text: string
  readonly tags: readonly string[]
  /** Those that decide who sees it: its own, or those of its source. */
  readonly claims?: Claims
  readonly status?: EntryStatus
  readonly statusMessage?: string
  readonly publishedAt?: string
  readonly updatedAt?: string
}

/** Servers of the sources that stand beside the cluster, by the images they run. */
export interface KnownServers {
  /** The version that runs this image: of the first source, then of the lowest name, then the newest. */
  find(image: string): KnownEntry | undefined
  /** All versions of that name, in the order of the source. */
  versions(name: string): readonly KnownEntry[]
}

export const noKnownServers: KnownServers = { find: () => undefined, versions: () => [] }

interface Match {
  readonly source: number
  readonly entry: KnownEntry
  readonly text: string
  readonly reference: ImageReference
}

/** `sources` in the order in which registries list them; a name of an earlier source hides the same name of later ones. */
export function knownServers(sources: readonly Iterable<KnownEntry>[]): KnownServers {
  const byName = new Map<string, { source: number; entries: KnownEntry[] }>()
  const byReference = new Map<string, Match[]>()
  for (const [source, entries] of sources.entries()) {
    for (const entry of entries) {
      if (entry.name.startsWith(`${GENERATED_NAMESPACE}/`)) continue
      const named = byName.get(entry.name) ?? { source, entries: [] }
      if (named.source !== source) continue
      named.entries.push(entry)
      byName.set(entry.name, named)
      for (const text of imagesOf(entry.text)) {
        const reference = parseImageReference(text)
        if (reference === undefined) continue
        const matches = byReference.get(reference.tagged) ?? []
        matches.push({ source, entry, text, reference })
        byReference.set(reference.tagged, matches)
      }
    }
  }
  for (const matches of byReference.values()) matches.sort(order)
  return {
    versions: (name) => byName.get(name)?.entries ?? [],
    find(image) {
      const reference = parseImageReference(image)
      const matches = reference === undefined ? [] : (byReference.get(reference.tagged) ?? [])
      const exact = matches.find(({ text }) => text === image)
      return (exact ?? matches.find((match) => reference !== undefined && isSameImage(match.reference, reference)))?.entry
    },
  }
}

function order(a: Match, b: Match): number {
  return a.source - b.source || compareCodePoints(a.entry.name, b.entry.name) || compareVersions(b.entry.version, a.entry.version)
}

/** Identifiers of the `oci` packages of a document. */
function imagesOf(text: string): readonly string[] {
  return text.includes('"oci"') ? packageImages(JSON.parse(text) as UnknownObject) : []
}
