import { hash } from 'node:crypto'
import { createFilter } from '@thv/catalog/filters'
import type { FetchedEntry, FetchProblem, FetchResult } from '@thv/catalog/sources/fetch/registry-handler'
import type { SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import { ThvError } from '@thv/kernel/errors'
import type { Fingerprint, SyncedEntry } from '../store/registry-store.ts'

export interface EntryChanges {
  readonly upserts: readonly SyncedEntry[]
  readonly gone: readonly { readonly name: string; readonly version: string }[]
  readonly problems: readonly FetchProblem[]
}

export interface ChangesInput {
  readonly source: SourceConfig
  readonly fetched: Extract<FetchResult, { kind: 'full' | 'delta' }>
  /** Of the whole source; of the names in a delta at least. */
  readonly fingerprints: AsyncIterable<readonly Fingerprint[]>
  readonly pause: () => Promise<void>
}

const PER_TURN = 500

/**
 * The changes of a fetch. After a full one, entries that did not come or do not pass the filter are gone; after a delta, those that it
 * says so of, and what came and does not pass. Of entries with the same name and version the first counts.
 */
export async function entryChanges({ source, fetched, fingerprints, pause }: ChangesInput): Promise<EntryChanges> {
  const filter = createFilter(source.filter ?? {})
  if (filter.problems.length > 0) throw new ThvError('registry_config_invalid', filter.problems.join('; '))
  const kept = new Map<string, FetchedEntry>()
  const rejected = new Set<string>()
  const problems = [...fetched.problems]
  for (const [i, entry] of fetched.entries.entries()) {
    if (i % PER_TURN === 0) await pause()
    const key = keyOf(entry)
    if (kept.has(key) || rejected.has(key)) problems.push(twice(entry))
    else if (filter.decide(entry.name, new Set(entry.tags)).keep) kept.set(key, entry)
    else rejected.add(key)
  }
  if (fetched.kind === 'delta') for (const { name, version } of fetched.gone ?? []) rejected.add(keyOf({ name, version }))
  const taken = createVersionCount()
  const gone: { name: string; version: string }[] = []
  const upserts: SyncedEntry[] = []
  for await (const batch of fingerprints) {
    for (const known of batch) {
      const key = keyOf(known)
      const entry = kept.get(key)
      if (entry) {
        const synced = syncedOf(entry)
        if (synced.hash !== known.hash || synced.status !== known.status) upserts.push(synced)
        taken.stays(synced)
        kept.delete(key)
      } else if (known.status !== 'deleted' && (fetched.kind === 'full' || rejected.has(key))) {
        gone.push({ name: known.name, version: known.version })
      } else taken.stays(known)
    }
    await pause()
  }
  let i = 0
  for (const entry of kept.values()) {
    const synced = syncedOf(entry)
    if (taken.hasRoom(synced)) upserts.push(synced)
    if (++i % PER_TURN === 0) await pause()
  }
  return { upserts, gone, problems: [...problems, ...taken.problems()] }
}

/** The versions of a server are served in one answer, which has no pages: this is what it may cost. The official registry has the same. */
const MAX_VERSIONS = 10_000

function createVersionCount() {
  const counts = new Map<string, number>()
  const stays = ({ name, status }: Pick<SyncedEntry, 'name' | 'status'>): void => {
    if (status !== 'deleted') counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return {
    stays,
    hasRoom(entry: SyncedEntry): boolean {
      stays(entry)
      return entry.status === 'deleted' || (counts.get(entry.name) ?? 0) <= MAX_VERSIONS
    },
    problems: (): FetchProblem[] =>
      [...counts]
        .filter(([, count]) => count > MAX_VERSIONS)
        .map(([entry, count]) => {
          const message = `has ${count - MAX_VERSIONS} versions more than the ${MAX_VERSIONS} that are taken`
          return { entry, pointer: '', message, severity: 'dropped' }
        }),
  }
}

function syncedOf(entry: FetchedEntry): SyncedEntry {
  const { name, version, text, status = 'active', statusMessage, publishedAt, claims } = entry
  const parts = JSON.stringify([status, statusMessage ?? '', publishedAt ?? '', ...(claims === undefined ? [] : [claims])])
  return {
    name,
    version,
    text,
    status,
    hash: hash('sha256', `${parts}\n${text}`, 'base64url').slice(0, HASH_LENGTH),
    ...(statusMessage !== undefined && { statusMessage }),
    ...(publishedAt !== undefined && { publishedAt }),
    ...(claims !== undefined && { claims }),
  }
}

/** 144 bits. */
const HASH_LENGTH = 24

function keyOf({ name, version }: { name: string; version: string }): string {
  return `${name}\n${version}`
}

function twice(entry: FetchedEntry): FetchProblem {
  const message = `version ${JSON.stringify(entry.version)} is there twice: the first one counts`
  return { entry: entry.name, pointer: '', message, severity: 'dropped' }
}
