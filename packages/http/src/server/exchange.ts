import type { IncomingMessage, ServerResponse } from 'node:http'
import { inspect } from 'node:util'
import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import type { CancelListener, Cancellation } from '../cancellation.ts'
import { countHeader, type HeaderMap } from '../header-map.ts'
import type { HttpLimits } from './http-limits.ts'
import type { SlowBodies } from './slow-bodies.ts'

/** Shared by all exchanges of one server. */
export interface ServerContext {
  readonly clock: Clock
  readonly limits: HttpLimits
  readonly slowBodies: SlowBodies
}

/**
 * One request and its answer, as handlers see them. `request` and `response` are Node's own objects, without a wrapper, because this
 * is the hot path; only this package touches them, so that another server can take their place.
 */
export class Exchange implements Cancellation {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly context: ServerContext
  /** Path and query as they were sent, always beginning with "/" (or "*" of OPTIONS). */
  readonly target: string
  /** When it came, by the monotonic clock. */
  readonly startedAt: number
  /** The client waits for "100 Continue" before it sends the body. */
  expectsContinue = false
  /** Bytes of the answer's body that were handed to the connection. */
  bytesSent = 0
  #controller: AbortController | undefined
  #listeners: CancelListener[] | undefined
  #reason: unknown
  #closed = false
  #destroyed = false
  #onClosed: (() => void) | undefined

  constructor(request: IncomingMessage, response: ServerResponse, options: { context: ServerContext; target: string }) {
    this.request = request
    this.response = response
    this.context = options.context
    this.target = options.target
    this.startedAt = options.context.clock.monotonic()
  }

  get method(): string {
    return this.request.method ?? ''
  }

  get headers(): HeaderMap {
    return this.request.headers
  }

  /** How often a header came; `headers` has only the first where there must be one. `name` in lower case. */
  headerCount(name: string): number {
    return countHeader(this.request.rawHeaders, name)
  }

  get path(): string {
    const at = this.target.indexOf('?')
    return at < 0 ? this.target : this.target.slice(0, at)
  }

  /** Without the question mark. */
  get query(): string {
    const at = this.target.indexOf('?')
    return at < 0 ? '' : this.target.slice(at + 1)
  }

  get remoteAddress(): string | undefined {
    return this.request.socket.remoteAddress
  }

  /** The status of the answer; 200 while there is none. */
  get status(): number {
    return this.response.statusCode
  }

  /** The head of an answer has been sent: another status cannot be. */
  get begun(): boolean {
    return this.response.headersSent
  }

  /** Over: answered in full, or the client is gone. Whatever is written now goes nowhere. */
  get closed(): boolean {
    return this.#closed || this.#destroyed
  }

  /** The client went away, or was sent away, before it had the whole answer. */
  get aborted(): boolean {
    return this.closed && this.#reason !== undefined
  }

  /** Why it was aborted. */
  get reason(): unknown {
    return this.#reason
  }

  /** For calls that end with the client; see Cancellation. Use `signal` where a real AbortSignal is needed. */
  addEventListener(_type: 'abort', listener: CancelListener): void {
    this.#listeners ??= []
    this.#listeners.push(listener)
  }

  removeEventListener(_type: 'abort', listener: CancelListener): void {
    const at = this.#listeners?.indexOf(listener) ?? -1
    if (at >= 0) this.#listeners?.splice(at, 1)
  }

  /** Aborts when the client goes away before it has the whole answer; never after a complete one. Made on first use. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.aborted) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  /** The handler has written the last of the answer, or the exchange is over. Otherwise a stream is still open. */
  get answered(): boolean {
    return this.response.writableEnded || this.closed
  }

  /** Resolves when the exchange is over. For one waiter. */
  over(): Promise<void> {
    if (this.#closed) return Promise.resolve()
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onClosed = resolve
    return promise
  }

  /** Cuts the connection: for an answer that cannot be completed, so that the client sees that it was not. */
  destroy(reason: unknown): void {
    if (this.closed) return
    this.#destroyed = true
    this.#reason = reason
    this.request.socket.destroy()
    this.#abort()
  }

  /** All that a log may show of it: headers and query hold credentials. */
  toJSON(): { method: string; path: string } {
    return { method: this.method, path: this.path }
  }

  [inspect.custom](): string {
    return `Exchange(${this.method} ${this.path})`
  }

  /** For the server, when the response or its connection closed. Idempotent; true the first time. */
  markClosed(complete: boolean): boolean {
    if (this.#closed) return false
    this.#closed = true
    this.#onClosed?.()
    if (complete || this.#destroyed) return true
    this.#reason = new ThvError('aborted', 'the client went away')
    this.#abort()
    return true
  }

  #abort(): void {
    this.#controller?.abort(this.#reason)
    for (const listener of this.#listeners?.splice(0) ?? []) listener.handleEvent()
  }
}
