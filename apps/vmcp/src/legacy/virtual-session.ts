import type { LiveSession, LiveSessionRecord } from '@thv/gateway/sessions/live-sessions'
import type { SessionStreams } from '@thv/gateway/streams/session-streams'
import type { Clock } from '@thv/kernel/clock'
import { SmallMap } from '@thv/kernel/small-map'
import { fillsForms, relayedCapabilities } from '@thv/mcp/bridge/projections'
import { isLink, legacyQuestion, type Question } from '@thv/mcp/bridge/questions'
import type { ClientHandler, ClientHandlers, Listening, McpClient } from '@thv/mcp/client/mcp-client'
import { isLogLevel, LOG_LEVELS, type LogLevel } from '@thv/mcp/envelope'
import { type JsonObject, type JsonRpcNotification, type RequestId, serialise } from '@thv/mcp/json-rpc'
import { METHODS, NOTIFICATIONS } from '@thv/mcp/methods'
import { type LegacyClient, opensLinks } from '@thv/mcp/url-elicitation'
import { type LegacyVersion, NEWEST_LEGACY_VERSION, negotiateVersion } from '@thv/mcp/versions'
import type { Log } from '@thv/telemetry/log'
import { LEFT_OUT_LINK, withoutLinks } from '@thv/telemetry/redact'
import { failureText } from '../members/failure-text.ts'
import { LocalRefusal } from '../members/local-refusal.ts'
import type { Member } from '../members/member.ts'
import { ClientRefused } from '../route/client-refused.ts'
import type { VirtualCall } from '../route/virtual-call.ts'
import { ClientQuestions, type SendToClient } from './client-questions.ts'

export interface VirtualSessionOptions {
  readonly id: string
  readonly principal: string
  readonly party: string
  /** Params of the client's `initialize`. */
  readonly params: JsonObject
  readonly outlet: SessionStreams
  readonly clock: Clock
  readonly log: Log
}

/** One session of a legacy client, with a session of its own at each backend that it has used. */
export class VirtualSession implements LiveSession {
  readonly id: string
  readonly principal: string
  readonly party: string
  readonly params: JsonObject
  readonly outlet: SessionStreams
  readonly version: LegacyVersion
  readonly questions: ClientQuestions
  /** By the client's own ids. */
  readonly calls = new SmallMap<RequestId, VirtualCall>()
  level: LogLevel | undefined
  isInitialized = false
  lastUsedAt: number
  readonly #capabilities: JsonObject
  readonly #clients = new Map<Member, McpClient>()
  readonly #subscriptions = new Map<string, { readonly member: Member; readonly opening: Promise<Listening> }>()
  /** Ids of the latest links that the user has opened, by the way to the client of their call. */
  #links: WeakMap<SendToClient, readonly string[]> | undefined
  readonly #log: Log
  #hasEnded = false

  constructor({ id, principal, party, params, outlet, clock, log }: VirtualSessionOptions) {
    this.id = id
    this.principal = principal
    this.party = party
    this.params = params
    this.outlet = outlet
    this.version = negotiateVersion(params['protocolVersion'])
    this.questions = new ClientQuestions(clock)
    this.lastUsedAt = clock.monotonic()
    this.#capabilities = relayedCapabilities(params['capabilities'])
    this.#log = log
  }

  get isIdle(): boolean {
    return this.calls.size === 0 && this.questions.size === 0
  }

  /** The client of a backend for this session; opened with the first call. */
  clientOf(member: Member): McpClient {
    let client = this.#clients.get(member)
    if (client === undefined) {
      client = member.open({
        capabilities: this.#capabilities,
        legacyVersion: this.version,
        handlers: this.handlers((text) => this.outlet.deliver(text)),
        onNotification: (notification) => this.#notified(notification),
      })
      this.#clients.set(member, client)
    }
    return client
  }

  /** The backend has left: its client is closed once its calls have ended, and a successor takes over the subscriptions. */
  drop(member: Member, successor: Member | undefined): void {
    const client = this.#clients.get(member)
    if (client === undefined) return
    this.#clients.delete(member)
    const uris = [...this.#subscriptions].filter(([, subscription]) => subscription.member === member).map(([uri]) => uri)
    for (const uri of uris) this.#subscriptions.delete(uri)
    member.release(client)
    if (successor !== undefined) for (const uri of uris) this.subscribe(successor, uri).catch((error: unknown) => this.#warn(error))
  }

  get client(): LegacyClient {
    return { capabilities: this.#capabilities, version: this.version }
  }

  /** Whether the client can show a form. One that names no mode means forms. */
  get canFillForms(): boolean {
    return fillsForms(this.#capabilities)
  }

  /** Answers questions of a backend by asking the client, for what the client declared. */
  handlers(send: SendToClient): ClientHandlers {
    const ask =
      (method: string): ClientHandler =>
      (params, { signal }) =>
        this.#ask({ method, params }, send, signal)
    const { sampling, elicitation, roots } = this.#capabilities
    return {
      ...(sampling !== undefined && { sampling: ask(METHODS.createMessage) }),
      ...(elicitation !== undefined && { elicitation: ask(METHODS.elicit) }),
      ...(roots !== undefined && { roots: ask(METHODS.rootsList) }),
    }
  }

  wantsLog({ level }: JsonObject): boolean {
    return this.level === undefined || !isLogLevel(level) || LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(this.level)
  }

  /** Sets the level at the backends that are connected and speak the legacy era; others get it with each request. */
  async setLevel(level: LogLevel): Promise<void> {
    this.level = level
    await Promise.all([...this.#clients.values()].map((client) => this.applyLevel(client)))
  }

  /** A level that a backend does not take is no failure of the client's request. */
  async applyLevel(client: McpClient): Promise<void> {
    if (this.level === undefined || client.era !== 'legacy' || client.capabilities['logging'] === undefined) return
    await client.request(METHODS.setLevel, { level: this.level }, { timeoutMs: SETTING_MS }).catch((error: unknown) => this.#warn(error))
  }

  async subscribe(member: Member, uri: string): Promise<void> {
    const known = this.#subscriptions.get(uri)
    if (known !== undefined) return void (await known.opening)
    if (this.#subscriptions.size >= MAX_SUBSCRIPTIONS)
      throw new LocalRefusal({ code: -32602, message: `a session may subscribe to ${MAX_SUBSCRIPTIONS} resources` })
    if (recordBytes(this.params, [...this.subscriptions, uri]) > MAX_RECORD_BYTES)
      throw new LocalRefusal({
        code: -32602,
        message: `what a session subscribes to may take ${MAX_RECORD_BYTES} bytes with its handshake`,
      })
    const onNotification = (notification: JsonRpcNotification) => this.#deliver(notification)
    const opening = this.clientOf(member).listen({ resourceSubscriptions: [uri] }, { timeoutMs: SETTING_MS, onNotification })
    const subscription = { member, opening }
    this.#subscriptions.set(uri, subscription)
    try {
      await opening
    } catch (error) {
      if (this.#subscriptions.get(uri) === subscription) this.#subscriptions.delete(uri)
      throw error
    }
  }

  get subscriptions(): readonly string[] {
    return [...this.#subscriptions.keys()]
  }

  async unsubscribe(uri: string): Promise<void> {
    const subscription = this.#subscriptions.get(uri)
    this.#subscriptions.delete(uri)
    await (await subscription?.opening)?.close()
  }

  /** The roots of the client have changed: backends that it is connected to may ask again. */
  rootsChanged(): void {
    for (const client of this.#clients.values())
      if (client.era === 'legacy') client.notify(NOTIFICATIONS.rootsListChanged).catch((error: unknown) => this.#warn(error))
  }

  /** Ends the sessions at all backends too. */
  end(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    for (const [, call] of this.calls.entries()) call.abandon('the session has ended')
    this.questions.end()
    this.outlet.end()
    for (const client of this.#clients.values()) void client.close()
  }

  /** The call whose questions went this way has ended: links that got their ids here are done. */
  linksDone(send: SendToClient): void {
    for (const elicitationId of this.#links?.get(send) ?? [])
      this.#deliver({ jsonrpc: '2.0', method: NOTIFICATIONS.elicitationComplete, params: { elicitationId } })
  }

  async #ask(given: Question, send: SendToClient, signal: AbortSignal): Promise<JsonObject> {
    if (given.method === METHODS.elicit && !isLink(given) && !this.canFillForms)
      throw new ClientRefused({ code: -32602, message: 'this client shows links only, and the server asks it to fill in a form' })
    const question = legacyQuestion(given, this.version)
    if (!isLink(given)) return await this.questions.ask(question, send, signal)
    // Only clients that declared it are shown links; a person may read the one in the refusal.
    if (this.version !== NEWEST_LEGACY_VERSION || !opensLinks(this.#capabilities)) {
      const { url, message } = given.params
      // One that logs could not leave out is not shown either.
      const link = typeof url === 'string' && withoutLinks(url) === LEFT_OUT_LINK ? url : 'a link'
      throw new ClientRefused({ code: -32602, message: `this client opens no links; the server asks to open ${link} (${message})` })
    }
    const answer = await this.questions.ask(question, send, signal)
    const { elicitationId: id } = question.params
    if (question !== given && typeof id === 'string' && answer['action'] === 'accept') {
      this.#links ??= new WeakMap()
      this.#links.set(send, [...(this.#links.get(send) ?? []), id].slice(-MAX_LINKS))
    }
    return answer
  }

  /** Changes of lists are heard once for all sessions, by the view. */
  #notified(notification: JsonRpcNotification): void {
    if (notification.method === NOTIFICATIONS.elicitationComplete) this.#deliver(notification)
    if (notification.method === NOTIFICATIONS.message && this.wantsLog(notification.params ?? {})) this.#deliver(notification, 'log')
  }

  #deliver({ method, params }: JsonRpcNotification, kind?: 'log'): void {
    const text = serialise({ jsonrpc: '2.0', method, ...(params !== undefined && { params }) })
    this.outlet.deliver(text, kind === undefined ? {} : { kind })
  }

  #warn(error: unknown): void {
    this.#log.info('could not pass on a setting of a session', { error: failureText(error) })
  }
}

const SETTING_MS = 15_000
const MAX_SUBSCRIPTIONS = 1_000
/** That wait for the end of one call. A backend may also ask outside of calls, until the session ends. */
const MAX_LINKS = 100
/** Of all that is stored about a session. */
export const MAX_RECORD_BYTES = 64 << 10
/** For the names of the members, and the settings that have a fixed size. */
const SETTINGS_BYTES = 256

/** At most so many bytes does the record of a session take. Pure. */
export function recordBytes(params: JsonObject, subscriptions: readonly string[]): number {
  const stored = [JSON.stringify(params), ...subscriptions]
  return stored.reduce((bytes, text) => bytes + Buffer.byteLength(JSON.stringify(text)) + 1, SETTINGS_BYTES)
}

export function recordOf(session: VirtualSession): LiveSessionRecord {
  return {
    version: session.version,
    initialize: JSON.stringify(session.params),
    isInitialized: session.isInitialized,
    level: session.level ?? null,
    subscriptions: session.subscriptions,
  }
}
