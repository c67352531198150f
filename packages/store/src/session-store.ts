/** A value that can be written as JSON and read back the same. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | { readonly [name: string]: JsonValue | undefined }

/** A session and the owner that may use it. Ids are unguessable but no authentication: another owner's session does not exist for you. */
export interface SessionRef {
  readonly id: string
  /** The principal that created it; one fixed text without authentication. */
  readonly owner: string
}

export interface Session<T extends JsonValue> extends SessionRef {
  /** Not to be changed in place: a store may hand out its own copy. */
  readonly value: T
  /** 1 at first, one more with each update. */
  readonly version: number
}

export interface NewSession<T extends JsonValue> extends SessionRef {
  readonly value: T
  /** The party that the session counts against when there is no room: the owner, unless all have the same. */
  readonly party?: string
}

export type CreateOutcome =
  | 'created'
  /** The id is taken, by whomever. Nothing was changed. */
  | 'exists'
  /** No room; try again later. */
  | 'full'

export type UpdateOutcome<T extends JsonValue> =
  | { readonly outcome: 'updated'; readonly session: Session<T> }
  /** Someone else was faster: decide again on what is there now. */
  | { readonly outcome: 'conflict'; readonly session: Session<T> }
  | { readonly outcome: 'missing' }

/** `expired`: its time was over. `evicted`: it had to make room for another. */
export type EndListener<T extends JsonValue> = (session: Session<T>, why: 'expired' | 'evicted') => void

/**
 * Sessions of legacy MCP clients. Everything a replica needs to go on with another replica's session is in the value. All methods are
 * asynchronous and each is one step of a shared store: read, compare-and-set, expire. An outcome is a value; a rejection means that the
 * store itself does not work, and the client should try again (503), not start a new session (404).
 *
 * A session lives for its lifetime after it was last created, updated or touched, and not a moment longer. `get` does not prolong it:
 * looking at a session (for metrics, say) is not using it.
 */
export interface SessionStore<T extends JsonValue> {
  /**
   * When the store is full, the party that holds the most sessions loses the one that was idle for longest and that `isBusy` does not
   * name; if it has none, the new one is refused. So no client can lock out others by opening sessions, and there is no fixed share that
   * would be too small for clients behind one gateway, which are one party. A store that cannot see which sessions are busy drops none: it
   * refuses a party that holds too much of it already (`mayHoldMore`).
   */
  create(session: NewSession<T>, ttlMs: number, isBusy?: (id: string) => boolean): Promise<CreateOutcome>
  get(ref: SessionRef): Promise<Session<T> | undefined>
  /** False when there is none. With `ttlMs`, that is its lifetime from now on. */
  touch(ref: SessionRef, ttlMs?: number): Promise<boolean>
  /** The same without a promise, where the store is at hand. Every request of a session uses it. */
  readonly touchNow?: ((ref: SessionRef, ttlMs?: number) => boolean) | undefined
  update(ref: SessionRef, value: T, expectedVersion: number): Promise<UpdateOutcome<T>>
  /** False when there was none. Deleting twice is no error. */
  delete(ref: SessionRef): Promise<boolean>
  /**
   * Tells of sessions that ended without a `delete`, so that what they hold elsewhere can be given back. A little late, and best effort:
   * at most one user of a shared store receives it, and none if the session ended while no user was connected. The listener must not throw.
   */
  onEnded(listener: EndListener<T>): void
  /** Sessions that have not expired. */
  size(): Promise<number>
  close(): Promise<void>
}
