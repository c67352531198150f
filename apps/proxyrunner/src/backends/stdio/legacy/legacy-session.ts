import { ClientQuestions } from '@thv/gateway/sessions/client-questions'
import type { LiveSessionRecord } from '@thv/gateway/sessions/live-sessions'
import type { Outlet } from '@thv/gateway/streams/session-streams'
import type { Clock } from '@thv/kernel/clock'
import { isLogLevel, type LogLevel } from '@thv/mcp/envelope'
import { isObject, type JsonObject, type RequestId } from '@thv/mcp/json-rpc'
import type { ParsedRequest } from '@thv/mcp/parse-body'
import { NEWEST_LEGACY_VERSION } from '@thv/mcp/versions'
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
  readonly questions: ClientQuestions

  constructor(options: SessionOptions) {
    this.id = options.id
    this.principal = options.principal
    this.party = options.party
    this.initialize = options.initialize
    this.outlet = options.outlet
    this.lastUsedAt = options.clock.monotonic()
    this.questions = new ClientQuestions(options)
    const capabilities = options.initialize.message.params?.['capabilities']
    this.clientCapabilities = isObject(capabilities) ? capabilities : {}
  }

  /** Nothing would be lost if it were forgotten here: no call, no question. */
  get isIdle(): boolean {
    return this.calls.size === 0 && this.questions.size === 0
  }

  /** Whatever it waits for is given up on both sides. */
  end(): void {
    if (this.hasEnded) return
    this.hasEnded = true
    for (const call of [...this.calls.values()]) call.abandon('the session has ended')
    this.questions.end()
    this.outlet.end()
  }
}

export function recordOf(session: LegacySession): LiveSessionRecord {
  return {
    version: session.version,
    initialize: session.initialize.text,
    isInitialized: session.isInitialized,
    level: session.level ?? null,
    subscriptions: session.process?.settings.urisOf(session) ?? [],
  }
}

/** Copies the state of a record into a session made from it. */
export function restoreFrom(session: LegacySession, record: LiveSessionRecord): void {
  session.version = record.version
  session.isInitialized = record.isInitialized
  session.level = isLogLevel(record.level) ? record.level : undefined
}
