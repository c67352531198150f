import { mintMark } from '@thv/gateway/sessions/id-prefix'
import type { StdioSessionRecord } from '@thv/gateway/sessions/live-sessions'
import type { Outlet } from '@thv/gateway/streams/session-streams'
import type { Clock, Timer } from '@thv/kernel/clock'
import { isLogLevel, type LogLevel, metaOf, progressTokenOf } from '@thv/mcp/envelope'
import { errorResponse, isObject, type JsonObject, type RequestId, serialise, spliceId } from '@thv/mcp/json-rpc'
import { spliceMember } from '@thv/mcp/json-splice'
import { NOTIFICATIONS } from '@thv/mcp/methods'
import type { ParsedNotification, ParsedRequest, ParsedResponse } from '@thv/mcp/parse-body'
import { NEWEST_LEGACY_VERSION } from '@thv/mcp/versions'
import { errorObjectOf, reject } from '@thv/mcp/wire-errors'
import type { ProcessLink } from '../process/process-connection.ts'
import type { LegacyCall } from './legacy-call.ts'
import type { LegacyProcess } from './legacy-process.ts'

export interface SessionOptions {
  readonly id: string
  readonly principal: string
  /** The party behind it: see `partyOf`. */
  readonly party: string
  /** The client's `initialize` as it came: its own process is greeted with it, again after every restart. */
  readonly initialize: ParsedRequest
  readonly outlet: Outlet
  readonly clock: Clock
  readonly askTimeoutMs: number
}

/** A question of the server that the client has not answered yet. */
interface Question {
  readonly link: ProcessLink
  /** The id that the server knows it by. */
  readonly id: RequestId
  readonly token: string | number | undefined
  /** As the client gets it. */
  readonly text: string
  readonly timer: Timer
}

/** The settings and open requests, in both directions, of one client of the handshake era. It outlives the process behind it. */
export class LegacySession {
  readonly id: string
  readonly principal: string
  readonly party: string
  readonly initialize: ParsedRequest
  readonly clientCapabilities: JsonObject
  readonly outlet: Outlet
  /** By the client's own ids, which are unique within a session only. */
  readonly calls = new Map<RequestId, LegacyCall>()
  version: string = NEWEST_LEGACY_VERSION
  level: LogLevel | undefined
  /** The client has said that the handshake is over. */
  isInitialized = false
  process: LegacyProcess | undefined
  lastUsedAt: number
  hasEnded = false
  readonly #options: SessionOptions
  readonly #questions = new Map<RequestId, Question>()
  readonly #mark = mintMark()
  #asked = 0

  constructor(options: SessionOptions) {
    this.id = options.id
    this.principal = options.principal
    this.party = options.party
    this.initialize = options.initialize
    this.outlet = options.outlet
    this.lastUsedAt = options.clock.monotonic()
    this.#options = options
    const capabilities = options.initialize.message.params?.['capabilities']
    this.clientCapabilities = isObject(capabilities) ? capabilities : {}
  }

  get isBeingAsked(): boolean {
    return this.#questions.size > 0
  }

  /** Nothing would be lost if it were forgotten here: no call, no question. */
  get isIdle(): boolean {
    return this.calls.size === 0 && this.#questions.size === 0
  }

  /**
   * Puts a question of the server to the client, under an id of its own, on the stream that the client opened last. Without any stream it
   * waits for one if `mayWait` says so. False if it cannot be put: then the caller refuses it.
   */
  ask(link: ProcessLink, request: ParsedRequest, mayWait: boolean): boolean {
    const stream = this.outlet.newest()
    if (stream === undefined && !mayWait) return false
    const id = `${this.#mark}.${++this.#asked}`
    const text = spliceId(request.text, id)
    const isOnTheWay = stream === undefined ? this.outlet.deliver(text) : stream.send(text) !== 'lost'
    if (!isOnTheWay) return false
    const { clock, askTimeoutMs } = this.#options
    const limitMs = stream === undefined ? Math.min(NO_STREAM_MS, askTimeoutMs) : askTimeoutMs
    const token = progressTokenOf(metaOf(request.message))
    const timer = clock.setTimer(limitMs, () => this.#giveUp(id, 'the client did not answer in time'))
    this.#questions.set(id, { link, id: request.id, token, text, timer })
    return true
  }

  /** The client's answer goes to the process that asked. False if none did: the answer is ignored. */
  answered(response: ParsedResponse): boolean {
    const question = response.id === undefined ? undefined : this.#take(response.id)
    if (question === undefined) return false
    question.link.respond(response.text, question.id)
    return true
  }

  /** Progress that a client reports on what it was asked; a token that was not given to it goes nowhere. */
  progressed(notification: ParsedNotification): boolean {
    const token = notification.message.params?.['progressToken']
    for (const question of this.#questions.values()) {
      if (question.token === undefined || question.token !== token) continue
      question.link.send(notification.text)
      return true
    }
    return false
  }

  /** The server does not want the answer any more. */
  withdrawn(link: ProcessLink, serverId: RequestId, notification: ParsedNotification): boolean {
    for (const [id, question] of this.#questions) {
      if (question.link !== link || question.id !== serverId) continue
      this.#take(id)
      this.outlet.withdraw(question.text)
      this.outlet.newest()?.send(spliceMember(notification.text, ['params', 'requestId'], JSON.stringify(id)))
      return true
    }
    return false
  }

  /** The process is gone, and its questions with it. */
  linkDown(link: ProcessLink): void {
    for (const [id, question] of this.#questions) {
      if (question.link !== link) continue
      this.#take(id)
      this.outlet.withdraw(question.text)
      const params = { requestId: id, reason: 'the server has ended' }
      this.outlet.newest()?.send(serialise({ jsonrpc: '2.0', method: NOTIFICATIONS.cancelled, params }))
    }
  }

  /** Whatever it waits for is given up on both sides. */
  end(): void {
    if (this.hasEnded) return
    this.hasEnded = true
    for (const call of [...this.calls.values()]) call.abandon('the session has ended')
    for (const id of [...this.#questions.keys()]) this.#giveUp(id, 'the session of the client has ended')
    this.outlet.end()
  }

  #giveUp(id: RequestId, detail: string): void {
    const question = this.#take(id)
    if (question === undefined) return
    this.outlet.withdraw(question.text)
    question.link.send(serialise(errorResponse(question.id, errorObjectOf(reject('internal_error', { detail })))))
  }

  #take(id: RequestId): Question | undefined {
    const question = this.#questions.get(id)
    this.#questions.delete(id)
    question?.timer.cancel()
    return question
  }
}

/** A client opens its stream right after the handshake, if it opens one at all. */
const NO_STREAM_MS = 10_000

export function recordOf(session: LegacySession): StdioSessionRecord {
  return {
    version: session.version,
    initialize: session.initialize.text,
    isInitialized: session.isInitialized,
    level: session.level ?? null,
    subscriptions: session.process?.settings.urisOf(session) ?? [],
  }
}

/** Copies the state of a record into a session made from it. */
export function restoreFrom(session: LegacySession, record: StdioSessionRecord): void {
  session.version = record.version
  session.isInitialized = record.isInitialized
  session.level = isLogLevel(record.level) ? record.level : undefined
}
