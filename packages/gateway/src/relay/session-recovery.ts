import { randomUUID } from 'node:crypto'
import { type HeaderMap, headerText } from '@thv/http/header-map'
import { OutboundError } from '@thv/http/outbound/outbound-error'
import type { Clock } from '@thv/kernel/clock'
import { createSingleFlight } from '@thv/kernel/single-flight'
import { HEADERS } from '@thv/mcp/header-names'
import type { JsonObject } from '@thv/mcp/json-rpc'
import { METHODS, NOTIFICATIONS } from '@thv/mcp/methods'
import { parseText } from '@thv/mcp/parse-body'
import { reject } from '@thv/mcp/wire-errors'
import type { RequestContext } from '@thv/middleware/pipeline/request-context'
import type { SessionRef } from '@thv/store/session-store'
import type { Log } from '@thv/telemetry/log'
import { RejectedError } from '../response/rejected-error.ts'
import { changeSession, type HttpSession, type HttpSessionStore } from '../sessions/session-record.ts'
import { resultOf } from './ask.ts'
import type { BackendClient } from './backend-client.ts'

export interface RecoveryOptions {
  readonly store: HttpSessionStore
  readonly clock: Clock
  readonly log: Log
  readonly timeoutMs: number
  readonly onRecovered: (outcome: 'recovered' | 'lost') => void
}

/** A session that the backend does not know any more, and the request that found out. */
export interface LostSession {
  readonly backend: BackendClient
  readonly ref: SessionRef
  readonly context: RequestContext
  readonly session: HttpSession
}

/**
 * Initializes a client's session again at a backend that has forgotten it, after a restart say, without notice to the client: the
 * client's own initialize, then everything it had set. One at a time per session: all calls that found it lost wait for the same one.
 */
export class SessionRecovery {
  readonly #options: RecoveryOptions
  readonly #flights = createSingleFlight<string, HttpSession | undefined>()

  constructor(options: RecoveryOptions) {
    this.#options = options
  }

  /** The session with a new id at the backend; undefined when there is none, and the client has to initialize again itself. Rejects when the backend is not there. */
  recover(lost: LostSession): Promise<HttpSession | undefined> {
    return this.#flights.run(lost.ref.id, async () => {
      const { ref, session } = lost
      const current = (await this.#options.store.get(ref))?.value
      // Another call was faster, or the client has ended the session.
      if (current === undefined || current.backendId !== session.backendId) return current
      const recovered = await this.#begin(lost, current)
      this.#options.onRecovered(recovered === undefined ? 'lost' : 'recovered')
      if (recovered === undefined) await this.#options.store.delete(ref)
      return recovered
    })
  }

  async #begin(lost: LostSession, session: HttpSession): Promise<HttpSession | undefined> {
    const backendId = await this.#initialize(lost, session)
    if (backendId === undefined) return undefined
    const headers = { [HEADERS.sessionId]: backendId, [HEADERS.protocolVersion]: session.version }
    if (session.initialized) await this.#replay(lost, headers, { method: NOTIFICATIONS.initialized })
    if (session.level !== undefined)
      await this.#replay(lost, headers, { id: `${OWN_ID}level`, method: METHODS.setLevel, params: { level: session.level } })
    for (const [i, uri] of session.subscriptions.entries())
      await this.#replay(lost, headers, { id: `${OWN_ID}${i}`, method: METHODS.resourcesSubscribe, params: { uri } })
    return await changeSession(this.#options.store, lost.ref, (current) => ({ ...current, backendId }))
  }

  /** The new id at the backend. */
  async #initialize({ backend, ref, context }: LostSession, session: HttpSession): Promise<string | undefined> {
    const { log, timeoutMs } = this.#options
    const { initialize: body, version } = session
    const id = body === undefined ? undefined : parseText(body).id
    if (body === undefined || id === undefined) return undefined
    const set = { [HEADERS.sessionId]: undefined }
    const answer = await backend.ask(context, { method: 'POST', path: backend.ownPath, set, isOwn: true, body, id, timeoutMs })
    if (answer.status >= 500) throw notThere(answer.status)
    // Says nothing about the session, which is kept.
    if (answer.status === 401 && context.credentials !== undefined) throw new RejectedError(reject('credentials_refused'))
    const backendId = headerText(answer.headers[HEADERS.sessionId])
    if (backendId !== undefined && resultOf(answer)?.['protocolVersion'] === version) return backendId
    log.warn('could not recover a lost session', { status: answer.status, hasSession: backendId !== undefined })
    if (backendId !== undefined) await this.#end({ backend, ref, context, session }, backendId)
    return undefined
  }

  /** A setting that the backend rejects this time is missing afterwards; the session is worth more than that. */
  async #replay(lost: LostSession, set: HeaderMap, message: { id?: string; method: string; params?: JsonObject }): Promise<void> {
    const { log, timeoutMs } = this.#options
    const { backend, context } = lost
    const body = JSON.stringify({ jsonrpc: '2.0', ...message })
    const { id } = message
    const question = { method: 'POST', path: backend.ownPath, set, isOwn: true, body, timeoutMs } as const
    const answer = await backend.ask(context, { ...question, ...(id !== undefined && { id }) })
    const taken = id === undefined ? answer.status < 300 : resultOf(answer) !== undefined
    if (!taken) log.warn('a part of a session could not be replayed', { method: message.method, status: answer.status })
  }

  async #end({ backend, context }: LostSession, backendId: string): Promise<void> {
    const set = { [HEADERS.sessionId]: backendId }
    await backend.ask(context, { method: 'DELETE', path: backend.ownPath, set, isOwn: true, timeoutMs: this.#options.timeoutMs })
  }
}

/** No client's id begins with it. */
const OWN_ID = `thv-${randomUUID()}-`

function notThere(status: number): OutboundError {
  return new OutboundError('backend_unreachable', `the backend answered ${status} to initialize`, { sent: false, answered: true })
}
