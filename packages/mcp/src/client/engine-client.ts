import { abortable, withTimeLimit } from '@thv/kernel/deadline'
import { ThvError } from '@thv/kernel/errors'
import type { JsonObject, RequestId } from '../json-rpc.ts'
import { METHODS } from '../methods.ts'
import type { ClientContext } from './client-context.ts'
import { FootingLost } from './client-errors.ts'
import type { Engine, EnginePassOptions, EngineRequestOptions } from './engine.ts'
import { keepListening } from './keep-listening.ts'
import type {
  CallOptions,
  ListenFilter,
  Listening,
  ListenOptions,
  ListOptions,
  McpClient,
  PassOptions,
  RequestOptions,
} from './mcp-client.ts'
import { allPages } from './pages.ts'

/** How a transport gets on its feet, the first time and every time after. */
export interface Opener {
  open(signal: AbortSignal): Promise<Engine>
  close?(): void
}

type Passing = Engine & Required<Pick<Engine, 'pass'>>

interface Asked {
  readonly method: string
  readonly params: JsonObject
  readonly options: RequestOptions
}

interface Passed extends Asked {
  readonly options: PassOptions
}

/** Of everything but requests, so that it holds where those have no limit too. */
const SHORT_LIMIT_MS = 60_000

/** The client in front of whatever engine the server calls for. It knows limits and second attempts, and nothing of the wire. */
export class EngineClient implements McpClient {
  readonly #context: ClientContext
  readonly #opener: Opener
  readonly #closing = new AbortController()
  #engine: Engine | undefined
  #opening: Promise<Engine> | undefined

  constructor(context: ClientContext, opener: Opener) {
    this.#context = context
    this.#opener = opener
  }

  get era() {
    return this.#engine?.era
  }

  get protocolVersion() {
    return this.#engine?.protocolVersion
  }

  get transport() {
    return this.#engine?.transport
  }

  get serverInfo() {
    return this.#engine?.identity.serverInfo
  }

  get capabilities() {
    return this.#engine?.identity.capabilities ?? {}
  }

  get instructions() {
    return this.#engine?.identity.instructions
  }

  async connect(options: CallOptions = {}): Promise<void> {
    await this.#limited('connect', { timeoutMs: this.#context.limits.connectTimeoutMs, ...options }, (signal) => this.#ready(signal))
  }

  request(method: string, params: JsonObject = {}, options: RequestOptions = {}): Promise<JsonObject> {
    const engine = this.#engineFor(options)
    return engine === undefined ? this.#requestLimited(method, params, options) : this.#requestNow(engine, { method, params, options })
  }

  async #requestNow(engine: Engine, { method, params, options }: Asked): Promise<JsonObject> {
    try {
      return await engine.request(method, params, options as EngineRequestOptions)
    } catch (error) {
      if (!(error instanceof FootingLost) || !error.mayRetry) throw error
      return await this.#requestLimited(method, params, options)
    }
  }

  async #requestLimited(method: string, params: JsonObject, options: RequestOptions): Promise<JsonObject> {
    return await this.#limited(method, options, (signal) =>
      this.#onFooting(signal, (engine) => engine.request(method, params, { ...options, signal, cancellation: undefined })),
    )
  }

  pass(method: string, params: JsonObject, options: PassOptions): Promise<JsonObject | string> {
    const engine = this.#engineFor(options)
    return engine?.pass !== undefined
      ? this.#passNow(engine as Passing, { method, params, options })
      : this.#passLimited(method, params, options)
  }

  /**
   * For a request without timers, signals and promises of this client: all that can end it is its own cancellation, and the end of the client. Undefined where
   * something has to be done first, or a limit of time to be kept.
   */
  #engineFor({ timeoutMs = this.#context.limits.timeoutMs, cancellation }: RequestOptions): Engine | undefined {
    const engine = this.#engine
    const isSimple = timeoutMs === Number.POSITIVE_INFINITY && cancellation !== undefined && engine?.transport === 'streamable-http'
    return isSimple && !this.#closing.signal.aborted && !engine.over.aborted && engine.abandon !== undefined ? engine : undefined
  }

  async #passNow(engine: Passing, { method, params, options }: Passed): Promise<JsonObject | string> {
    try {
      return await engine.pass(method, params, options as EnginePassOptions)
    } catch (error) {
      if (!(error instanceof FootingLost) || !error.mayRetry) throw error
      return await this.#passLimited(method, params, options)
    }
  }

  #passLimited(method: string, params: JsonObject, options: PassOptions): Promise<JsonObject | string> {
    return this.#limited(method, options, (signal) =>
      this.#onFooting<JsonObject | string>(signal, (engine) => {
        // The methods of the options may not be members of their own.
        const limited = {
          ...options,
          answerId: options.answerId,
          write: (id: RequestId) => options.write(id),
          signal,
          cancellation: undefined,
        }
        return engine.pass === undefined ? engine.request(method, params, limited) : engine.pass(method, params, limited)
      }),
    )
  }

  async list(method: string, options: ListOptions = {}): Promise<readonly JsonObject[]> {
    const { limits } = this.#context
    return await this.#limited(method, options, (signal) => {
      const request = (params: JsonObject) => this.#onFooting(signal, (engine) => engine.request(method, params, { signal }))
      return allPages({ method, params: options.params ?? {}, limits, request })
    })
  }

  async notify(method: string, params: JsonObject = {}, options: CallOptions = {}): Promise<void> {
    await this.#limited(method, this.#short(options), (signal) =>
      this.#onFooting(signal, (engine) => engine.notify(method, params, signal)),
    )
  }

  async ping(options: CallOptions = {}): Promise<void> {
    await this.#limited('ping', this.#short(options), (signal) =>
      this.#onFooting(signal, (engine) => engine.request(engine.era === 'modern' ? METHODS.discover : METHODS.ping, {}, { signal })),
    )
  }

  async listen(filter: ListenFilter, options: ListenOptions): Promise<Listening> {
    const { onNotification, onGap } = options
    const open = (limits: CallOptions) =>
      this.#limited(METHODS.listen, limits, (signal) =>
        this.#onFooting(signal, (engine) => engine.listen(filter, { signal, onNotification })),
      )
    // The limit is on the opening alone.
    const { timeoutMs } = this.#short(options)
    const first = await open({ ...options, timeoutMs })
    const reopen = (signal: AbortSignal) => open({ signal, timeoutMs })
    return keepListening({ first, reopen, onGap, context: this.#context, closing: this.#closing.signal })
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return
    const reason = new ThvError('aborted', 'the MCP client is closed')
    this.#closing.abort(reason)
    this.#engine?.abandon?.(reason)
    await this.#engine?.close()
    this.#opener.close?.()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Does it again on a new footing, once, when the old one turns out to be lost and nothing was done yet. */
  async #onFooting<T>(signal: AbortSignal, work: (engine: Engine) => Promise<T>): Promise<T> {
    try {
      return await work(await this.#ready(signal))
    } catch (error) {
      if (!(error instanceof FootingLost) || !error.mayRetry) throw error
      return await work(await this.#ready(signal))
    }
  }

  /** Callers share the opening; `signal` ends the wait of this caller alone. */
  async #ready(signal: AbortSignal): Promise<Engine> {
    if (this.#engine && !this.#engine.over.aborted) return this.#engine
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined
    })
    this.#opening.catch(() => {}) // every caller gets the rejection; that all of them have left is no fault
    return await abortable(this.#opening, signal)
  }

  async #open(): Promise<Engine> {
    const { clock, limits } = this.#context
    const limit = { clock, timeoutMs: limits.connectTimeoutMs, what: 'connecting', signals: [this.#closing.signal] }
    const engine = await withTimeLimit(limit, async (signal) => {
      const opened = await this.#opener.open(signal)
      if (signal.aborted) await opened.close() // too late: the caller has gone
      return opened
    })
    const old = this.#engine
    this.#engine = engine
    await old?.close()
    return engine
  }

  #short({ signal, timeoutMs = Math.min(this.#context.limits.timeoutMs, SHORT_LIMIT_MS) }: CallOptions) {
    return { signal, timeoutMs }
  }

  #limited<T>(what: string, options: CallOptions, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { clock, limits } = this.#context
    const { signal, timeoutMs = limits.timeoutMs } = options
    return withTimeLimit({ clock, timeoutMs, what, signals: [signal, this.#closing.signal] }, work)
  }
}
