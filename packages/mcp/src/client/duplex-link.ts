import { abortable } from '@thv/kernel/deadline'
import { ThvError } from '@thv/kernel/errors'
import { type JsonRpcNotification, type JsonRpcRequest, type JsonRpcResponse, type RequestId, serialise } from '../json-rpc.ts'
import type { InvalidBody, ParsedMessage, ParsedResponse } from '../parse-body.ts'
import type { ClientContext } from './client-context.ts'
import { protocolError } from './client-errors.ts'
import type { LegacyLink } from './legacy-engine.ts'
import type { LinkAnswer, LinkContext } from './link.ts'
import type { ClientTransport } from './mcp-client.ts'

/** A way to write messages to a server whose messages all come back on one stream. */
export interface DuplexChannel {
  /** Rejects when the message was not sent. */
  write(json: string, signal: AbortSignal): Promise<void>
  /** Never rejects. */
  close(): Promise<void>
}

type Waiting = PromiseWithResolvers<LinkAnswer>

/** The link over such a channel, in either era: answers are found by their id, everything else goes to `receive`. */
export class DuplexLink implements LegacyLink {
  readonly transport: ClientTransport
  receive: (message: ParsedMessage) => void = () => {}
  onLost: (reason: ThvError) => void = () => {}
  /** Must be set before the first message is sent. */
  channel: DuplexChannel | undefined
  readonly #context: ClientContext
  readonly #waiting = new Map<RequestId, Waiting>()
  #end: ThvError | undefined

  constructor(transport: ClientTransport, context: ClientContext) {
    this.transport = transport
    this.#context = context
  }

  /** For the channel: a message of the server. */
  take(message: ParsedMessage): void {
    if (message.kind === 'response') this.#answered(message)
    else this.receive(message)
  }

  /** For the channel: bytes that are no message. The call that waits for them need not wait any longer. */
  takeInvalid({ id, detail }: Pick<InvalidBody, 'id' | 'detail'>): void {
    const waiting = id === undefined ? undefined : this.#waiting.get(id)
    if (waiting) waiting.reject(protocolError(`sent an answer that is no message: ${detail}`))
    else this.#context.warn(`ignored what is no message: ${detail}`)
  }

  /** For the channel: nothing will come any more. */
  end(reason: ThvError): void {
    if (this.#end) return
    this.#end = reason
    for (const waiting of this.#waiting.values()) waiting.reject(reason)
    this.onLost(reason)
  }

  async request(message: JsonRpcRequest, { signal }: LinkContext): Promise<LinkAnswer> {
    const { maxInFlight } = this.#context.limits
    if (this.#waiting.size >= maxInFlight) throw new ThvError('queue_full', `${maxInFlight} requests to the MCP server are in flight`)
    const waiting: Waiting = Promise.withResolvers()
    waiting.promise.catch(() => {}) // the write may fail first
    this.#waiting.set(message.id, waiting)
    try {
      await this.#write(serialise(message), signal)
      return await abortable(waiting.promise, signal)
    } finally {
      this.#waiting.delete(message.id)
    }
  }

  async send(message: JsonRpcNotification | JsonRpcResponse, signal: AbortSignal): Promise<void> {
    await this.#write(serialise(message), signal)
  }

  negotiated(): void {}

  /** There is but one stream. */
  async openStandalone(): Promise<boolean> {
    return true
  }

  async close(): Promise<void> {
    this.end(new ThvError('aborted', 'the MCP client is closed'))
    await this.channel?.close()
  }

  async #write(json: string, signal: AbortSignal): Promise<void> {
    if (this.#end) throw this.#end
    await this.channel?.write(json, signal)
  }

  /** An answer without a waiting call came too late: its request was given up. */
  #answered(body: ParsedResponse): void {
    const waiting = body.id === undefined ? undefined : this.#waiting.get(body.id)
    if (waiting) waiting.resolve({ status: 200, headers: {}, body })
    else this.#context.warn('ignored an answer without a waiting request')
  }
}
