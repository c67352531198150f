import { mostVerbose } from '@thv/gateway/streams/log-levels'
import { ACCEPTED, type Accepted, Subscriptions } from '@thv/gateway/streams/subscriptions'
import type { LogLevel } from '@thv/mcp/envelope'
import { isErrorResponse, serialise } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'
import type { ParsedResponse } from '@thv/mcp/parse-body'
import { isRejection, type Rejection } from '@thv/mcp/wire-errors'
import type { ProcessLink } from '../process/process-connection.ts'
import { requestOf } from '../process/request.ts'
import type { LegacySession } from './legacy-session.ts'

/** A process's answer to a request on behalf of a session; `answer` if it was no plain consent. */
export type Consent = Accepted | { readonly accepted: false; readonly answer: ParsedResponse | Rejection }

/**
 * The settings of all sessions of one process. The process has a single client, the runner, so it receives what suits all of
 * them: every URI that one has subscribed to, and the most verbose log level. A process that follows another receives all of it again.
 */
export class ProcessSettings {
  readonly #sessions: ReadonlySet<LegacySession>
  readonly #limits: { readonly idleMs: number }
  readonly #subscriptions = new Subscriptions<LegacySession>()
  #level: LogLevel | undefined
  #levelTurn: Promise<unknown> = Promise.resolve()

  /** `timeoutMs`: for each answer of the process. */
  constructor(sessions: ReadonlySet<LegacySession>, timeoutMs: number) {
    this.#sessions = sessions
    this.#limits = { idleMs: timeoutMs }
  }

  /** The settings that the process received last. */
  get level(): LogLevel | undefined {
    return this.#level
  }

  subscribersOf(uri: string): ReadonlySet<LegacySession> {
    return this.#subscriptions.subscribersOf(uri)
  }

  urisOf(session: LegacySession): string[] {
    return this.#subscriptions.uris.filter((uri) => this.#subscriptions.subscribersOf(uri).has(session))
  }

  subscribe(session: LegacySession, uri: string, link: ProcessLink): Promise<Consent> {
    return this.#subscriptions.subscribe(session, uri, () => this.#ask(link, session, subscribeText(METHODS.resourcesSubscribe, uri)))
  }

  unsubscribe(session: LegacySession, uri: string, link: ProcessLink): Promise<Consent> {
    return this.#subscriptions.unsubscribe(session, uri, () => this.#ask(link, session, subscribeText(METHODS.resourcesUnsubscribe, uri)))
  }

  /** One after another, or the process could end up with the level of who came first. */
  setLevel(session: LegacySession, level: LogLevel, link: ProcessLink): Promise<Consent> {
    const turn = this.#levelTurn.then(async (): Promise<Consent> => {
      const wanted = mostVerbose([level, ...this.#levels(session)]) ?? level
      const consent = wanted === this.#level ? ACCEPTED : await this.#ask(link, session, levelText(wanted))
      if (!consent.accepted) return consent
      session.level = level
      this.#level = wanted
      return consent
    })
    this.#levelTurn = turn
    return turn
  }

  /** A session has come that another runner knew with these. A process that is not up receives them when it is. */
  joined(session: LegacySession, uris: readonly string[], link: ProcessLink | undefined): void {
    this.#retell(METHODS.resourcesSubscribe, this.#subscriptions.restore(session, uris), link)
  }

  left(session: LegacySession, link: ProcessLink | undefined): void {
    this.#retell(METHODS.resourcesUnsubscribe, this.#subscriptions.leave(session), link)
  }

  /** Never rejects; what the new process refuses of the old is lost. */
  async replay(link: ProcessLink): Promise<void> {
    this.#level = mostVerbose(this.#levels())
    const texts = this.#subscriptions.uris.map((uri) => subscribeText(METHODS.resourcesSubscribe, uri))
    if (this.#level !== undefined) texts.push(levelText(this.#level))
    await Promise.all(texts.map((text) => requestOf(link, text, this.#limits)))
  }

  #retell(method: string, uris: readonly string[], link: ProcessLink | undefined): void {
    if (link === undefined) return
    for (const uri of uris) void requestOf(link, subscribeText(method, uri), this.#limits)
    const level = mostVerbose(this.#levels())
    if (level === undefined || level === this.#level) return
    this.#level = level
    void requestOf(link, levelText(level), this.#limits)
  }

  #levels(without?: LegacySession): (LogLevel | undefined)[] {
    return [...this.#sessions].filter((session) => session !== without).map(({ level }) => level)
  }

  async #ask(link: ProcessLink, session: LegacySession, text: string): Promise<Consent> {
    const answer = await requestOf(link, text, { ...this.#limits, owner: session, party: session.party })
    return isRejection(answer) || isErrorResponse(answer.message) ? { accepted: false, answer } : ACCEPTED
  }
}

function subscribeText(method: string, uri: string): string {
  return serialise({ jsonrpc: '2.0', id: 0, method, params: { uri } })
}

function levelText(level: LogLevel): string {
  return serialise({ jsonrpc: '2.0', id: 0, method: METHODS.setLevel, params: { level } })
}
