import { hash } from 'node:crypto'
import type { ExportedEntry } from '@thv/catalog/discover/entry/exported-entry'

const digests = new WeakMap<ExportedEntry, string>()

/** Another for every other entry. Computed once for each. */
export function entryDigest(entry: ExportedEntry): string {
  const known = digests.get(entry)
  if (known !== undefined) return known
  const { name, version, text, status, statusMessage, publishedAt, claims } = entry
  const facts = JSON.stringify([name, version, status ?? '', statusMessage ?? '', publishedAt ?? '', claims ?? null])
  const digest = hash('sha256', `${facts}\n${text}`, 'base64url')
  digests.set(entry, digest)
  return digest
}
