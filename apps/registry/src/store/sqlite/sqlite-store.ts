import type { DatabaseSync } from 'node:sqlite'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Claims, SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import { compareCodePoints } from '@thv/catalog/text'
import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import type {
  ClaimsChange,
  Fingerprint,
  Lease,
  LeasedSource,
  NewEntry,
  RegistryRecord,
  RegistrySpec,
  RegistryStore,
  SourceRecord,
  StatusChange,
  StoredEntry,
  StoreRevision,
  SyncOutcome,
  SyncWritten,
} from '../registry-store.ts'
import * as configuring from './configuring.ts'
import { type DatabaseOptions, openDatabase } from './database.ts'
import type { Draft, SourceRow } from './draft.ts'
import { EntryTable, parseClaims, storedEntry } from './entry-table.ts'
import { Ledger } from './ledger.ts'
import * as publishing from './publishing.ts'
import { SyncBoard } from './sync-board.ts'
import { afterAttempt, leaseLost, writeChanged } from './sync-writing.ts'

const NAMES_PER_TURN = 500

/**
 * The embedded store: one file that only this process uses, or memory. SQLite works synchronously: a large write takes the thread for as
 * long as it lasts, so this belongs in a worker.
 */
export async function openSqliteStore(options: DatabaseOptions): Promise<RegistryStore> {
  const database = await openDatabase(options)
  return new SqliteStore(database, { path: options.path ?? 'in memory', clock: options.clock })
}

class SqliteStore implements RegistryStore {
  readonly kind = 'sqlite'
  readonly #database: DatabaseSync
  readonly #clock: Clock
  readonly #ledger: Ledger
  readonly #table: EntryTable
  readonly #board: SyncBoard
  readonly #listeners = new Set<() => void>()
  #announced = false

  constructor(database: DatabaseSync, { path, clock }: { path: string; clock: Clock }) {
    this.#database = database
    this.#clock = clock
    this.#ledger = new Ledger(database, { path, clock })
    this.#table = new EntryTable(database)
    this.#board = new SyncBoard(clock)
    this.#board.update(this.#ledger.sources)
  }

  async revision(): Promise<StoreRevision> {
    const { data, structure } = this.#ledger.counters
    return { data, structure }
  }

  onChange(listener: () => void): () => void {
    const own = () => listener()
    this.#listeners.add(own)
    return () => this.#listeners.delete(own)
  }

  async ping(): Promise<void> {
    this.#read(() => this.#database.prepare('SELECT id FROM meta').get())
  }

  async sources(): Promise<readonly SourceRecord[]> {
    const records = [...this.#ledger.sources.values()].map((row) => this.#record(row))
    return records.sort((a, b) => compareCodePoints(a.config.name, b.config.name))
  }

  async registries(): Promise<readonly RegistryRecord[]> {
    const rows = [...this.#ledger.registries.values()]
    rows.sort((a, b) => Number(a.creation === 'API') - Number(b.creation === 'API') || a.position - b.position || a.id - b.id)
    return rows.map(({ spec, creation, createdAt, updatedAt }) => ({ spec, creation, createdAt, updatedAt }))
  }

  async reconcileConfig(config: { sources: readonly SourceConfig[]; registries: readonly RegistrySpec[] }): Promise<void> {
    this.#write((draft) => configuring.reconcile(draft, config))
  }

  async putSource(source: SourceConfig): Promise<{ created: boolean }> {
    return this.#write((draft) => configuring.putSource(draft, source))
  }

  async deleteSource(name: string): Promise<void> {
    this.#write((draft) => configuring.deleteSource(draft, name))
  }

  async putRegistry(registry: RegistrySpec): Promise<{ created: boolean }> {
    return this.#write((draft) => configuring.putRegistry(draft, registry))
  }

  async deleteRegistry(name: string): Promise<void> {
    this.#write((draft) => configuring.deleteRegistry(draft, name))
  }

  async *entriesAfter(after: number, signal: AbortSignal): AsyncIterable<readonly StoredEntry[]> {
    let last: { revision: number; id: number } = { revision: after, id: Number.MAX_SAFE_INTEGER }
    for (;;) {
      signal.throwIfAborted()
      const names = new Map([...this.#ledger.sources.values()].map(({ id, config }) => [id, config.name]))
      const { rows, end } = this.#read(() => this.#table.pageAfter(last))
      last = rows.at(-1) ?? last
      if (rows.length > 0) yield rows.map((row) => storedEntry(row, names.get(row.source_id) ?? ''))
      if (end) return // not when there is nothing any more: somebody who keeps writing would keep the reader
      await nextTurn()
    }
  }

  async *fingerprints(source: string, signal: AbortSignal, names?: readonly string[]): AsyncIterable<readonly Fingerprint[]> {
    const id = this.#ledger.sources.get(source)?.id
    if (names !== undefined && id !== undefined) {
      for (let at = 0; at < names.length; at += NAMES_PER_TURN) {
        signal.throwIfAborted()
        const some = names.slice(at, at + NAMES_PER_TURN)
        yield this.#read(() => some.flatMap((name) => this.#table.fingerprintsOf(id, name)))
        await nextTurn()
      }
      return
    }
    let last: Fingerprint | undefined
    while (id !== undefined) {
      signal.throwIfAborted()
      const prints = this.#read(() => this.#table.fingerprints(id, last))
      last = prints.at(-1)
      if (last === undefined) return
      yield prints
      await nextTurn()
    }
  }

  async versionsOf(source: string, name: string): Promise<readonly StoredEntry[]> {
    const id = this.#ledger.sources.get(source)?.id
    return id === undefined ? [] : this.#read(() => this.#table.versionsOf(id, name)).map((row) => storedEntry(row, source))
  }

  async publish(entry: NewEntry): Promise<StoredEntry> {
    return storedEntry(
      this.#write((draft) => publishing.publish(draft, this.#table, entry)),
      entry.source,
    )
  }

  async replaceDocument(entry: NewEntry): Promise<StoredEntry> {
    return storedEntry(
      this.#write((draft) => publishing.replaceDocument(draft, this.#table, entry)),
      entry.source,
    )
  }

  async setStatus(change: StatusChange): Promise<readonly StoredEntry[]> {
    const rows = this.#write((draft) => publishing.setStatus(draft, this.#table, change))
    return rows.map((row) => storedEntry(row, change.source))
  }

  async claimsOf(source: string, name: string): Promise<Claims | undefined> {
    const id = this.#ledger.sources.get(source)?.id
    const row = id === undefined ? undefined : this.#read(() => this.#table.anyVersion(id, name))
    if (!row) throw publishing.notFound({ name })
    return row.claims === null ? undefined : parseClaims(row.claims)
  }

  async setClaims(change: ClaimsChange): Promise<void> {
    this.#write((draft) => publishing.setClaims(draft, this.#table, change))
  }

  async claimDue(claim: { owner: string; leaseMs: number; limit: number; except?: readonly string[] }): Promise<readonly LeasedSource[]> {
    const claimed = this.#board.claim(claim).map(({ row, lease, manual }) => {
      const { config, sync, state } = this.#ledger.sources.get(row.config.name) ?? row
      return { lease, config, sync, state, manual }
    })
    if (claimed.length > 0) this.#announce()
    return claimed
  }

  async renewLease(lease: Lease, leaseMs: number): Promise<boolean> {
    return this.#board.renew(lease, leaseMs)
  }

  async finishSync(lease: Lease, outcome: SyncOutcome): Promise<SyncWritten> {
    this.#refuseClosed()
    const source = this.#ledger.sources.get(lease.source)
    if (!source || !this.#board.holds(lease)) throw leaseLost(lease)
    const at = new Date(this.#clock.now()).toISOString()
    if (outcome.kind === 'changed') this.#write((draft) => writeChanged(draft, this.#table, { source, outcome, at }))
    else this.#ledger.replace(afterAttempt(source, outcome, at))
    this.#board.finish(lease, outcome.nextInMs)
    this.#announce()
    return { revision: this.#ledger.counters.data, serverCount: this.#ledger.sources.get(lease.source)?.sync.serverCount ?? 0 }
  }

  async requestSync(source: string): Promise<void> {
    if (!this.#ledger.sources.has(source)) throw new ThvError('not_found', `there is no source ${source}`)
    this.#board.request(source)
    this.#announce()
  }

  async nextDueInMs(except: readonly string[] = []): Promise<number | undefined> {
    return this.#board.nextInMs(except)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#database.isOpen) return
    this.#listeners.clear()
    try {
      this.#ledger.flush()
    } finally {
      this.#database.close()
    }
  }

  #record(row: SourceRow): SourceRecord {
    const { id, config, creation, createdAt, updatedAt, sync } = row
    const syncing = this.#board.isSyncing(config.name)
    return { id, config, creation, createdAt, updatedAt, sync: syncing ? { ...sync, phase: 'syncing' } : sync }
  }

  #read<T>(work: () => T): T {
    this.#refuseClosed()
    return this.#ledger.read(work)
  }

  #write<T>(work: (draft: Draft) => T): T {
    this.#refuseClosed()
    const { data, structure } = this.#ledger.counters
    const result = this.#ledger.write(work)
    const now = this.#ledger.counters
    if (now.structure !== structure) this.#board.update(this.#ledger.sources)
    if (now.structure !== structure || now.data !== data) this.#announce()
    return result
  }

  #refuseClosed(): void {
    if (!this.#database.isOpen) throw new ThvError('store_unavailable', 'the store is closed')
  }

  /** Once for whatever happens in one turn. */
  #announce(): void {
    if (this.#announced) return
    this.#announced = true
    queueMicrotask(() => {
      this.#announced = false
      for (const listener of [...this.#listeners]) listener()
    })
  }
}
