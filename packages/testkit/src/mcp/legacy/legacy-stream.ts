import type { ServerResponse } from 'node:http'
import type { Channel } from '../features/call.ts'
import type { RpcMessage, RpcResponse } from '../wire/json-rpc.ts'
import { SSE_HEADERS, sseFrame } from '../wire/sse-frame.ts'

const KEPT_EVENTS = 1_000

export interface LegacyStreamOptions {
  readonly id: string
  /** Clients of 2025-11-25 may be sent away and come back; older ones choke on an event without data. */
  readonly polling: boolean
  /** Never answer with plain JSON. */
  readonly alwaysSse?: boolean
}

/** One stream of events of a legacy HTTP session. It outlives its connections: a client may come back with the last event id it saw. */
export class LegacyStream implements Channel {
  readonly id: string
  readonly #options: LegacyStreamOptions
  readonly #events: { readonly id: string; readonly data: string }[] = []
  #count = 0
  #response: ServerResponse | undefined
  #finished = false

  constructor(options: LegacyStreamOptions) {
    this.id = options.id
    this.#options = options
  }

  /** The first connection. Nothing is written until there is something to say, unless the client only waits for events. */
  open(response: ServerResponse, now: boolean): void {
    this.#adopt(response)
    if (now || this.#options.alwaysSse) this.#begin(true)
  }

  /** A later connection: what came after `lastEventId` is sent again. */
  resume(response: ServerResponse, lastEventId: string): void {
    this.#adopt(response)
    this.#begin(false)
    const seen = this.#events.findIndex(({ id }) => id === lastEventId)
    for (const { id, data } of this.#events.slice(seen + 1)) response.write(sseFrame({ id, data }))
    if (this.#finished) response.end()
  }

  send(message: RpcMessage): void {
    const event = this.#store(JSON.stringify(message))
    this.#begin(true)
    this.#response?.write(sseFrame(event))
  }

  /** Writes the answer, if there is one, and ends the stream. */
  finish(answer: RpcResponse | undefined): void {
    this.#finished = true
    const response = this.#response
    if (answer && response && !response.headersSent && !this.#options.alwaysSse) {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(answer))
      return
    }
    if (answer) this.send(answer)
    else this.#begin(false)
    this.#response?.end()
  }

  pause(retryMs: number): void {
    if (!this.#options.polling) return
    this.#begin(true)
    this.#response?.end(sseFrame({ retry: retryMs }))
    this.#response = undefined
  }

  garbage(): void {
    this.#begin(true)
    this.#response?.write('data: {"this is not": json\n\n')
  }

  breakOff(): void {
    this.#begin(true)
    this.#response?.write('data: {"jsonrpc":"2.0","id":', () => this.#response?.destroy())
  }

  /** Ends the connection that is open now, if any. */
  detach(): void {
    this.#response?.end()
    this.#response = undefined
  }

  get finished(): boolean {
    return this.#finished
  }

  #adopt(response: ServerResponse): void {
    this.detach()
    this.#response = response
    response.once('close', () => {
      if (this.#response === response) this.#response = undefined
    })
  }

  #begin(prime: boolean): void {
    const response = this.#response
    if (!response || response.headersSent) return
    response.writeHead(200, SSE_HEADERS)
    response.flushHeaders()
    if (prime && this.#options.polling) response.write(sseFrame(this.#store('')))
  }

  #store(data: string): { id: string; data: string } {
    const event = { id: `${this.id}_${this.#count}`, data }
    this.#count += 1
    this.#events.push(event)
    if (this.#events.length > KEPT_EVENTS) this.#events.shift()
    return event
  }
}

export function streamIdOf(eventId: string): string {
  return eventId.slice(0, eventId.lastIndexOf('_'))
}
