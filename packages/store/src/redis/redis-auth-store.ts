import { createHash, randomUUID } from 'node:crypto'
import { createBackoff } from '@thv/kernel/backoff'
import { type Clock, systemClock, type Timer } from '@thv/kernel/clock'
import { isThvError, ThvError } from '@thv/kernel/errors'
import type { JsonObject } from '@thv/kernel/json'
import type {
  AuthRecord,
  AuthRecordKind,
  AuthStore,
  Consumption,
  PutOptions,
  RecordChange,
  Replacement,
  RevocationListener,
} from '../auth/auth-store.ts'
import * as scripts from './auth-scripts.ts'
import { LostAnswers, type Undo } from './lost-answers.ts'
import type { RecordCipher } from './record-cipher.ts'
import type { RedisArgument, RedisClient, RedisScript } from './redis-client.ts'

export interface RedisAuthStoreOptions {
  readonly redis: RedisClient
  readonly cipher: RecordCipher
  /** `thv:auth:{NAMESPACE:NAME}:`. The braces keep the keys of one server in one slot of a Cluster. */
  readonly keyPrefix: string
  readonly clock?: Clock
  /** How long an operation is repeated while Redis fails over. */
  readonly patienceMs?: number
}

/** The names of ToolHive (Go) where it has the same kind. */
const NAMES: Readonly<Record<AuthRecordKind, string>> = {
  code: 'authcode',
  refresh: 'refresh',
  grant: 'grant',
  interaction: 'interaction',
  pending: 'pending',
  login: 'user',
  replay: 'jwt',
  assertion: 'assertion-jwt',
  upstream: 'upstream',
  registration: 'dcr',
  account: 'account',
}

const PATIENCE_MS = 10_000
/** Longer than an operation is repeated, and taken back after that. */
const TAKEN_MS = 150_000
/** How long after it was taken back an operation may still arrive from a connection that broke: TCP gives up after about a quarter of an hour. */
const LATE_MS = 1_200_000
const POLL_MS = 2_000
/** Clocks of a primary and its successor differ; listeners may receive a revocation twice. */
const OVERLAP_MS = 60_000
const PAGE = 1_000

/** Records of an authorization server for all its replicas: ids hashed, values sealed, each operation one script. */
export class RedisAuthStore implements AuthStore {
  readonly #redis: RedisClient
  readonly #cipher: RecordCipher
  readonly #prefix: string
  readonly #clock: Clock
  readonly #patienceMs: number
  readonly #closing = new AbortController()
  readonly #listeners = new Map<RevocationListener, Watch>()
  readonly #lost: LostAnswers
  #poll: Timer | undefined

  constructor({ redis, cipher, keyPrefix, clock = systemClock, patienceMs = PATIENCE_MS }: RedisAuthStoreOptions) {
    if (!/\{[^{}]+\}/.test(keyPrefix)) throw new RangeError(`the prefix ${JSON.stringify(keyPrefix)} has no hash tag`)
    this.#redis = redis
    this.#cipher = cipher
    this.#prefix = keyPrefix
    this.#clock = clock
    this.#patienceMs = patienceMs
    this.#lost = new LostAnswers(redis, clock)
  }

  async get(kind: AuthRecordKind, id: string): Promise<AuthRecord | undefined> {
    const key = this.#key(kind, id)
    const found = await this.#run(scripts.GET, [key], [])
    if (!Array.isArray(found)) return undefined
    const [data, consumedAt] = found as [Buffer, Buffer]
    const value = this.#open(data, key)
    return value && { value, consumedAt: consumedAt.length === 0 ? undefined : Number(consumedAt) }
  }

  async put(kind: AuthRecordKind, id: string, { value, ttlMs, family }: { readonly value: JsonObject } & PutOptions): Promise<void> {
    if (!(ttlMs > 0)) throw new RangeError(`a record needs a lifetime above 0, not ${ttlMs}`)
    const key = this.#key(kind, id)
    const { mark, members } = this.#family(family ?? '')
    const data = this.#cipher.seal(JSON.stringify(value), key)
    await this.#run(scripts.PUT, [key, mark, members], [data, Math.ceil(ttlMs), family === undefined ? 0 : 1])
  }

  async update(kind: AuthRecordKind, id: string, { ttlMs, family }: PutOptions, change: RecordChange): Promise<void> {
    if (!(ttlMs > 0)) throw new RangeError(`a record needs a lifetime above 0, not ${ttlMs}`)
    const key = this.#key(kind, id)
    const { mark, members } = this.#family(family ?? '')
    const deadline = this.#clock.monotonic() + this.#patienceMs
    const backoff = createBackoff({ baseMs: 20, maxMs: 200 })
    for (;;) {
      const found = await this.#run(scripts.GET, [key], [])
      const before = Array.isArray(found) ? (found[0] as Buffer) : undefined
      const value = change(before && this.#open(before, key))
      if (value === undefined) return
      const data = this.#cipher.seal(JSON.stringify(value), key)
      const args = [data, Math.ceil(ttlMs), family === undefined ? 0 : 1, before ?? '']
      if (Number(await this.#run(scripts.UPDATE, [key, mark, members], args)) === 1) return
      const wait = backoff.next()
      if (this.#clock.monotonic() + wait > deadline) throw this.#unavailable(new Error('others keep changing the record'))
      await this.#clock.sleep(wait, this.#closing.signal)
    }
  }

  async take(kind: AuthRecordKind, id: string): Promise<JsonObject | undefined> {
    const [key, attempt] = [this.#key(kind, id), randomUUID()]
    const undo = { script: scripts.UNTAKE, keys: [key], args: [attempt] }
    const data = await this.#run(scripts.TAKE, [key], [attempt, TAKEN_MS], undo)
    return Buffer.isBuffer(data) ? this.#open(data, key) : undefined
  }

  async consume(kind: AuthRecordKind, id: string, { graceMs }: { readonly graceMs: number }): Promise<Consumption> {
    const [keys, attempt] = [[this.#key(kind, id)], randomUUID()]
    const outcome = await this.#run(scripts.CONSUME, keys, [attempt, graceMs], { script: scripts.UNCONSUME, keys, args: [attempt] })
    return String(outcome) as Consumption
  }

  async replace({ from, to, prolonged }: Replacement): Promise<Consumption> {
    const key = this.#key(to.kind, to.id)
    const { mark, members } = this.#family(to.family)
    const keys = [this.#key(from.kind, from.id), key, mark, members, ...prolonged.map((kind) => this.#key(kind, to.family))]
    const data = this.#cipher.seal(JSON.stringify(to.value), key)
    const [attempt, ttlMs] = [randomUUID(), Math.ceil(to.ttlMs)]
    // A code ends before its tokens do; whatever it is, it was good a moment ago.
    const leftMs = from.kind === to.kind ? ttlMs : from.keptMs
    const undo = { script: scripts.UNCONSUME, keys: keys.slice(0, 4), args: [attempt, leftMs] }
    const outcome = await this.#run(scripts.REPLACE, keys, [attempt, from.graceMs, from.keptMs, data, ttlMs], undo)
    return String(outcome) as Consumption
  }

  async remove(kind: AuthRecordKind, id: string): Promise<void> {
    await this.#run(scripts.REMOVE, [this.#key(kind, id)], [])
  }

  async addOnce(kind: AuthRecordKind, id: string, ttlMs: number): Promise<boolean> {
    const key = `${this.#prefix}${NAMES[kind]}:once:${digest(id)}`
    return await this.#addOnce(key, randomUUID(), ttlMs)
  }

  async lock(name: string, ttlMs: number): Promise<AsyncDisposable | undefined> {
    const key = `${this.#prefix}lock:${digest(name)}`
    const holder = randomUUID()
    if (!(await this.#addOnce(key, holder, ttlMs))) return undefined
    return {
      [Symbol.asyncDispose]: async () => {
        // It ends by itself too, so one attempt is enough.
        await this.#redis.run(scripts.RELEASE, [key], [holder]).catch(() => {})
      },
    }
  }

  async revokeFamily(family: string, ttlMs: number): Promise<void> {
    const { mark, members } = this.#family(family)
    const keys = [mark, members, this.#index]
    await this.#run(scripts.REVOKE, keys, [family, Math.ceil(ttlMs)])
    for (const listener of this.#listeners.keys()) listener(family, ttlMs)
  }

  async isRevoked(family: string): Promise<boolean> {
    return Number(await this.#run(scripts.IS_REVOKED, [this.#family(family).mark], [])) === 1
  }

  observeRevocations(listener: RevocationListener): Disposable {
    this.#listeners.set(listener, { since: 0 })
    this.#schedule(0)
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) }
  }

  /** The connection is its opener's. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new ThvError('aborted', 'the store is closed'))
    this.#listeners.clear()
    this.#lost[Symbol.dispose]()
    this.#poll?.cancel()
  }

  get #index(): string {
    return `${this.#prefix}invalidated:idx`
  }

  #key(kind: AuthRecordKind, id: string): string {
    return `${this.#prefix}${NAMES[kind]}:${digest(id)}`
  }

  /** Families are no secrets. */
  #family(family: string): { mark: string; members: string } {
    return { mark: `${this.#prefix}invalidated:${family}`, members: `${this.#prefix}reqid:${family}` }
  }

  async #addOnce(key: string, attempt: string, ttlMs: number): Promise<boolean> {
    const keys = [key, `${this.#prefix}void:${attempt}`]
    const undo = { script: scripts.UNADD, keys, args: [attempt, LATE_MS] }
    return Number(await this.#run(scripts.ADD_ONCE, keys, [attempt, Math.ceil(ttlMs)], undo)) === 1
  }

  #open(data: Buffer, key: string): JsonObject | undefined {
    const text = this.#cipher.open(data, key)
    return text === undefined ? undefined : (JSON.parse(text) as JsonObject)
  }

  /** Repeated while Redis is away; scripts give a repetition the answer that was lost. One that is given up is taken back later. */
  async #run(script: RedisScript, keys: readonly string[], args: readonly RedisArgument[], undo?: Undo): Promise<unknown> {
    const deadline = this.#clock.monotonic() + this.#patienceMs
    const backoff = createBackoff({ baseMs: 50, maxMs: 500 })
    let isUnknown = false
    for (;;) {
      try {
        if (this.#lost.isWaiting) await this.#lost.settle(keys[0] ?? '')
        return await this.#redis.run(script, keys, args)
      } catch (error) {
        const isAway = isThvError(error, 'redis_unavailable')
        isUnknown ||= isAway
        const wait = backoff.next()
        if (!isAway || this.#clock.monotonic() + wait > deadline) {
          // Redis may have carried out before, without an answer, an operation that it refuses now, such as for want of room.
          if (isUnknown && undo !== undefined) this.#lost.add(undo)
          throw this.#unavailable(error)
        }
        await this.#clock.sleep(wait, this.#closing.signal)
      }
    }
  }

  #unavailable(cause: unknown): ThvError {
    return new ThvError('store_unavailable', 'Redis did not carry out an operation of the authorization server', { cause })
  }

  #schedule(ms: number): void {
    this.#poll?.cancel()
    if (!this.#closing.signal.aborted) this.#poll = this.#clock.setTimer(ms, () => void this.#tell())
  }

  async #tell(): Promise<void> {
    for (const [listener, watch] of this.#listeners) {
      try {
        for (const [family, left, at] of await this.#revokedSince(watch.since - OVERLAP_MS)) {
          watch.since = Math.max(watch.since, Number(at))
          if (Number(left) > 0) listener(String(family), Number(left))
        }
      } catch {
        // Redis is away: the next round tells all of it.
      }
    }
    if (this.#listeners.size > 0) this.#schedule(POLL_MS)
  }

  async #revokedSince(since: number): Promise<readonly Revoked[]> {
    const all: Revoked[] = []
    for (let offset = 0; ; offset += PAGE) {
      const args = [Math.max(0, since), offset, PAGE, `${this.#prefix}invalidated:`]
      const page = (await this.#redis.run(scripts.REVOKED_SINCE, [this.#index], args)) as Revoked[]
      all.push(...page)
      if (page.length < PAGE) return all
    }
  }
}

type Revoked = readonly [family: Buffer, leftMs: number, at: Buffer]

interface Watch {
  /** By the clock of Redis. */
  since: number
}

/** An id can be a secret that a client presents, so the store does not have it. */
function digest(id: string): string {
  return createHash('sha256').update(id).digest('base64url')
}
