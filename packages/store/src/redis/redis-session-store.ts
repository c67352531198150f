import { createHash } from 'node:crypto'
import { type Clock, systemClock, type Timer } from '@thv/kernel/clock'
import { isThvError } from '@thv/kernel/errors'
import type {
  CreateOutcome,
  EndListener,
  JsonValue,
  NewSession,
  Session,
  SessionRef,
  SessionStore,
  UpdateOutcome,
} from '../session-store.ts'
import type { RecordCipher } from './record-cipher.ts'
import type { RedisClient } from './redis-client.ts'
import { CREATE, DELETE, GET, SIZE, SWEEP, TOUCH, UPDATE } from './session-scripts.ts'

export interface RedisSessionStoreOptions {
  readonly redis: RedisClient
  readonly cipher: RecordCipher
  /** Ends with a colon. */
  readonly keyPrefix?: string | undefined
  readonly clock?: Clock
  readonly maxSessions?: number
}

interface Near<T extends JsonValue> {
  readonly session: Session<T>
  ttlMs: number
  /** By our clock. */
  endsAt: number
  readAt: number
  touchedAt: number
}

export const DEFAULT_KEY_PREFIX = 'thv:proxy:session:'
const MAX_SESSIONS = 100_000
const MAX_NEAR = 10_000
/** Changes of another replica are seen after this time. */
const NEAR_MS = 5_000
/** So long a known session is served while Redis is away. */
const AWAY_MS = 60_000
const TOUCH_MS = 30_000
const SWEEP_MS = 15_000

/**
 * Sessions that several replicas share. A copy of each session in use is kept for a few seconds, and its life is prolonged now and then, so
 * that a busy session costs no request of its own. An unreadable record counts as no session.
 */
export class RedisSessionStore<T extends JsonValue> implements SessionStore<T> {
  readonly #redis: RedisClient
  readonly #cipher: RecordCipher
  readonly #prefix: string
  readonly #index: string
  readonly #clock: Clock
  readonly #maxSessions: number
  readonly #near = new Map<string, Near<T>>()
  readonly #listeners: EndListener<T>[] = []
  #sweep: Timer | undefined
  #closed = false

  constructor({
    redis,
    cipher,
    keyPrefix = DEFAULT_KEY_PREFIX,
    clock = systemClock,
    maxSessions = MAX_SESSIONS,
  }: RedisSessionStoreOptions) {
    this.#redis = redis
    this.#cipher = cipher
    this.#prefix = keyPrefix
    this.#index = `${keyPrefix} index` // no id has a space, so no client can name it
    this.#clock = clock
    this.#maxSessions = maxSessions
  }

  async create({ id, owner, value, party = owner }: NewSession<T>, ttlMs: number): Promise<CreateOutcome> {
    if (!(ttlMs > 0)) throw new RangeError(`a session needs a lifetime above 0, not ${ttlMs}`)
    const data = this.#seal(value, { id, owner, version: 1 })
    const created = await this.#run(CREATE, id, [owner, Math.ceil(ttlMs), data, this.#maxSessions, this.#partyKey(party)]).catch(
      (error: unknown) => {
        if (error instanceof Error && error.message.startsWith('OOM')) return -1
        throw error
      },
    )
    if (created !== 1) return created === 0 ? 'exists' : 'full'
    this.#keep({ id, owner, value, version: 1 }, { ttlMs, leftMs: ttlMs })
    return 'created'
  }

  async get(ref: SessionRef): Promise<Session<T> | undefined> {
    const near = this.#known(ref)
    if (near !== undefined && this.#clock.monotonic() - near.readAt < NEAR_MS) return near.session
    try {
      return await this.#read(ref)
    } catch (error) {
      if (near !== undefined && isThvError(error, 'redis_unavailable') && this.#clock.monotonic() - near.readAt < AWAY_MS)
        return near.session
      throw error
    }
  }

  async touch(ref: SessionRef, ttlMs?: number): Promise<boolean> {
    const near = this.#known(ref)
    const now = this.#clock.monotonic()
    const wanted = ttlMs ?? near?.ttlMs
    if (near !== undefined && wanted === near.ttlMs && now - near.touchedAt < Math.min(TOUCH_MS, near.ttlMs / 4)) return true
    try {
      const touched = (await this.#run(TOUCH, ref.id, [ref.owner, ttlMs === undefined ? '' : Math.ceil(ttlMs)])) === 1
      if (!touched) this.#near.delete(ref.id)
      else if (near !== undefined && wanted !== undefined) Object.assign(near, { ttlMs: wanted, touchedAt: now, endsAt: now + wanted })
      return touched
    } catch (error) {
      if (near !== undefined && isThvError(error, 'redis_unavailable') && now - near.readAt < AWAY_MS) return true
      throw error
    }
  }

  async update(ref: SessionRef, value: T, expectedVersion: number): Promise<UpdateOutcome<T>> {
    const { id, owner } = ref
    const version = expectedVersion + 1
    const answer = await this.#run(UPDATE, id, [owner, expectedVersion, this.#seal(value, { id, owner, version })])
    const parts = Array.isArray(answer) ? answer : undefined
    if (parts === undefined) {
      this.#near.delete(id)
      return { outcome: 'missing' }
    }
    if (parts[0] === 1) {
      const session = { id, owner, value, version }
      const ttlMs = this.#near.get(id)?.ttlMs
      if (ttlMs === undefined) this.#near.delete(id)
      else this.#keep(session, { ttlMs, leftMs: ttlMs })
      return { outcome: 'updated', session }
    }
    this.#near.delete(id)
    const current = this.#open(parts[2], { id, owner, version: Number(parts[1]) })
    return current === undefined ? { outcome: 'missing' } : { outcome: 'conflict', session: current }
  }

  async delete({ id, owner }: SessionRef): Promise<boolean> {
    this.#near.delete(id)
    const deleted = (await this.#run(DELETE, id, [owner])) === 1
    if (deleted) this.#near.delete(id) // a read that was under way has just kept it
    return deleted
  }

  onEnded(listener: EndListener<T>): void {
    this.#listeners.push(listener)
    this.#armSweep()
  }

  async size(): Promise<number> {
    return Number(await this.#run(SIZE, '', []))
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#sweep?.cancel()
    this.#near.clear()
  }

  async #read({ id, owner }: SessionRef): Promise<Session<T> | undefined> {
    const answer = await this.#run(GET, id, [owner])
    const [version, data, left, ttl] = Array.isArray(answer) ? answer : []
    const session = version === undefined ? undefined : this.#open(data, { id, owner, version: Number(version) })
    if (session === undefined) this.#near.delete(id)
    else this.#keep(session, { ttlMs: Number(ttl), leftMs: Number(left) })
    return session
  }

  #known({ id, owner }: SessionRef): Near<T> | undefined {
    const near = this.#near.get(id)
    if (near === undefined || near.session.owner !== owner || this.#clock.monotonic() >= near.endsAt) return undefined
    return near
  }

  #keep(session: Session<T>, { ttlMs, leftMs }: { ttlMs: number; leftMs: number }): void {
    const now = this.#clock.monotonic()
    this.#near.delete(session.id)
    this.#near.set(session.id, { session, ttlMs, endsAt: now + leftMs, readAt: now, touchedAt: now - (ttlMs - leftMs) })
    if (this.#near.size <= MAX_NEAR) return
    const oldest = this.#near.keys().next()
    if (oldest.done !== true) this.#near.delete(oldest.value)
  }

  #run(script: Parameters<RedisClient['run']>[0], id: string, args: Parameters<RedisClient['run']>[2]): Promise<unknown> {
    return this.#redis.run(script, [this.#prefix + id, this.#index], args)
  }

  #seal(value: T, place: Place): Buffer {
    return this.#cipher.seal(JSON.stringify(value), this.#placeOf(place))
  }

  #open(data: unknown, place: Place): Session<T> | undefined {
    const text = Buffer.isBuffer(data) ? this.#cipher.open(data, this.#placeOf(place)) : undefined
    if (text === undefined) return undefined
    try {
      return { ...place, value: JSON.parse(text) as T }
    } catch {
      return undefined // written by something else, in the clear
    }
  }

  #placeOf({ id, owner, version }: Place): string {
    return `${this.#prefix}${id}\n${owner}\n${version}`
  }

  /** No id has a space, and parties may be names of people. */
  #partyKey(party: string): string {
    return `${this.#prefix} party ${createHash('sha256').update(party).digest('base64url')}`
  }

  #armSweep(): void {
    if (this.#closed) return
    this.#sweep ??= this.#clock.setTimer(SWEEP_MS * (0.5 + Math.random() / 2), () => {
      this.#sweep = undefined
      void this.sweep().finally(() => this.#armSweep())
    })
  }

  /** Reports sessions that ended; each of them reaches one replica. */
  async sweep(): Promise<void> {
    const ended = await this.#run(SWEEP, '', []).catch(() => []) // the next round tries again
    for (const entry of Array.isArray(ended) ? ended : []) {
      const [key, owner, version, data] = Array.isArray(entry)
        ? entry.map((part: unknown) => (Buffer.isBuffer(part) ? part : undefined))
        : []
      if (key === undefined || owner === undefined) continue
      const id = key.toString('utf8').slice(this.#prefix.length)
      this.#near.delete(id)
      const session = this.#open(data, { id, owner: owner.toString('utf8'), version: Number(version) })
      if (session !== undefined) for (const listener of this.#listeners) listener(session, 'expired')
    }
  }
}

interface Place {
  readonly id: string
  readonly owner: string
  readonly version: number
}
