import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { type Backing, memoryBacking, sqliteBacking } from './backing.ts'
import type { Change, ChangeLog, LogLimits } from './change-log.ts'
import { type StoredObject, stamp } from './stored-object.ts'
import { TypeTable } from './type-table.ts'

export interface ObjectStoreOptions {
  /** Objects survive here; without it they live in memory only. */
  readonly folder?: string
  readonly history?: Partial<LogLimits>
}

/** Why a write was not done: the object is there already, is not there, or is not at the expected revision. */
export type WriteRefusal = 'exists' | 'missing' | 'conflict'
export type WriteResult = { readonly object: StoredObject } | { readonly refused: WriteRefusal }

export interface ListQuery {
  readonly type: string
  /** One namespace; all when absent. */
  readonly namespace?: string | undefined
  /** Whatever is not kept is passed over and not counted. */
  readonly keep?: ((object: StoredObject) => boolean) | undefined
  readonly limit?: number | undefined
  /** A later page: the revision of the first one, and the last key that was listed. */
  readonly after?: { readonly revision: number; readonly key: string } | undefined
}

export interface ListPage {
  readonly revision: number
  readonly objects: readonly StoredObject[]
  /** How many are still to come. */
  readonly remaining: number
}

const HISTORY: LogLimits = { maxChanges: 4_096, maxBytes: 16 << 20 }

/**
 * All objects, with one revision counter for everything. They are served from memory; every write is durable before it is seen by anyone.
 * All calls are synchronous, so a read and the write that depends on it are one step.
 */
export class ObjectStore {
  readonly #backing: Backing
  readonly #limits: LogLimits
  readonly #tables = new Map<string, TypeTable>()
  readonly #listeners = new Map<string, Set<() => void>>()
  readonly #startedAt: number
  #revision = 0
  /** Lists cannot be continued from before it. */
  #pagesSince = 0
  #closed = false

  constructor(options: ObjectStoreOptions = {}) {
    this.#limits = { ...HISTORY, ...options.history }
    this.#backing = options.folder === undefined ? memoryBacking() : sqliteBacking(options.folder)
    const loaded: StoredObject[] = []
    this.#revision = this.#backing.load((object) => loaded.push(object))
    // An empty store has no revision 0 for clients: 0 means "any" to them.
    if (this.#revision === 0) this.#revision = 1
    this.#startedAt = this.#revision
    for (const object of loaded) this.#table(object.type).load(object)
  }

  get revision(): number {
    return this.#revision
  }

  get(type: string, key: string): StoredObject | undefined {
    return this.#tables.get(type)?.get(key)
  }

  create(type: string, key: string, body: JsonObject): WriteResult {
    if (this.get(type, key) !== undefined) return { refused: 'exists' }
    return { object: this.#commit(stamp({ type, key, revision: this.#revision + 1 }, body), undefined) }
  }

  /** Only when the object is still at `expected`. */
  update(expected: StoredObject, body: JsonObject): WriteResult {
    const refused = this.#check(expected)
    if (refused !== undefined) return { refused }
    const { type, key } = expected
    return { object: this.#commit(stamp({ type, key, revision: this.#revision + 1 }, body), expected) }
  }

  /** Only when the object is still at `expected`. Gives the last state, with the revision of its deletion. */
  delete(expected: StoredObject, last: JsonObject = expected.body): WriteResult {
    const refused = this.#check(expected)
    if (refused !== undefined) return { refused }
    const { type, key } = expected
    return { object: this.#commit(stamp({ type, key, revision: this.#revision + 1 }, last), expected, true) }
  }

  /** One page, all pages of a list at the same revision; `expired` when that is too old to be known. */
  list(query: ListQuery): ListPage | 'expired' {
    const revision = query.after?.revision ?? this.#revision
    const table = this.#table(query.type)
    if (query.after !== undefined && revision < Math.max(table.log.oldest, this.#pagesSince)) return 'expired'
    const all = table.at(revision, query.namespace === undefined ? '' : `${query.namespace}/`)
    const after = query.after?.key
    const start = after === undefined ? 0 : firstAfter(all, after)
    const objects: StoredObject[] = []
    let at = start
    for (; at < all.length && objects.length < (query.limit ?? Infinity); at++) {
      const object = all[at]
      if (object !== undefined && (query.keep?.(object) ?? true)) objects.push(object)
    }
    return { revision, objects, remaining: all.length - at }
  }

  /** The changes of a type, to be read by revision. */
  log(type: string): ChangeLog {
    return this.#table(type).log
  }

  /** Called after every change of the type. Must not throw, and must not write. */
  onChange(type: string, listener: () => void): () => void {
    const listeners = this.#listeners.get(type) ?? new Set()
    this.#listeners.set(type, listeners)
    listeners.add(listener)
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#listeners.get(type) === listeners) this.#listeners.delete(type)
    }
  }

  /** Lists that began before `revision` cannot be continued; watches can. */
  expirePages(revision: number): void {
    this.#pagesSince = Math.max(this.#pagesSince, revision)
  }

  /** Forgets all history up to `revision`; watches and pages from before are then expired. */
  compact(revision: number = this.#revision): void {
    for (const table of this.#tables.values()) table.log.compact(revision)
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#backing.close()
  }

  #check(expected: StoredObject): WriteRefusal | undefined {
    const current = this.get(expected.type, expected.key)
    if (current === undefined) return 'missing'
    return current.revision === expected.revision ? undefined : 'conflict'
  }

  #commit(object: StoredObject, previous: StoredObject | undefined, deleted = false): StoredObject {
    this.#backing.write(object, deleted)
    this.#revision = object.revision
    const table = this.#table(object.type)
    if (deleted) table.delete(object.key)
    else table.put(object)
    const change: Change = { revision: object.revision, current: object, previous, deleted, encoded: new Map() }
    table.log.append(change)
    for (const listener of [...(this.#listeners.get(object.type) ?? [])]) listener()
    return object
  }

  #table(type: string): TypeTable {
    let table = this.#tables.get(type)
    if (table === undefined) {
      table = new TypeTable(this.#startedAt, this.#limits)
      this.#tables.set(type, table)
    }
    return table
  }
}

function firstAfter(objects: readonly StoredObject[], key: string): number {
  const at = objects.findIndex((object) => object.key > key)
  return at < 0 ? objects.length : at
}
