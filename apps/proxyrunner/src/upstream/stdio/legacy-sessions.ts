import type { Clock, Timer } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import { isLogLevel } from '@thv/mcp/envelope'
import { isValidSessionId } from '@thv/mcp/session-id'
import { type Rejection, reject, sessionRequired } from '@thv/mcp/wire-errors'
import type { SessionStore } from '@thv/store/session-store'
import type { RunnerLog } from '../../runner-log.ts'
import { unavailable } from '../backend-failure.ts'
import type { LegacySession } from './legacy-session.ts'

/** What another runner needs to go on with a session: its process is greeted, and told everything, again. */
export type StdioSessionRecord = {
  readonly version: string
  /** The client's `initialize`, as it came. */
  readonly initialize: string
  readonly isInitialized: boolean
  readonly level: string | null
  readonly subscriptions: readonly string[]
}

export interface SessionsOptions {
  readonly store: SessionStore<StdioSessionRecord>
  readonly clock: Clock
  readonly log: RunnerLog
  readonly ttlMs: number
  /** Makes a session out of what the store holds. */
  revive(ref: SessionKey, record: StdioSessionRecord): LegacySession | Rejection
  /** Something else must be let go of with the session. */
  onEnd(session: LegacySession): void
}

export interface SessionKey {
  readonly id: string
  readonly principal: string
}

/** The sessions in use here. The store says whether a session exists; what is kept here can always be made anew from it. */
export class LegacySessions {
  readonly #options: SessionsOptions
  readonly #live = new Map<string, LegacySession>()
  readonly #saving = new Map<LegacySession, Promise<void>>()
  #sweeper: Timer | undefined

  constructor(options: SessionsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#live.size
  }

  all(): Iterable<LegacySession> {
    return this.#live.values()
  }

  async add(session: LegacySession): Promise<Rejection | undefined> {
    const { store, ttlMs } = this.#options
    try {
      const outcome = await store.create({ id: session.id, owner: session.principal, value: recordOf(session) }, ttlMs)
      if (outcome !== 'created') return unavailable('there is no room for another session', FULL_RETRY_MS)
    } catch (error) {
      return this.#storeDown(error)
    }
    this.#live.set(session.id, session)
    this.#armSweeper()
    return undefined
  }

  /** The session of that id and principal, whose life is prolonged by this. Whose id it is otherwise is nobody's business (H11). */
  async find(id: string | undefined, principal: string): Promise<LegacySession | Rejection> {
    if (id === undefined) return sessionRequired()
    const live = this.#live.get(id)
    if (!isValidSessionId(id) || (live !== undefined && live.principal !== principal)) return reject('session_not_found')
    try {
      if (live === undefined) return await this.#revive({ id, principal })
      if (await this.#options.store.touch({ id, owner: principal })) {
        live.lastUsedAt = this.#options.clock.monotonic()
        return live
      }
    } catch (error) {
      return this.#storeDown(error)
    }
    this.#drop(live)
    return reject('session_not_found')
  }

  /** After something was set up that must outlive the process, or this runner. */
  save(session: LegacySession): Promise<void> {
    const before = this.#saving.get(session) ?? Promise.resolve()
    const saving = before
      .then(() => this.#write(session))
      .finally(() => this.#saving.get(session) === saving && this.#saving.delete(session))
    this.#saving.set(session, saving)
    return saving
  }

  async end(session: LegacySession): Promise<Rejection | undefined> {
    try {
      await this.#options.store.delete({ id: session.id, owner: session.principal })
    } catch (error) {
      return this.#storeDown(error)
    }
    this.#drop(session)
    return undefined
  }

  close(): void {
    this.#sweeper?.cancel()
    for (const session of [...this.#live.values()]) this.#drop(session)
  }

  async #revive(key: SessionKey): Promise<LegacySession | Rejection> {
    const ref = { id: key.id, owner: key.principal }
    const stored = await this.#options.store.get(ref)
    if (stored === undefined || !(await this.#options.store.touch(ref))) return reject('session_not_found')
    const raced = this.#live.get(key.id)
    if (raced !== undefined) return raced
    const session = this.#options.revive(key, stored.value)
    if ('error' in session) return session
    this.#live.set(session.id, session)
    this.#armSweeper()
    return session
  }

  async #write(session: LegacySession): Promise<void> {
    const { store, log } = this.#options
    const ref = { id: session.id, owner: session.principal }
    try {
      for (let attempt = 0; attempt < SAVE_ATTEMPTS; attempt++) {
        const stored = await store.get(ref)
        if (stored === undefined) return
        const { outcome } = await store.update(ref, recordOf(session), stored.version)
        if (outcome !== 'conflict') return
      }
    } catch (error) {
      log.warn('a session could not be saved', { error: errorMessage(error) })
    }
  }

  #drop(session: LegacySession): void {
    if (this.#live.get(session.id) === session) this.#live.delete(session.id)
    session.end()
    this.#options.onEnd(session)
  }

  #armSweeper(): void {
    const { clock, ttlMs } = this.#options
    this.#sweeper ??= clock.setTimer(Math.min(SWEEP_MS, ttlMs / 4), () => this.#sweep())
  }

  /** An open stream is use, also when nothing is said; without one, what has not been used for its time is over. */
  #sweep(): void {
    this.#sweeper = undefined
    const { clock, store, ttlMs } = this.#options
    const now = clock.monotonic()
    for (const session of [...this.#live.values()]) {
      if (session.outlet.isConnected || !session.isIdle) {
        session.lastUsedAt = now
        store.touch({ id: session.id, owner: session.principal }).catch((error) => this.#storeDown(error))
      } else if (now - session.lastUsedAt >= ttlMs) this.#drop(session)
    }
    if (this.#live.size > 0) this.#armSweeper()
  }

  #storeDown(error: unknown): Rejection {
    this.#options.log.error('the session store does not work', { error: errorMessage(error) })
    return unavailable('sessions cannot be kept now', FULL_RETRY_MS)
  }
}

export function recordOf(session: LegacySession): StdioSessionRecord {
  return {
    version: session.version,
    initialize: session.initialize.text,
    isInitialized: session.isInitialized,
    level: session.level ?? null,
    subscriptions: session.process?.settings.urisOf(session) ?? [],
  }
}

/** Puts what a record says into a session made from it. */
export function restoreFrom(session: LegacySession, record: StdioSessionRecord): void {
  session.version = record.version
  session.isInitialized = record.isInitialized
  session.level = isLogLevel(record.level) ? record.level : undefined
}

const SWEEP_MS = 60_000
const FULL_RETRY_MS = 5_000
const SAVE_ATTEMPTS = 3
