import type { Outbound } from '@thv/http/outbound/outbound'
import type { Clock } from '@thv/kernel/clock'
import { McpErrorResponse, McpHttpError } from '@thv/mcp/client/client-errors'
import type { BackendEras } from '@thv/mcp/client/http/backend-eras'
import { type Headers, HttpEndpoint } from '@thv/mcp/client/http/http-endpoint'
import { createHttpSseClient } from '@thv/mcp/client/http/http-sse-client'
import { createStreamableHttpClient } from '@thv/mcp/client/http/streamable-http-client'
import type { ClientHandlers, ClientOptions, McpClient } from '@thv/mcp/client/mcp-client'
import type { Rejection } from '@thv/mcp/wire-errors'
import type { Log } from '@thv/telemetry/log'
import { withoutLinks } from '@thv/telemetry/redact'
import type { ResolvedBackend } from '../discover/resolved-backend.ts'
import { type BackendCredentials, backendCredentials } from './backend-credentials.ts'
import { LocalRefusal } from './local-refusal.ts'
import type { LoginVault } from './login-vault.ts'
import { type HealthSettings, MemberHealth } from './member-health.ts'
import { type OutgoingScope, outgoingScope, partyOfScope, requestClass } from './outgoing-scope.ts'
import { withPassed } from './passed-headers.ts'
import { SharedClients } from './shared-clients.ts'

export interface MemberDeps {
  readonly outbound: Outbound
  /** For token endpoints; without a policy of its own. */
  readonly providers: Outbound
  /** The authorization server in this program, if there is one. */
  readonly login?: LoginVault | undefined
  readonly eras: BackendEras
  readonly clock: Clock
  readonly log: Log
  readonly health: HealthSettings
  readonly version: string
  /** The backend is asked with other credentials from now on, without another configuration. */
  readonly onRenewed?: ((member: Member) => void) | undefined
}

export type OwnClientOptions = Pick<ClientOptions, 'capabilities' | 'handlers' | 'legacyVersion' | 'onNotification'>

/** Calls keep their own time. */
const CALL_LIMIT_MS = Number.POSITIVE_INFINITY
const CONNECT_LIMIT_MS = 15_000
/** A message of a backend is parsed whole: this bounds what one costs. */
export const MAX_MESSAGE_BYTES = 32 << 20
/** A backend that has left or changed is given this long to finish its calls. */
const LEAVING_MS = 10 * 60_000

let members = 0

/** All that a server can ask for. */
const ASKABLE = { sampling: {}, elicitation: {}, roots: {} }

function refuse(): never {
  throw new McpErrorResponse({ code: -32601, message: 'Method not found' })
}

const REFUSING: ClientHandlers = { sampling: refuse, elicitation: refuse, roots: () => ({ roots: [] }) }

/** One backend of the virtual server and its connections. */
export class Member {
  /** Tells a backend from one of the same name that replaces it. */
  readonly id = ++members
  readonly health: MemberHealth
  readonly isPerCaller: boolean
  readonly #deps: MemberDeps
  readonly #shared: McpClient
  readonly #sharedByClass: SharedClients
  readonly #leaving = new Set<McpClient>()
  #bytes: HttpEndpoint | undefined
  readonly #closing = new AbortController()
  #backend: ResolvedBackend
  #credentials: BackendCredentials | undefined
  #revision = 0
  #inFlight = 0
  #onQuiet: (() => void) | undefined

  constructor(backend: ResolvedBackend, deps: MemberDeps) {
    this.#backend = backend
    this.#deps = deps
    this.health = new MemberHealth(deps.clock, deps.health)
    this.#credentials = this.#credentialsOf(backend)
    this.isPerCaller = this.#credentials?.isPerCaller === true
    this.#shared = this.open({ capabilities: ASKABLE, handlers: REFUSING })
    this.#sharedByClass = new SharedClients({
      backend: backend.name,
      open: () => this.open({ capabilities: ASKABLE, handlers: REFUSING }),
    })
  }

  get backend(): ResolvedBackend {
    return this.#backend
  }

  /** The provider of its credentials, where users log in to it when they first need it. It may change with the configuration. */
  get onDemandProvider(): string | undefined {
    const provider = this.#backend.auth.upstream?.provider
    return provider !== undefined && this.#deps.login?.onDemand.has(provider) === true ? provider : undefined
  }

  get name(): string {
    return this.#backend.name
  }

  /** Changes with the credentials that the backend is asked with. */
  get revision(): number {
    return this.#revision
  }

  /** Aborts when the backend has left or the server ends. */
  get signal(): AbortSignal {
    return this.#closing.signal
  }

  /**
   * For lists, for health and for clients that declare nothing a server could ask for: it holds no state of any of them. Callers with credentials
   * of their own have one each. It declares everything itself, because servers list some tools only to clients that can be asked; a question
   * without a call is refused.
   */
  get shared(): McpClient {
    const scope = outgoingScope.getStore()
    const key = scope && requestClass(scope, this.isPerCaller)
    return scope === undefined || key === undefined ? this.#shared : this.#sharedByClass.of(key, partyOfScope(scope))
  }

  /** For requests that pass as they are written, to a backend that is known to be modern. */
  get bytes(): HttpEndpoint {
    const { url, ca, policy } = this.#backend
    this.#bytes ??= new HttpEndpoint({ url, ca, policy, headers: this.headers, outbound: this.#deps.outbound })
    return this.#bytes
  }

  /** Headers of the next request. A promise only while a token is obtained. */
  readonly headers = (): Headers | Promise<Headers> => {
    const passed = outgoingScope.getStore()?.passed
    const headers = this.#credentials?.headers() ?? this.#backend.headers
    if (passed === undefined) return headers
    const withheld = this.#credentials?.withheld ?? []
    return headers instanceof Promise
      ? headers.then((settled) => withPassed(settled, passed, withheld))
      : withPassed(headers, passed, withheld)
  }

  /** The challenge that leads to the login that calls of this caller lack. Undefined: none, or something else is missing. */
  async missingLogin(): Promise<Rejection | undefined> {
    if (!this.isPerCaller) return undefined
    try {
      await this.#credentials?.headers()
      return undefined
    } catch (error) {
      return error instanceof LocalRefusal ? error.challenge : undefined // a call shows every other problem
    }
  }

  /** Takes over settings that need no other connection: sessions at the backend go on, with new credentials where those have changed. */
  adopt(backend: ResolvedBackend, { isOtherAuth }: { readonly isOtherAuth: boolean }): void {
    this.#backend = backend
    if (!isOtherAuth) return
    // Requests that are under way keep the credentials that they have.
    this.#credentials = this.#credentialsOf(backend)
    this.#revision++
  }

  /** A client with a session of its own at the backend, where that has sessions. Connects by need. */
  open(options: OwnClientOptions): McpClient {
    const { outbound, eras, clock, log, version } = this.#deps
    const { url, ca, policy, name, transport } = this.#backend
    const all = {
      ...options,
      clientInfo: { name: 'toolhive-vmcp', version },
      ...{ url, ca, policy, headers: this.headers, outbound, clock },
      limits: { timeoutMs: CALL_LIMIT_MS, connectTimeoutMs: CONNECT_LIMIT_MS, maxMessageBytes: MAX_MESSAGE_BYTES },
      onWarning: (text: string) => log.debug('warning of a backend client', { backend: name, text: withoutLinks(text) }),
    }
    return transport === 'sse' ? createHttpSseClient(all) : createStreamableHttpClient({ ...all, eras })
  }

  /** Runs a request to the backend and learns from its outcome. */
  async observed<T>(work: () => Promise<T>): Promise<T> {
    this.#inFlight++
    try {
      const result = await (this.#credentials === undefined ? work() : this.#authenticated(this.#credentials, work))
      this.health.succeeded()
      return result
    } catch (error) {
      this.health.failed(error)
      throw error
    } finally {
      if (--this.#inFlight === 0) this.#onQuiet?.()
    }
  }

  /** Closes a client of this backend once no call is under way: the backend has left, or is another one now. */
  release(client: McpClient): void {
    if (this.#inFlight === 0) void client.close()
    else this.#leaving.add(client)
  }

  /** Lets calls finish, within a limit, and then closes. */
  async leave(): Promise<void> {
    this.#closing.abort()
    if (this.#inFlight > 0) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#onQuiet = resolve
      const limit = this.#deps.clock.setTimer(LEAVING_MS, resolve)
      await promise
      limit.cancel()
    }
    await this.close()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#credentials?.close()
    const leaving = [...this.#leaving]
    this.#leaving.clear()
    await Promise.all([this.#shared.close(), this.#sharedByClass.close(), ...leaving.map((client) => client.close())])
  }

  #credentialsOf(backend: ResolvedBackend): BackendCredentials | undefined {
    const onOtherToken = () => {
      this.#revision++
      this.#deps.onRenewed?.(this)
    }
    return backendCredentials(backend, { ...this.#deps, outbound: this.#deps.providers, onOtherToken })
  }

  /** A 401 to credentials that can be renewed is no answer yet: the request did not run, and is sent once more. */
  async #authenticated<T>(credentials: BackendCredentials, work: () => Promise<T>): Promise<T> {
    const around = outgoingScope.getStore() ?? OWN
    const attempt: OutgoingScope = { ...around, credentials: undefined }
    try {
      return await outgoingScope.run(attempt, work)
    } catch (error) {
      if (!(error instanceof McpHttpError) || error.status !== 401 || !credentials.rejected(attempt)) throw error
      return await outgoingScope.run({ ...around, credentials: undefined }, work)
    }
  }
}

/** A request of our own has no caller whose token could be used. */
const OWN: OutgoingScope = { caller: undefined, exchange: undefined }
