import type { DatabaseSync } from 'node:sqlite'
import type { FetchState } from '@thv/catalog/sources/fetch/registry-handler'
import type { SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import type { Clock } from '@thv/kernel/clock'
import type { Creation, RegistrySpec, SyncStatus } from '../registry-store.ts'
import { storeError } from './database.ts'
import { type Counters, Draft, type RegistryRow, type SourceRow } from './draft.ts'

/**
 * All sources and registries, in memory and in the file. Only this process writes the file, so reads never need it. What an attempt to
 * sync tells about a source is replaced in memory alone, and written with the next write that has something to write.
 */
export class Ledger {
  readonly #database: DatabaseSync
  readonly #path: string
  readonly #clock: Clock
  readonly #statements: ReturnType<typeof prepare>
  #sources: Map<string, SourceRow>
  #registries: Map<string, RegistryRow>
  #counters: Counters
  /** As the file has them. */
  #written: { sources: Map<string, SourceRow>; registries: Map<string, RegistryRow> }

  constructor(database: DatabaseSync, { path, clock }: { path: string; clock: Clock }) {
    this.#database = database
    this.#path = path
    this.#clock = clock
    this.#statements = prepare(database)
    const loaded = load(database)
    this.#sources = loaded.sources
    this.#registries = loaded.registries
    this.#counters = loaded.counters
    this.#written = { sources: new Map(loaded.sources), registries: new Map(loaded.registries) }
  }

  get sources(): ReadonlyMap<string, SourceRow> {
    return this.#sources
  }

  get registries(): ReadonlyMap<string, RegistryRow> {
    return this.#registries
  }

  get counters(): Readonly<Counters> {
    return this.#counters
  }

  /** In memory only. */
  replace(row: SourceRow): void {
    this.#sources.set(row.config.name, row)
  }

  read<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      throw storeError(this.#path, error)
    }
  }

  /** One transaction: durable when it returns; when it throws nothing has changed, here and in the file. */
  write<T>(work: (draft: Draft) => T): T {
    const draft = new Draft({ sources: this.#sources, registries: this.#registries, counters: this.#counters }, this.#clock)
    let result: T
    try {
      this.#database.exec('BEGIN IMMEDIATE')
      result = work(draft)
      if (draft.touched) this.#persist(draft)
      this.#database.exec('COMMIT')
    } catch (error) {
      if (this.#database.isOpen && this.#database.isTransaction) this.#database.exec('ROLLBACK')
      throw storeError(this.#path, error)
    }
    if (draft.touched) {
      this.#sources = draft.sources
      this.#registries = draft.registries
      this.#counters = draft.counters
      this.#written = { sources: new Map(draft.sources), registries: new Map(draft.registries) }
    }
    return result
  }

  /** Writes what is in memory only, if anything is. */
  flush(): void {
    const behind = [...this.#sources].some(([name, row]) => this.#written.sources.get(name) !== row)
    if (behind) this.write((draft) => draft.keep())
  }

  #persist({ sources, registries, counters }: Draft): void {
    const { putSource, removeSource, putRegistry, removeRegistry, putMeta } = this.#statements
    for (const [name, { id }] of this.#written.sources) {
      if (sources.get(name)?.id !== id) for (const statement of removeSource) statement.run(id)
    }
    for (const [name, { id }] of this.#written.registries) if (registries.get(name)?.id !== id) removeRegistry.run(id)
    for (const [name, row] of sources) {
      if (this.#written.sources.get(name) === row) continue
      const { id, config, creation, createdAt, updatedAt, sync, state } = row
      putSource.run(
        id,
        name,
        creation,
        JSON.stringify(config),
        createdAt,
        updatedAt,
        JSON.stringify(sync),
        state ? JSON.stringify(state) : null,
      )
    }
    for (const [name, row] of registries) {
      if (this.#written.registries.get(name) === row) continue
      putRegistry.run(row.id, name, row.creation, row.position, JSON.stringify(row.spec), row.createdAt, row.updatedAt)
    }
    putMeta.run(counters.data, counters.structure, counters.lastTime, counters.lastId)
  }
}

function prepare(database: DatabaseSync) {
  return {
    putSource: database.prepare(`
      INSERT INTO source (id, name, creation, config, created_at, updated_at, sync, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET config = excluded.config, updated_at = excluded.updated_at, sync = excluded.sync, state = excluded.state
    `),
    removeSource: [
      'DELETE FROM document WHERE id IN (SELECT id FROM entry WHERE source_id = ?)',
      'DELETE FROM entry WHERE source_id = ?',
      'DELETE FROM source WHERE id = ?',
    ].map((sql) => database.prepare(sql)),
    putRegistry: database.prepare(`
      INSERT INTO registry (id, name, creation, position, spec, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET position = excluded.position, spec = excluded.spec, updated_at = excluded.updated_at
    `),
    removeRegistry: database.prepare('DELETE FROM registry WHERE id = ?'),
    putMeta: database.prepare('UPDATE meta SET data_revision = ?, structure_revision = ?, last_time = ?, last_id = ?'),
  }
}

function load(database: DatabaseSync) {
  const sources = new Map<string, SourceRow>()
  for (const row of database.prepare('SELECT * FROM source').iterate()) {
    const config = JSON.parse(String(row['config'])) as SourceConfig
    sources.set(config.name, {
      id: Number(row['id']),
      config,
      creation: row['creation'] as Creation,
      createdAt: String(row['created_at']),
      updatedAt: String(row['updated_at']),
      sync: JSON.parse(String(row['sync'])) as SyncStatus,
      state: row['state'] === null ? undefined : (JSON.parse(String(row['state'])) as FetchState),
    })
  }
  const registries = new Map<string, RegistryRow>()
  for (const row of database.prepare('SELECT * FROM registry').iterate()) {
    const spec = JSON.parse(String(row['spec'])) as RegistrySpec
    registries.set(spec.name, {
      id: Number(row['id']),
      spec,
      creation: row['creation'] as Creation,
      position: Number(row['position']),
      createdAt: String(row['created_at']),
      updatedAt: String(row['updated_at']),
    })
  }
  const meta = database.prepare('SELECT * FROM meta').get() ?? {}
  const counters: Counters = {
    data: Number(meta['data_revision']),
    structure: Number(meta['structure_revision']),
    lastTime: Number(meta['last_time']),
    lastId: Number(meta['last_id']),
  }
  return { sources, registries, counters }
}
