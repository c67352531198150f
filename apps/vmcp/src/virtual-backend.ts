import type { Backend, BackendStatus } from '@thv/gateway/backend'
import type { LiveSessionRecord } from '@thv/gateway/sessions/live-sessions'
import type { StreamMetrics } from '@thv/gateway/streams/client-stream'
import type { JsonObject } from '@thv/mcp/json-rpc'
import type { ParsedMessage } from '@thv/mcp/parse-body'
import { SERVED_VERSIONS } from '@thv/mcp/versions'
import type { Rejection } from '@thv/mcp/wire-errors'
import type { MessageContext, SessionContext } from '@thv/middleware/pipeline/request-context'
import type { SessionStore } from '@thv/store/session-store'
import type { RunningWorkflows } from './compose/running-workflows.ts'
import { LegacyEndpoint } from './legacy/legacy-endpoint.ts'
import { checkHealth } from './members/health-checks.ts'
import type { Member } from './members/member.ts'
import { outgoingScope, requestClass } from './members/outgoing-scope.ts'
import { ModernEndpoint } from './modern/modern-endpoint.ts'
import type { Offer } from './offer.ts'

export interface VirtualBackendOptions {
  readonly offer: Offer
  readonly store: SessionStore<LiveSessionRecord>
  readonly sessionTtlMs: number
  readonly metrics: StreamMetrics
  readonly running?: RunningWorkflows | undefined
  /** Of health checks that begin now. */
  checks(): { readonly intervalMs: number; readonly timeoutMs: number }
}

/** Many MCP servers, as one backend of the gateway. */
export class VirtualBackend implements Backend {
  readonly #options: VirtualBackendOptions
  readonly #legacy: LegacyEndpoint
  readonly #modern: ModernEndpoint
  readonly #closing = new AbortController()
  #isStarted = false
  #isKnown = false
  #isAttempted = false
  #inFlight = 0
  #onQuiet: (() => void) | undefined

  constructor(options: VirtualBackendOptions) {
    const { offer, store, sessionTtlMs: ttlMs, metrics, running } = options
    this.#options = options
    this.#legacy = new LegacyEndpoint({ offer, store, ttlMs, metrics, running })
    this.#modern = new ModernEndpoint(offer, metrics)
    offer.view.onChange((changed) => {
      this.#legacy.announce(changed)
      this.#modern.announce(changed)
    })
    offer.roster.onChange(({ joined, left }) => {
      this.#legacy.dropMembers(left)
      this.#modern.dropMembers(left)
      for (const member of joined) this.#check(member)
    })
  }

  /** `known`: the backends are. */
  start(known: Promise<unknown>): void {
    const { offer } = this.#options
    offer.view.start()
    void known
      .then(() => {
        this.#isKnown = true
        return offer.view.attempted
      })
      .then(() => {
        this.#isAttempted = true
      })
    this.#isStarted = true
    for (const member of offer.members) this.#check(member)
  }

  get status(): BackendStatus {
    const refusal = this.#options.offer.refusal()
    const pending = this.#isKnown ? 'the backends are being listed' : 'cache sync pending'
    const message = this.#isAttempted ? (refusal === undefined ? 'ready' : 'a backend is unhealthy') : pending
    return {
      ready: this.#isAttempted && refusal === undefined,
      message,
      eras: ['legacy', 'modern'],
      versions: SERVED_VERSIONS,
      sessions: this.#legacy.sessions.size,
      inFlight: this.#inFlight,
    }
  }

  /** Policies see the tools of this caller too. */
  around<C extends MessageContext, T>(context: C, work: (context: C) => T): T {
    const { offer } = this.#options
    const { caller, exchange, era, received } = context
    const passed = offer.passed(exchange.headers)
    if (!offer.roster.isPerCaller && passed === undefined) return work(context)
    return outgoingScope.run({ caller, exchange, passed, era, received }, work, context)
  }

  async post(context: MessageContext): Promise<void> {
    this.#inFlight++
    try {
      const endpoint = context.era === 'modern' ? this.#modern : this.#legacy
      await endpoint.post(context)
    } finally {
      if (--this.#inFlight === 0) this.#onQuiet?.()
    }
  }

  /** A call through `call_tool` is the call of the tool that it names. */
  translate(message: ParsedMessage): ParsedMessage | Rejection | undefined {
    return this.#options.offer.search.unwrap(message)
  }

  callerKey(): string {
    const scope = outgoingScope.getStore()
    return (scope && requestClass(scope, this.#options.offer.roster.isPerCaller)) ?? ''
  }

  isSearch(name: string): boolean {
    return this.#options.offer.search.isOwn(name)
  }

  /** For policies. A tool of several backends, chosen by an argument, has no single one. */
  originOf(name: string): { readonly backend: string; readonly originalName: string } | undefined {
    const route = this.#options.offer.view.now.tools.get(name)
    return route === undefined || route.selector !== undefined ? undefined : { backend: route.backend, originalName: route.original }
  }

  /** As clients would see them, for policies that read their hints. */
  async tools(): Promise<readonly JsonObject[]> {
    const { view } = this.#options.offer
    const { tools } = await view.current()
    return [...tools.values(), ...view.composites.offered.values()].map(({ item }) => item)
  }

  openStream(context: SessionContext): Promise<void> {
    return this.#legacy.openStream(context)
  }

  endSession(context: SessionContext): Promise<void> {
    return this.#legacy.endSession(context)
  }

  async drain(signal: AbortSignal): Promise<void> {
    this.#modern.endListens()
    this.#legacy.endStandalone()
    if (this.#inFlight === 0 || signal.aborted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onQuiet = resolve
    signal.addEventListener('abort', () => resolve(), { once: true })
    await promise
  }

  async close(): Promise<void> {
    const { offer, running } = this.#options
    this.#closing.abort()
    running?.leave()
    this.#legacy.sessions.close()
    await running?.close()
    await this.#modern.close()
    await offer.composites.close()
    offer.deadlines.close()
    await offer.view.close()
    await offer.roster.close()
  }

  #check(member: Member): void {
    if (!this.#isStarted) return
    const { offer, checks } = this.#options
    const { clock, log } = offer
    void checkHealth(member, { clock, log, settings: checks }, AbortSignal.any([this.#closing.signal, member.signal]))
  }
}
