import type { Exchange } from '@thv/http/server/exchange'
import type { SendOptions } from '@thv/http/server/sse-writer'
import { SmallMap } from '@thv/kernel/small-map'
import { EventLog, primesStreams } from '@thv/mcp/event-log'
import type { SseEvent } from '@thv/mcp/sse-decoder'
import { isLegacyVersion, NEWEST_LEGACY_VERSION } from '@thv/mcp/versions'
import type { Reply } from '../response/reply.ts'
import { ClientStream, type StreamDeps } from './client-stream.ts'

/** Where a session's messages go: the streams it has open now. */
export interface Outlet {
  /** The client holds a stream open that is not the answer to a call. */
  readonly isConnected: boolean
  /** For a question of the server: the stream that the client opened last. */
  newest(): ClientStream | undefined
  /** A message that belongs to no call. It goes to exactly one stream, or waits for one. False if it was given up. */
  deliver(text: string, options?: SendOptions): boolean
  /** Takes back what still waits for a stream. */
  withdraw(text: string): void
  end(): void
}

interface Waiting {
  readonly text: string
  readonly options: SendOptions
}

export interface SessionStreamsOptions {
  /** The negotiated version. Asked when the first stream is opened. */
  version(): string
  readonly replayEvents: number
  readonly replayBytes: number
}

/**
 * The streams of a streamable HTTP session: one per POST that needs one, and the standalone one. All of them write to one event log, so
 * that a client can come back to each. Messages for a client without a stream wait in a small backlog.
 */
export class SessionStreams implements Outlet {
  readonly #env: StreamDeps
  readonly #options: SessionStreamsOptions
  /** Calls that are not answered yet, oldest first, with the moment they came. */
  readonly #replies = new SmallMap<Reply, number>()
  readonly #posts = new Map<string, ClientStream>()
  readonly #backlog: Waiting[] = []
  #events: EventLog | undefined
  #standalone: ClientStream | undefined
  #standaloneAt = 0
  #moment = 0
  #hasEnded = false

  constructor(env: StreamDeps, options: SessionStreamsOptions) {
    this.#env = env
    this.#options = options
  }

  get isConnected(): boolean {
    return this.#standalone?.isOpen === true
  }

  /** For the answer of a POST that has become a stream. */
  openPost(): ClientStream {
    const stream = new ClientStream(this.#env, this.#log())
    if (stream.id !== undefined) this.#posts.set(stream.id, stream)
    return stream
  }

  begin(reply: Reply): void {
    this.#replies.set(reply, ++this.#moment)
  }

  done(reply: Reply): void {
    this.#replies.delete(reply)
    const id = (reply.stream ?? reply.reserved)?.id
    if (id !== undefined) this.#posts.delete(id)
  }

  /** The standalone stream, or the resumption of any stream of the session. The newer connection of a stream replaces the older. */
  connect(exchange: Exchange, lastEventId: string | undefined): ClientStream {
    const replay = lastEventId === undefined ? undefined : this.#events?.replayAfter(lastEventId)
    if (replay?.outcome !== 'replay' || replay.stream === this.#standalone?.id) {
      return this.#connectStandalone(exchange, replay?.outcome === 'replay' ? replay.events : undefined)
    }
    const post = this.#posts.get(replay.stream) ?? new ClientStream(this.#env)
    post.connect(exchange, { missed: replay.events })
    if (replay.hasEnded) post.end()
    return post
  }

  /** The id is one of this process. */
  knows(eventId: string): boolean {
    return this.#events !== undefined && this.#events.replayAfter(eventId).outcome !== 'unknown'
  }

  /** The one message for a client that came back to a stream of another process. */
  conclude(exchange: Exchange, text: string): void {
    const stream = new ClientStream(this.#env, this.#log())
    stream.connect(exchange)
    stream.send(text)
    stream.end()
  }

  /** There is nothing yet for a client that came back to a stream of another process. */
  comeAgain(exchange: Exchange, eventId: string, afterMs: number): void {
    const stream = new ClientStream(this.#env)
    stream.connect(exchange)
    stream.comeAgain(afterMs, primesStreams(this.#options.version()) ? eventId : undefined)
  }

  newest(): ClientStream | undefined {
    let newest: Reply | undefined
    let newestAt = 0
    for (const [reply, at] of this.#replies.entries()) {
      if (!reply.canStream) continue
      newest = reply
      newestAt = at
    }
    return this.isConnected && this.#standaloneAt > newestAt ? this.#standalone : newest?.openStream()
  }

  deliver(text: string, options: SendOptions = {}): boolean {
    if (this.#hasEnded) return false
    return this.#send(this.isConnected ? this.#standalone : this.newest(), text, options)
  }

  /**
   * A message that is about no call, such as that a list has changed. It makes no answer a stream: that could not be an HTTP error then, which
   * leads to a login.
   */
  announce(text: string, key: string): void {
    if (this.#hasEnded) return
    const open = this.#replies.entries().findLast(([{ stream }]) => stream?.isOpen === true)
    this.#send(this.isConnected ? this.#standalone : open?.[0].stream, text, { key })
  }

  #send(stream: ClientStream | undefined, text: string, options: SendOptions): boolean {
    if (stream !== undefined) return stream.send(text, options) !== 'lost'
    if (options.kind === 'log' || options.kind === 'progress') return false
    if (options.key !== undefined && this.#backlog.some((waiting) => waiting.options.key === options.key)) return true
    this.#backlog.push({ text, options })
    if (this.#backlog.length > MAX_BACKLOG) this.#backlog.shift()
    return true
  }

  withdraw(text: string): void {
    const at = this.#backlog.findIndex((waiting) => waiting.text === text)
    if (at >= 0) this.#backlog.splice(at, 1)
  }

  endStandalone(): void {
    this.#standalone?.end()
  }

  end(): void {
    this.#hasEnded = true
    this.#backlog.length = 0
    this.#standalone?.end()
    for (const post of this.#posts.values()) post.end()
  }

  #connectStandalone(exchange: Exchange, missed?: readonly SseEvent[]): ClientStream {
    this.#standalone ??= new ClientStream(this.#env, this.#log())
    this.#standaloneAt = ++this.#moment
    this.#standalone.connect(exchange, missed === undefined ? {} : { missed })
    for (const { text, options } of this.#backlog.splice(0)) this.#standalone.send(text, options)
    return this.#standalone
  }

  #log(): EventLog {
    if (this.#events !== undefined) return this.#events
    const { replayEvents: maxEvents, replayBytes: maxBytes } = this.#options
    const version = this.#options.version()
    this.#events = new EventLog({ version: isLegacyVersion(version) ? version : NEWEST_LEGACY_VERSION, maxEvents, maxBytes })
    return this.#events
  }
}

const MAX_BACKLOG = 64
