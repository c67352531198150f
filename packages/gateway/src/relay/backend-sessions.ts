import { headerText } from '@thv/http/header-map'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import { HEADERS } from '@thv/mcp/header-names'
import { METHODS } from '@thv/mcp/methods'
import { mintSessionId } from '@thv/mcp/session-id'
import type { LegacyClient } from '@thv/mcp/url-elicitation'
import { NEWEST_LEGACY_VERSION } from '@thv/mcp/versions'
import { reject } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { MessageContext, RequestContext } from '@thv/middleware/pipeline/request-context'
import type { Session, SessionRef } from '@thv/store/session-store'
import type { Log } from '@thv/telemetry/log'
import { unavailable } from '../response/backend-rejection.ts'
import { noteResponse } from '../response/outcome.ts'
import { RejectedError } from '../response/rejected-error.ts'
import { partyOf } from '../sessions/party.ts'
import { changeSession, clientOfSession, type HttpSession, type HttpSessionStore, newSession } from '../sessions/session-record.ts'
import { UNCONFIRMED_MS } from '../sessions/unconfirmed.ts'
import { resultOf } from './ask.ts'
import type { BackendClient } from './backend-client.ts'
import type { HeldAnswer } from './relay-call.ts'
import type { HttpBackendLimits } from './relay-limits.ts'
import { SessionRecovery } from './session-recovery.ts'

export interface BackendSessionsOptions {
  readonly store: HttpSessionStore
  readonly pipeline: Pipeline
  readonly clock: Clock
  readonly log: Log
  readonly limits: HttpBackendLimits
  readonly onRecovered: (outcome: 'recovered' | 'lost') => void
}

/** One use of a session by a request of its client. Everything done because of it uses the credentials of that request. */
export interface Use {
  readonly backend: BackendClient
  readonly context: RequestContext
  readonly ref: SessionRef
}

/**
 * The sessions of legacy clients. A client has an id of ours, the backend one of its own; so a backend can forget its session and the
 * client keeps its own. Backends without sessions stay so.
 */
export class BackendSessions {
  readonly #options: BackendSessionsOptions
  readonly #recovery: SessionRecovery
  /** By id of the backend: what came of the last doubt whether it is still known. */
  readonly #doubts = new Map<string, Doubt>()
  /** By id: calls and streams that are open. */
  readonly #uses = new Map<string, number>()
  /** By id: when its life was last prolonged. */
  readonly #prolonged = new Map<string, number>()

  constructor(options: BackendSessionsOptions) {
    this.#options = options
    this.#recovery = new SessionRecovery({ ...options, timeoutMs: options.limits.askTimeoutMs })
  }

  /** Forwards an initialize. The answer names our id where the backend's named its own. */
  async begin(backend: BackendClient, context: MessageContext): Promise<HeldAnswer> {
    const { exchange, outgoing, caller } = context
    const { store, limits } = this.#options
    const set = { [HEADERS.sessionId]: undefined, [HEADERS.lastEventId]: undefined }
    const question = { method: 'POST', path: backend.path(exchange), set, body: outgoing.text, timeoutMs: limits.askTimeoutMs } as const
    const answer = await backend.ask(context, { ...question, ...(outgoing.id !== undefined && { id: outgoing.id }) })
    if (answer.response !== undefined) noteResponse(context, answer.response, this.#options.pipeline)
    const backendId = headerText(answer.headers[HEADERS.sessionId])
    delete answer.headers[HEADERS.sessionId]
    const result = resultOf(answer)
    if (backendId === undefined || result === undefined) return answer

    const version = result['protocolVersion']
    const ref = { id: mintSessionId(), owner: caller.principal }
    const value = newSession(backendId, typeof version === 'string' ? version : NEWEST_LEGACY_VERSION, outgoing.text)
    const unconfirmedMs = Math.min(UNCONFIRMED_MS, limits.sessionTtlMs)
    const forget = () => this.#endAtBackend({ backend, context, ref }, backendId)
    const isWanted =
      !exchange.closed &&
      (await store
        .create({ ...ref, party: partyOf(caller.principal, exchange), value }, unconfirmedMs, this.#isBusy)
        .catch((error: unknown) => forget().finally(() => Promise.reject(error)))) === 'created'
    if (!isWanted) {
      await forget()
      throw new RejectedError(unavailable('there are too many sessions'))
    }
    answer.headers[HEADERS.sessionId] = ref.id
    return answer
  }

  /**
   * Does `attempt` with the backend's id of the session. When the backend turns out to have forgotten it, the session is initialized again and
   * the attempt repeated, once: what was refused for want of a session was not carried out. RejectedError (404) when there is no session.
   */
  async use(use: Use, attempt: (backendId: string) => Promise<HeldAnswer | undefined>): Promise<HeldAnswer | undefined> {
    const { value } = await this.#find(use.ref)
    const { id } = use.ref
    this.#uses.set(id, (this.#uses.get(id) ?? 0) + 1)
    try {
      const held = await attempt(value.backendId)
      if (held === undefined || !(await this.#isLost(use, value, held))) return held
      const session = await this.#recovery.recover({ ...use, session: value })
      if (session === undefined) throw new RejectedError(reject('session_not_found'))
      return await attempt(session.backendId)
    } finally {
      const left = (this.#uses.get(id) ?? 1) - 1
      if (left > 0) this.#uses.set(id, left)
      else this.#uses.delete(id)
    }
  }

  /** The client of a session, as it described itself. Undefined where that cannot be read. */
  async clientOf(ref: SessionRef): Promise<LegacyClient | undefined> {
    const session = await this.#options.store.get(ref).catch(() => undefined)
    return session && clientOfSession(session.value)
  }

  /** Remembers what a session has become. */
  async change(ref: SessionRef, change: (session: HttpSession) => HttpSession): Promise<void> {
    await changeSession(this.#options.store, ref, change)
  }

  /** A session with an open stream is in use, however silent both sides are: until it is disposed of, the session does not expire. */
  keepAlive(ref: SessionRef): Disposable {
    const { clock, limits } = this.#options
    const arm = () =>
      clock.setTimer(limits.sessionTtlMs / TOUCHES_PER_TTL, () => {
        this.#touch(ref)
        timer = arm()
      })
    let timer = arm()
    return { [Symbol.dispose]: () => timer.cancel() }
  }

  /** Afterwards there is no session, unless the backend has refused to end it. */
  async end({ backend, context, ref }: Use): Promise<HeldAnswer> {
    const { store, limits } = this.#options
    const { value } = await this.#find(ref)
    const set = { [HEADERS.sessionId]: value.backendId }
    const answer = await backend
      .ask(context, { method: 'DELETE', path: backend.path(context.exchange), set, timeoutMs: limits.askTimeoutMs })
      .catch((error: unknown) => {
        this.#options.log.info('a session could not be ended at the backend', { error: errorMessage(error) })
        return GONE
      })
    if (answer.status >= 400 && answer.status !== 404 && answer.status < 500) return answer
    await store.delete(ref)
    delete answer.headers[HEADERS.sessionId]
    return answer.status < 300 ? answer : GONE
  }

  async #find(ref: SessionRef): Promise<Session<HttpSession>> {
    let session: Session<HttpSession> | undefined
    try {
      session = await this.#options.store.get(ref)
    } catch (error) {
      this.#options.log.error('sessions cannot be read', { error: errorMessage(error) })
      throw new RejectedError(unavailable('sessions cannot be read just now'))
    }
    if (session === undefined) throw new RejectedError(reject('session_not_found'))
    this.#prolong(ref)
    return session
  }

  /** Not with every request: what a session lives longer by a few seconds is not worth a step of the store. */
  #prolong(ref: SessionRef): void {
    const { clock, limits } = this.#options
    const now = clock.monotonic()
    if (now - (this.#prolonged.get(ref.id) ?? -Infinity) < Math.min(MAX_PROLONG_MS, limits.sessionTtlMs / 20)) return
    if (this.#prolonged.size >= MAX_REMEMBERED) this.#prolonged.clear()
    this.#prolonged.set(ref.id, now)
    this.#touch(ref)
  }

  readonly #isBusy = (id: string): boolean => this.#uses.has(id)

  #touch(ref: SessionRef): void {
    const { store, log, limits } = this.#options
    store
      .touch(ref, limits.sessionTtlMs)
      .catch((error: unknown) => log.warn('the life of a session was not prolonged', { error: errorMessage(error) }))
  }

  /** 404 says so. 400 may have many reasons; some servers have this one, and then they refuse a ping too. */
  async #isLost(use: Use, session: HttpSession, { status }: HeldAnswer): Promise<boolean> {
    if (status !== 400) return status === 404
    const now = this.#options.clock.monotonic()
    const known = this.#doubts.get(session.backendId)
    if (known !== undefined && now - known.at < DOUBT_MS) return await known.isLost
    if (this.#doubts.size >= MAX_REMEMBERED) this.#doubts.clear()
    const isLost = this.#refusesPing(use, session)
    this.#doubts.set(session.backendId, { at: now, isLost })
    return await isLost
  }

  async #refusesPing({ backend, context }: Use, { backendId, version }: HttpSession): Promise<boolean> {
    const set = { [HEADERS.sessionId]: backendId, [HEADERS.protocolVersion]: version }
    const timeoutMs = this.#options.limits.askTimeoutMs
    const question = { method: 'POST', path: backend.ownPath, set, isOwn: true, body: PING, id: PING_ID, timeoutMs } as const
    const { status } = await backend.ask(context, question)
    return status === 400 || status === 404
  }

  async #endAtBackend({ backend, context }: Use, backendId: string): Promise<void> {
    const set = { [HEADERS.sessionId]: backendId }
    const { askTimeoutMs: timeoutMs } = this.#options.limits
    await backend.ask(context, { method: 'DELETE', path: backend.ownPath, set, isOwn: true, timeoutMs })
  }
}

const GONE: HeldAnswer = { status: 204, headers: {}, body: Buffer.alloc(0) }

interface Doubt {
  readonly at: number
  readonly isLost: Promise<boolean>
}

/** A client that sends bad requests must not make the proxy ask each time. */
const DOUBT_MS = 5_000
const MAX_PROLONG_MS = 10_000
const TOUCHES_PER_TTL = 3
const MAX_REMEMBERED = 10_000

const PING_ID = 'thv-is-it-there'
const PING = JSON.stringify({ jsonrpc: '2.0', id: PING_ID, method: METHODS.ping })
