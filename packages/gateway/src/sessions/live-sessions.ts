import type { Exchange } from '@thv/http/server/exchange'
import type { Clock, Timer } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import { isValidSessionId } from '@thv/mcp/session-id'
import { type Rejection, reject, sessionRequired } from '@thv/mcp/wire-errors'
import type { Awaitable } from '@thv/middleware/pipeline/middleware'
import type { SessionStore } from '@thv/store/session-store'
import type { Log } from '@thv/telemetry/log'
import { unavailable } from '../response/backend-rejection.ts'
import { partyOf } from './party.ts'
import { UNCONFIRMED_MS } from './unconfirmed.ts'

/** The state with which another runner continues a session: its process gets the handshake and all settings again. */
export type LiveSessionRecord = {
  readonly version: string
  /** The client's `initialize`, as it came. */
  readonly initialize: string
  readonly isInitialized: boolean
  readonly level: string | null
  readonly subscriptions: readonly string[]
}

/** A session of this process, as far as its bookkeeping needs it. */
export interface LiveSession {
  readonly id: string
  readonly principal: string
  readonly party: string
  readonly outlet: { readonly isConnected: boolean }
  /** No call and no question is under way. */
  readonly isIdle: boolean
  lastUsedAt: number
  end(): void
}

export interface LiveSessionsOptions<S extends LiveSession> {
  readonly store: SessionStore<LiveSessionRecord>
  readonly clock: Clock
  readonly log: Log
  readonly ttlMs: number
  /** Makes a session out of what the store holds. */
  revive(ref: SessionKey, record: LiveSessionRecord): S | Rejection
  /** The record from which another process can revive the session. */
  recordOf(session: S): LiveSessionRecord
  /** Something else must be let go of with the session. */
  onEnd(session: S): void
}

export interface SessionKey {
  readonly id: string
  readonly principal: string
  /** See `partyOf`. */
  readonly party: string
}

/** The sessions in use here. The store says whether a session exists; this table can always be rebuilt from it. */
export class LiveSessions<S extends LiveSession> {
  readonly #options: LiveSessionsOptions<S>
  readonly #live = new Map<string, S>()
  readonly #saving = new Map<S, Promise<void>>()
  /** Sessions without a message since their `initialize`. */
  readonly #unconfirmed = new Set<S>()
  #sweeper: Timer | undefined

  constructor(options: LiveSessionsOptions<S>) {
    this.#options = options
    options.store.onEnded(({ id }) => {
      const session = this.#live.get(id)
      if (session !== undefined) this.#drop(session)
    })
  }

  get size(): number {
    return this.#live.size
  }

  all(): Iterable<S> {
    return this.#live.values()
  }

  async add(session: S): Promise<Rejection | undefined> {
    const { store, recordOf } = this.#options
    const { id, principal: owner, party } = session
    try {
      const outcome = await store.create({ id, owner, party, value: recordOf(session) }, this.#unconfirmedMs, this.#isBusy)
      if (outcome !== 'created') return unavailable('there is no room for another session', FULL_RETRY_MS)
    } catch (error) {
      return this.#storeDown(error)
    }
    this.#live.set(session.id, session)
    this.#unconfirmed.add(session)
    this.#armSweeper()
    return undefined
  }

  /** The session of that id and principal, whose life is prolonged by this. An id of another principal is unknown here. */
  find(id: string | undefined, principal: string, exchange: Exchange): Awaitable<S | Rejection> {
    if (id === undefined) return sessionRequired()
    const live = this.#live.get(id)
    if (!isValidSessionId(id) || (live !== undefined && live.principal !== principal)) return reject('session_not_found')
    const { store, ttlMs } = this.#options
    if (live === undefined || store.touchNow === undefined)
      return this.#findStored(live, { id, principal, party: partyOf(principal, exchange) })
    return this.#touched(live, store.touchNow({ id, owner: principal }, ttlMs))
  }

  async #findStored(live: S | undefined, key: SessionKey): Promise<S | Rejection> {
    const { store, ttlMs } = this.#options
    try {
      if (live === undefined) return await this.#revive(key)
      return this.#touched(live, await store.touch({ id: key.id, owner: key.principal }, ttlMs))
    } catch (error) {
      return this.#storeDown(error)
    }
  }

  #touched(live: S, isStored: boolean): S | Rejection {
    if (!isStored) {
      this.#drop(live)
      return reject('session_not_found')
    }
    this.#unconfirmed.delete(live)
    live.lastUsedAt = this.#options.clock.monotonic()
    return live
  }

  /** After something was set up that must outlive the process, or this runner. */
  save(session: S): Promise<void> {
    const before = this.#saving.get(session) ?? Promise.resolve()
    const saving = before
      .then(() => this.#write(session))
      .finally(() => this.#saving.get(session) === saving && this.#saving.delete(session))
    this.#saving.set(session, saving)
    return saving
  }

  async end(session: S): Promise<Rejection | undefined> {
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

  async #revive(key: SessionKey): Promise<S | Rejection> {
    const ref = { id: key.id, owner: key.principal }
    const stored = await this.#options.store.get(ref)
    if (stored === undefined || !(await this.#options.store.touch(ref, this.#options.ttlMs))) return reject('session_not_found')
    const raced = this.#live.get(key.id)
    if (raced !== undefined) return raced
    const session = this.#options.revive(key, stored.value)
    if ('error' in session) return session
    this.#live.set(session.id, session)
    this.#armSweeper()
    return session
  }

  async #write(session: S): Promise<void> {
    const { store, log } = this.#options
    const ref = { id: session.id, owner: session.principal }
    try {
      for (let attempt = 0; attempt < SAVE_ATTEMPTS; attempt++) {
        const stored = await store.get(ref)
        if (stored === undefined) return
        const { outcome } = await store.update(ref, this.#options.recordOf(session), stored.version)
        if (outcome !== 'conflict') return
      }
    } catch (error) {
      log.warn('a session could not be saved', { error: errorMessage(error) })
    }
  }

  #drop(session: S): void {
    if (this.#live.get(session.id) === session) this.#live.delete(session.id)
    this.#unconfirmed.delete(session)
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
      if (isInUse(session)) {
        session.lastUsedAt = now
        store.touch({ id: session.id, owner: session.principal }).catch((error) => this.#storeDown(error))
      } else if (now - session.lastUsedAt >= (this.#unconfirmed.has(session) ? this.#unconfirmedMs : ttlMs)) this.#drop(session)
    }
    if (this.#live.size > 0) this.#armSweeper()
  }

  get #unconfirmedMs(): number {
    return Math.min(UNCONFIRMED_MS, this.#options.ttlMs)
  }

  readonly #isBusy = (id: string): boolean => {
    const session = this.#live.get(id)
    return session !== undefined && isInUse(session)
  }

  #storeDown(error: unknown): Rejection {
    this.#options.log.error('the session store does not work', { error: errorMessage(error) })
    return unavailable('sessions cannot be kept now', FULL_RETRY_MS)
  }
}

/** A stream is open, or a call or question under way. */
function isInUse({ outlet, isIdle }: LiveSession): boolean {
  return outlet.isConnected || !isIdle
}

const SWEEP_MS = 60_000
const FULL_RETRY_MS = 5_000
const SAVE_ATTEMPTS = 3
