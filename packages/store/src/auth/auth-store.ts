import type { JsonObject } from '@thv/kernel/json'

/**
 * The kinds of records of an authorization server. `code`, `refresh` and `grant` belong to families; `pending` is a login at an upstream
 * provider; `login` is what a family knows of its user; `replay` and `assertion` are identifiers that may be used once; `upstream` is for
 * tokens of upstream providers, `registration` for our own registrations there, `account` for the list of a user's families.
 */
export const AUTH_RECORD_KINDS = [
  'code',
  'refresh',
  'grant',
  'interaction',
  'pending',
  'login',
  'replay',
  'assertion',
  'upstream',
  'registration',
  'account',
] as const
export type AuthRecordKind = (typeof AUTH_RECORD_KINDS)[number]

export interface AuthRecord {
  readonly value: JsonObject
  /** Epoch milliseconds of the first `consume`. */
  readonly consumedAt?: number | undefined
}

export interface PutOptions {
  /** Above 0. The record is not seen after it. */
  readonly ttlMs: number
  /** All records of a family end with `revokeFamily`. */
  readonly family?: string | undefined
}

/**
 * `first`: consumed by this call. `again`: consumed before, within the grace. `reused`: consumed before the grace began. `missing`: there is
 * no such record, or its family is revoked.
 */
export type Consumption = 'first' | 'again' | 'reused' | 'missing'

/** A record that takes the place of another one. */
export interface Replacement {
  readonly from: {
    readonly kind: AuthRecordKind
    readonly id: string
    readonly graceMs: number
    /** How long the consumed record is kept at most. */
    readonly keptMs: number
  }
  readonly to: {
    readonly kind: AuthRecordKind
    readonly id: string
    readonly value: JsonObject
    readonly ttlMs: number
    readonly family: string
  }
  /** Kinds whose record of the family, with its name as their id, lives as long as the new one. */
  readonly prolonged: readonly AuthRecordKind[]
}

/**
 * Where an authorization server keeps what must outlive a request. Each method is atomic: of any number of simultaneous calls of `consume`,
 * `take` or `addOnce` one is the first. Rejects with `store_unavailable` when the outcome is not known or there is no room. What was consumed,
 * taken, added or locked then is given back as soon as the store answers, unless that takes minutes, or this process ends before; until then
 * other replicas find it used.
 */
export interface AuthStore extends AsyncDisposable {
  get(kind: AuthRecordKind, id: string): Promise<AuthRecord | undefined>
  /** Replaces a record and leaves `consumedAt` as it is. The value is written as JSON at once. Has no effect for a family that is revoked. */
  put(kind: AuthRecordKind, id: string, record: { readonly value: JsonObject } & PutOptions): Promise<void>
  /**
   * Reads and replaces with nothing in between. `change` is called again when somebody else has written since it was read, so it has no other
   * effect; undefined leaves everything as it is. Like `put` in all else.
   */
  update(kind: AuthRecordKind, id: string, options: PutOptions, change: RecordChange): Promise<void>
  /** Reads and removes. */
  take(kind: AuthRecordKind, id: string): Promise<JsonObject | undefined>
  consume(kind: AuthRecordKind, id: string, options: { readonly graceMs: number }): Promise<Consumption>
  /**
   * Consumes one record and puts another one, both or neither. Puts nothing when the outcome is `reused` or `missing`, also because the
   * family is revoked.
   */
  replace(replacement: Replacement): Promise<Consumption>
  remove(kind: AuthRecordKind, id: string): Promise<void>
  /** False: the id was added before and has not expired. */
  addOnce(kind: AuthRecordKind, id: string, ttlMs: number): Promise<boolean>
  /** Undefined: another holder has it. It ends by itself after `ttlMs`; disposing ends only what this call took, and never rejects. */
  lock(name: string, ttlMs: number): Promise<AsyncDisposable | undefined>
  /** Removes all records of the family, now and when they are put later, for `ttlMs`. */
  revokeFamily(family: string, ttlMs: number): Promise<void>
  isRevoked(family: string): Promise<boolean>
  /** Called for every revoked family, on this replica at once and on others within seconds. Also for those revoked before the call. */
  observeRevocations(listener: RevocationListener): Disposable
}

/** The new value of a record; undefined is given where there is none. */
export type RecordChange = (value: JsonObject | undefined) => JsonObject | undefined

/** `ttlMs`: how long the family has to be remembered. Must not throw. */
export type RevocationListener = (family: string, ttlMs: number) => void
