import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Channel } from '../features/call.ts'
import type { World } from '../state/world.ts'
import { isRequest, type RpcMessage, type RpcRequest, type RpcResponse } from '../wire/json-rpc.ts'
import { NEWEST_LEGACY } from '../wire/protocol.ts'
import { LegacySession } from './legacy-session.ts'
import { LegacyStream, streamIdOf } from './legacy-stream.ts'

const KEPT_STREAMS = 100
const STANDALONE = 'standalone'

/** A legacy session over streamable HTTP: one stream per POST, and one that belongs to no request. */
export class HttpSession {
  readonly session: LegacySession
  readonly #world: World
  readonly #streams = new Map<string, LegacyStream>()
  readonly #standalone: LegacyStream
  #opened = 0

  constructor(world: World, stateless?: { readonly version: string }) {
    this.#world = world
    // Older clients get no event without data here either: the version is known only after the handshake, and this stream opens later.
    this.#standalone = new LegacyStream({ id: STANDALONE, polling: false })
    const standalone = (message: RpcMessage) => this.#standalone.send(message)
    this.session = new LegacySession(world, { transport: 'http', standalone, ...(stateless ? { stateless } : {}) })
  }

  get id(): string {
    return this.session.id
  }

  async post(request: IncomingMessage, response: ServerResponse, message: RpcMessage): Promise<void> {
    if (isRequest(message)) return this.#answer(request, response, message)
    await this.session.handle(message, { channel: this.#standalone, headers: request.headers })
    response.writeHead(202).end()
  }

  /** The standalone stream, or the rest of a stream that broke off. False: there is no such stream. */
  get(response: ServerResponse, lastEventId: string | undefined): boolean {
    if (lastEventId === undefined) {
      this.#standalone.open(response, true)
      return true
    }
    const stream = streamIdOf(lastEventId) === STANDALONE ? this.#standalone : this.#streams.get(streamIdOf(lastEventId))
    stream?.resume(response, lastEventId)
    return stream !== undefined
  }

  close(): void {
    this.session.close()
    this.detach()
  }

  /** Ends all open connections; the session stays. */
  detach(): void {
    this.#standalone.detach()
    for (const stream of this.#streams.values()) stream.detach()
  }

  async #answer(request: IncomingMessage, response: ServerResponse, message: RpcRequest): Promise<void> {
    const mode = this.#world.options.responseMode
    const stream = this.#openStream(mode === 'sse')
    stream.open(response, false)
    const channel = mode === 'json' ? redirected(stream, this.#standalone) : stream
    const answer: RpcResponse | undefined = await this.session.handle(message, { channel, headers: request.headers })
    stream.finish(answer)
  }

  #openStream(alwaysSse: boolean): LegacyStream {
    this.#opened += 1
    const polling = !this.session.stateless && this.session.version >= NEWEST_LEGACY
    const stream = new LegacyStream({ id: `post-${this.#opened}`, polling, alwaysSse })
    this.#streams.set(stream.id, stream)
    for (const [id, old] of this.#streams) {
      if (this.#streams.size <= KEPT_STREAMS) break
      if (old.finished) this.#streams.delete(id)
    }
    return stream
  }
}

/** A server that answers with JSON only has but one way to say something before. */
function redirected(own: LegacyStream, standalone: LegacyStream): Channel {
  return {
    send: (message) => standalone.send(message),
    garbage: () => standalone.garbage(),
    pause: () => {},
    breakOff: () => own.breakOff(),
  }
}
