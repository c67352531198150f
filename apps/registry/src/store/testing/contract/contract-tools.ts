import type { FetchState } from '@thv/catalog/sources/fetch/registry-handler'
import type { SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import type { ErrorCode } from '@thv/kernel/errors'
import { isThvError } from '@thv/kernel/errors'
import { expect } from 'vitest'
import type {
  Fingerprint,
  LeasedSource,
  RegistryStore,
  SourceRecord,
  StoredEntry,
  SyncedEntry,
  SyncOutcome,
  SyncWritten,
} from '../../registry-store.ts'

export const never = new AbortController().signal

export const managed = (name: string): SourceConfig => ({ name, managed: {} })
export const file = (name: string, more: Partial<SourceConfig> = {}): SourceConfig => ({
  name,
  file: { path: `/data/${name}.json` },
  intervalMs: 60_000,
  ...more,
})

export const textOf = (name: string, version: string, more: object = {}) => JSON.stringify({ name, version, ...more })

export function entry(name: string, version = '1.0.0', more: Partial<SyncedEntry> = {}): SyncedEntry {
  const text = more.text ?? textOf(name, version)
  const status = more.status ?? 'active'
  return { name, version, text, status, hash: `${status} ${more.statusMessage ?? ''} ${text.length} ${text.slice(0, 200)}`, ...more }
}

export type Changed = Extract<SyncOutcome, { kind: 'changed' }>

export const changed = (upserts: readonly SyncedEntry[], more: Partial<Changed> = {}): Changed => ({
  kind: 'changed',
  nextInMs: 60_000,
  state: {},
  hash: 'hash',
  message: 'done',
  problems: [],
  problemCount: 0,
  upserts,
  gone: [],
  ...more,
})

export const unchanged = (nextInMs = 60_000, state: FetchState = {}): SyncOutcome => ({ kind: 'unchanged', nextInMs, state })

/** Leases one source, whether or not it is due. */
export async function lease(store: RegistryStore, source: string, owner = 'one'): Promise<LeasedSource> {
  await store.requestSync(source)
  const claimed = await store.claimDue({ owner, leaseMs: 60_000, limit: 1_000 })
  for (const other of claimed) {
    if (other.lease.source !== source) await store.finishSync(other.lease, unchanged(60_000, other.state))
  }
  const found = claimed.find((one) => one.lease.source === source)
  if (!found) throw new Error(`${source} could not be leased`)
  return found
}

export async function sync(store: RegistryStore, source: string, outcome: SyncOutcome): Promise<SyncWritten> {
  return store.finishSync((await lease(store, source)).lease, outcome)
}

export async function rowsAfter(store: RegistryStore, after = 0): Promise<StoredEntry[]> {
  const rows: StoredEntry[] = []
  for await (const batch of store.entriesAfter(after, never)) rows.push(...batch)
  return rows
}

export async function fingerprintsOf(store: RegistryStore, source: string, names?: readonly string[]): Promise<Fingerprint[]> {
  const all: Fingerprint[] = []
  for await (const batch of store.fingerprints(source, never, names)) all.push(...batch)
  return all
}

export async function sourceOf(store: RegistryStore, name: string): Promise<SourceRecord> {
  const found = (await store.sources()).find((source) => source.config.name === name)
  if (!found) throw new Error(`no source ${name}`)
  return found
}

export async function only(rows: Promise<readonly StoredEntry[]>): Promise<StoredEntry> {
  const [row, ...more] = await rows
  if (!row || more.length > 0) throw new Error(`${more.length + (row ? 1 : 0)} rows instead of one`)
  return row
}

/** The work is refused with this code, and what the store holds is as before. */
export async function refused(store: RegistryStore, code: ErrorCode, work: () => Promise<unknown>): Promise<void> {
  const before = await contents(store)
  const error = await work().then(
    () => undefined,
    (e: unknown) => e,
  )
  expect(isThvError(error) ? error.code : error).toBe(code)
  expect(await contents(store)).toEqual(before)
}

export async function contents(store: RegistryStore) {
  return {
    revision: await store.revision(),
    sources: await store.sources(),
    registries: await store.registries(),
    rows: await rowsAfter(store),
  }
}
