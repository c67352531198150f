import { wantsLevel } from '@thv/gateway/streams/log-levels'
import { errorResponse, isErrorResponse, isObject, isRequestId, type RequestId, serialise } from '@thv/mcp/json-rpc'
import { METHODS, NOTIFICATIONS } from '@thv/mcp/methods'
import type { ParsedNotification, ParsedRequest, ParsedResponse } from '@thv/mcp/parse-body'
import { errorObjectOf, reject } from '@thv/mcp/wire-errors'
import { attributeRequest, type Claims, ownerOf } from '../process/attribution.ts'
import { type Greeting, INITIALIZED } from '../process/handshake.ts'
import type { ProcessLink } from '../process/process-connection.ts'
import type { ProcessSlot, SlotListener } from '../process/process-slot.ts'
import type { StdioDeps } from '../process/stdio-deps.ts'
import type { DropReason } from '../process/stdio-metrics.ts'
import type { LegacySession } from './legacy-session.ts'
import { ProcessSettings } from './process-settings.ts'

/**
 * A process of the legacy era and the sessions that use it: one, if it is its own, or many. The process believes that it has a single
 * client; what it says of its own accord is given to the session that it is for.
 */
export class LegacyProcess implements SlotListener {
  readonly sessions = new Set<LegacySession>()
  readonly settings: ProcessSettings
  readonly #deps: StdioDeps
  readonly #own: LegacySession | undefined
  /** Whom the server's open questions were put to, by the server's ids. */
  readonly #questions = new Map<RequestId, LegacySession>()
  /** Whom a URL was shown to, until the server says that it is done with. */
  readonly #elicitations = new Map<string, LegacySession>()
  #slot: ProcessSlot | undefined

  /** `own`: the only session that it will ever have. */
  constructor(deps: StdioDeps, own?: LegacySession) {
    this.#deps = deps
    this.#own = own
    this.settings = new ProcessSettings(this.sessions, deps.config.idleTimeoutMs)
  }

  get slot(): ProcessSlot {
    if (this.#slot === undefined) throw new RangeError('a process must be given its slot first')
    return this.#slot
  }

  set slot(slot: ProcessSlot) {
    this.#slot = slot
  }

  /** `uris`: what a session has subscribed to that was known to another runner. */
  join(session: LegacySession, uris: readonly string[] = []): void {
    this.sessions.add(session)
    session.process = this
    this.settings.joined(session, uris, this.slot.link)
  }

  /** A process of its own ends with its session and needs no notification. */
  leave(session: LegacySession): void {
    if (this.sessions.delete(session)) this.settings.left(session, this.#own === undefined ? this.slot.link : undefined)
  }

  /** A new process knows none of the settings of the old one. */
  async prepare(link: ProcessLink, greeting: Greeting): Promise<void> {
    if (greeting.era !== 'legacy') return
    if (this.#own === undefined || this.#own.isInitialized) link.send(INITIALIZED)
    await this.settings.replay(link)
  }

  onRequest(slot: ProcessSlot, request: ParsedRequest): void {
    const link = slot.current
    const { method, id } = request
    const target = attributeRequest(this.#claims(link), method, request.message.params)
    if ('to' in target && link !== undefined && target.to.questions.ask(link, request, this.#own !== undefined)) {
      this.#remember(request, target.to)
      return
    }
    this.#deps.metrics.dropped('request', 'to' in target ? 'no_stream' : 'unattributed')
    link?.send(serialise(errorResponse(id, errorObjectOf(reject('method_not_found', { detail: `${method} cannot reach a client now` })))))
  }

  onNotification(slot: ProcessSlot, notification: ParsedNotification): void {
    const { method, message, text } = notification
    if (method === NOTIFICATIONS.toolsListChanged) this.#deps.onToolsChanged()
    switch (method) {
      case NOTIFICATIONS.toolsListChanged:
      case NOTIFICATIONS.promptsListChanged:
      case NOTIFICATIONS.resourcesListChanged:
        for (const session of this.sessions) session.outlet.deliver(text, { key: method })
        return
      case NOTIFICATIONS.resourcesUpdated:
        this.#updated(message.params?.['uri'], notification)
        return
      case NOTIFICATIONS.message:
        this.#log(slot, notification)
        return
      case NOTIFICATIONS.cancelled:
        this.#withdrawn(slot, notification)
        return
      case NOTIFICATIONS.elicitationComplete:
        this.#elicited(message.params?.['elicitationId'], notification)
        return
      default:
        this.#other(slot, notification)
    }
  }

  onDown(_slot: ProcessSlot, link: ProcessLink): void {
    this.#questions.clear()
    this.#elicitations.clear()
    for (const session of this.sessions) session.questions.askerDown(link)
  }

  /** A refusal with code -32042 names URLs that the session was sent to. */
  noteElicitations(session: LegacySession, response: ParsedResponse): void {
    const { message } = response
    if (!isErrorResponse(message) || message.error.code !== URL_ELICITATION_REQUIRED || !isObject(message.error.data)) return
    const { elicitations } = message.error.data
    if (!Array.isArray(elicitations)) return
    for (const elicitation of elicitations) if (isObject(elicitation)) this.#noteElicitation(session, elicitation['elicitationId'])
  }

  #claims(link: ProcessLink | undefined): Claims<LegacySession> {
    // Only sessions are ever given as owners of calls to a legacy process.
    const owners = (link?.owners ?? new Map()) as ReadonlyMap<LegacySession, number>
    return { own: this.#own, owners, answered: link }
  }

  #updated(uri: unknown, { text, method }: ParsedNotification): void {
    if (typeof uri !== 'string') return
    const subscribers = this.settings.subscribersOf(uri)
    if (subscribers.size === 0) this.#deps.metrics.dropped('notification', 'unattributed')
    for (const session of subscribers) session.outlet.deliver(text, { key: `${method} ${uri}` })
  }

  #log(slot: ProcessSlot, notification: ParsedNotification): void {
    const session = ownerOf(this.#claims(slot.current))
    const problem = session === undefined ? 'unattributed' : this.#logTo(session, slot, notification)
    if (problem !== undefined) this.#deps.metrics.dropped('log', problem)
  }

  #logTo(session: LegacySession, slot: ProcessSlot, { message, text }: ParsedNotification): DropReason | undefined {
    if (!wantsLevel(message.params?.['level'], session.level, this.settings.level)) return 'level'
    const stream = session.outlet.newest()
    if (stream === undefined || stream.send(text, { kind: 'log' }) === 'lost') return 'no_stream'
    const { config } = this.#deps
    slot.current?.holdFor(stream, slot.isOwn ? config.ownHoldMs : config.sharedHoldMs)
    return undefined
  }

  #withdrawn(slot: ProcessSlot, notification: ParsedNotification): void {
    const id = notification.message.params?.['requestId']
    const session = isRequestId(id) ? this.#questions.get(id) : undefined
    if (session === undefined || slot.current === undefined || !isRequestId(id)) return
    this.#questions.delete(id)
    session.questions.withdrawn(slot.current, id, notification)
  }

  #elicited(id: unknown, { text }: ParsedNotification): void {
    const session = (typeof id === 'string' ? this.#elicitations.get(id) : undefined) ?? this.#own
    if (typeof id === 'string') this.#elicitations.delete(id)
    if (session === undefined) this.#deps.metrics.dropped('notification', 'unattributed')
    else session.outlet.deliver(text)
  }

  #other(slot: ProcessSlot, { text }: ParsedNotification): void {
    const session = ownerOf(this.#claims(slot.current))
    if (session === undefined) this.#deps.metrics.dropped('notification', 'unattributed')
    else session.outlet.deliver(text)
  }

  #remember({ id, message }: ParsedRequest, session: LegacySession): void {
    bounded(this.#questions).set(id, session)
    if (message.method === METHODS.elicit) this.#noteElicitation(session, message.params?.['elicitationId'])
  }

  #noteElicitation(session: LegacySession, id: unknown): void {
    if (typeof id === 'string') bounded(this.#elicitations).set(id, session)
  }
}

/** Room for one more: the oldest abandoned one goes. */
function bounded<K, V>(map: Map<K, V>): Map<K, V> {
  for (const oldest of map.keys()) {
    if (map.size < MAX_REMEMBERED) break
    map.delete(oldest)
  }
  return map
}

const URL_ELICITATION_REQUIRED = -32042
const MAX_REMEMBERED = 1_000
