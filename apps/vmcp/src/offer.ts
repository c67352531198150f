import { unavailable } from '@thv/gateway/response/backend-rejection'
import type { Exchange } from '@thv/http/server/exchange'
import type { Clock } from '@thv/kernel/clock'
import { tryParseDuration } from '@thv/kernel/duration'
import type { JsonObject } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'
import type { ParsedRequest } from '@thv/mcp/parse-body'
import { SERVED_VERSIONS } from '@thv/mcp/versions'
import { isRejection, type Rejection, reject } from '@thv/mcp/wire-errors'
import type { WorkflowFeed } from '@thv/middleware/audit/workflow-event'
import { mayCallTool, type PolicyHolder } from '@thv/middleware/authorize/tool-judge'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { MessageContext } from '@thv/middleware/pipeline/request-context'
import type { Log } from '@thv/telemetry/log'
import type { VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import type { Route } from './aggregate/aggregate.ts'
import { possibleBackends } from './aggregate/possible-backends.ts'
import { CompositeCalls, type ToolLimits } from './compose/composite-calls.ts'
import type { CompositeOffer } from './compose/composite-offers.ts'
import type { WaitingWorkflows } from './compose/suspended-workflows.ts'
import type { ListKind } from './members/load-lists.ts'
import { joinChallenges } from './members/login-challenge.ts'
import type { Member } from './members/member.ts'
import type { MemberRoster } from './members/member-roster.ts'
import { type PassedHeaders, passedHeaders } from './members/passed-headers.ts'
import { CallDeadlines } from './route/call-deadlines.ts'
import { backendOf, findRoute } from './route/find-route.ts'
import { limitResult } from './route/limit-result.ts'
import { isIdempotentCall, type RetryPolicy } from './route/retry-policy.ts'
import type { VirtualCall } from './route/virtual-call.ts'
import type { SealKeys } from './seal/seal-keys.ts'
import type { UsedStates } from './seal/used-states.ts'
import { ToolSearch } from './search/tool-search.ts'
import { type Project, pageOf } from './view/list-page.ts'
import type { ViewCache } from './view/view-cache.ts'

export interface OfferOptions {
  readonly config: VmcpConfig
  readonly roster: MemberRoster
  readonly view: ViewCache
  readonly pipeline: Pipeline
  readonly clock: Clock
  readonly log: Log
  readonly version: string
  /** Of states that clients carry. */
  readonly sealKeys: SealKeys
  readonly usedStates: UsedStates
  /** Of workflows that wait for their clients. */
  readonly waiting: WaitingWorkflows
  /** Of clients; undefined where there are none. */
  readonly policies?: PolicyHolder | undefined
  readonly workflows: WorkflowFeed
}

export interface ListTextOptions {
  /** Changes an item for the era of the client. */
  readonly project: Project | undefined
  /** Further members of the result. */
  readonly extra?: JsonObject
}

const KIND_OF: ReadonlyMap<string, ListKind> = new Map([
  [METHODS.toolsList, 'tools'],
  [METHODS.promptsList, 'prompts'],
  [METHODS.resourcesList, 'resources'],
  [METHODS.resourceTemplatesList, 'resourceTemplates'],
])

const CAPABILITIES: JsonObject = {
  tools: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  prompts: { listChanged: true },
  logging: {},
  completions: {},
}

/** Everything about the virtual server that endpoints of both eras share. */
export class Offer {
  readonly view: ViewCache
  readonly pipeline: Pipeline
  readonly clock: Clock
  readonly log: Log
  readonly serverInfo: JsonObject
  readonly capabilities = CAPABILITIES
  readonly roster: MemberRoster
  readonly composites: CompositeCalls
  readonly search: ToolSearch
  readonly sealKeys: SealKeys
  readonly usedStates: UsedStates
  readonly deadlines: CallDeadlines
  #config: VmcpConfig
  #retry: RetryPolicy | undefined
  #passed: readonly string[]
  #timeouts: Timeouts

  constructor({ config, roster, view, pipeline, clock, log, version, sealKeys, usedStates, waiting, policies, workflows }: OfferOptions) {
    this.sealKeys = sealKeys
    this.usedStates = usedStates
    this.view = view
    this.pipeline = pipeline
    this.clock = clock
    this.deadlines = new CallDeadlines(clock)
    this.log = log
    this.roster = roster
    this.serverInfo = { name: config.name, version }
    this.#config = config
    this.#passed = passedNames(config)
    this.#timeouts = timeoutsOf(config)
    this.composites = new CompositeCalls({
      ...{ clock, log, maxParallelSteps: () => this.#config.workflows.maxParallelSteps, toolLimits: this.toolLimits, waiting },
      events: workflows,
      offered: (name) => view.composites.offered.get(name),
      member: (name) => this.member(name),
      mayCall: (identity, route, args) => {
        if (!this.#config.workflows.authorizeSteps) return true
        const { key: name, item, backend, original: originalName, selector } = route
        const origin = selector === undefined ? { backend, originalName } : undefined
        // Policies that the configuration asks for and that are not there yet permit nothing.
        return policies !== undefined && mayCallTool(policies, identity, { name, args, item, origin })
      },
    })
    this.search = new ToolSearch({ view, pipeline, config: () => this.#config })
    this.#retry = retryOf(config)
  }

  get members(): readonly Member[] {
    return this.roster.all
  }

  get config(): VmcpConfig {
    return this.#config
  }

  /** Takes over timeouts, retries, limits and failure handling. */
  reconfigure(config: VmcpConfig): void {
    this.#config = config
    this.#passed = passedNames(config)
    this.#retry = retryOf(config)
    this.#timeouts = timeoutsOf(config)
  }

  /** Lists may differ from caller to caller. */
  get isPerCaller(): boolean {
    return this.roster.isPerCaller || this.#passed.length > 0
  }

  /** Headers of a request that go on to the backends; undefined where it has none of them. */
  passed(headers: Exchange['headers']): PassedHeaders | undefined {
    return this.#passed.length === 0 ? undefined : passedHeaders(this.#passed, headers)
  }

  member(name: string): Member | undefined {
    return this.roster.get(name)
  }

  get discovery(): JsonObject {
    return { supportedVersions: SERVED_VERSIONS, capabilities: this.capabilities, serverInfo: this.serverInfo }
  }

  /** With `partialFailureMode: fail`, why no new session begins. */
  refusal(): Rejection | undefined {
    if (this.#config.operational.failureHandling.partialFailureMode !== 'fail') return undefined
    const down = this.members.filter(({ health }) => health.status === 'unhealthy').map(({ name }) => name)
    if (down.length === 0) return undefined
    const rejection = unavailable('a backend is unhealthy, and partialFailureMode is fail')
    return { ...rejection, data: { ...rejection.data, backends: down } }
  }

  /** Limits of the call of a tool, advertised or hidden. */
  readonly toolLimits = ({ key, item }: Route, backend: string): ToolLimits => {
    const timeoutMs = this.#timeouts.byTool.get(key) ?? this.member(backend)?.backend.timeoutMs ?? this.#timeouts.defaultMs
    return { timeoutMs, retry: this.#retry, isIdempotent: isIdempotentCall(METHODS.toolsCall, item) }
  }

  /** How a failed call is sent again. */
  retryOf({ method, message }: ParsedRequest): Omit<ToolLimits, 'timeoutMs'> {
    const name = message.params?.['name']
    const tool = typeof name === 'string' ? this.view.now.tools.get(name)?.item : undefined
    return { retry: this.#retry, isIdempotent: isIdempotentCall(method, tool) }
  }

  /** Results of the method have a limit, so they have to be read. */
  limitsResults(method: string): boolean {
    return method === METHODS.toolsCall && this.#config.operational.toolResults !== undefined
  }

  /** A result within the configured limit. Only tools have one. */
  limited(result: JsonObject, method: string): JsonObject {
    const { toolResults } = this.#config.operational
    return toolResults === undefined || method !== METHODS.toolsCall ? result : limitResult(result, toolResults)
  }

  /** The limit of silence of a call: of its tool, else of its backend. */
  timeoutMs({ method, message }: ParsedRequest): number {
    const name = method === METHODS.toolsCall ? message.params?.['name'] : undefined
    const { byTool, defaultMs } = this.#timeouts
    const own = typeof name === 'string' ? byTool.get(name) : undefined
    if (own !== undefined) return own
    const backend = backendOf(this.view.now, method, message.params ?? {})
    const member = backend === undefined ? undefined : this.member(backend)
    return member?.backend.timeoutMs ?? defaultMs
  }

  /** No list has the target of a request, and lists of some backends wait for a login of the caller. */
  isUnrouted(found: ReturnType<typeof findRoute>): boolean {
    return found !== undefined && isRejection(found) && this.view.awaitingLogin.length > 0
  }

  /**
   * The route of a request whose target no list has, while lists of some backends wait for a login of the caller: they are asked again, and one that
   * still cannot be is answered with the challenge that leads to its login. Undefined: the call was given up meanwhile, and is answered.
   */
  async routeAfterLogin(call: VirtualCall, request: ParsedRequest): Promise<{ readonly found: RouteOrChallenge } | undefined> {
    return await call.route(async (signal) => ({ found: await this.#routeAfterLogin(request, signal) }))
  }

  async #routeAfterLogin({ method, message: { params = {} } }: ParsedRequest, signal: AbortSignal): Promise<RouteOrChallenge> {
    const waiting = this.view.awaitingLogin
    const meant = this.#waitingFor({ method, params })
    const challenges = await this.view.loadAfterLogin(
      waiting.filter(({ name }) => meant.includes(name)),
      signal,
    )
    const found = findRoute(this.view.now, method, params)
    const [challenge, ...others] = challenges
    return found !== undefined && isRejection(found) && challenge !== undefined && others.length === 0 ? { challenge } : found
  }

  /** The composite tool of a call lacks tools, and lists of some backends wait for a login of the caller. */
  lacksLogin({ method, message }: ParsedRequest): boolean {
    const name = message.params?.['name']
    if (method !== METHODS.toolsCall || typeof name !== 'string') return false
    return this.view.composites.missing.has(name) && this.view.awaitingLogin.length > 0
  }

  /** The same as `routeAfterLogin` for a composite tool. Nothing is found where it lacks more than a login. */
  async compositeAfterLogin(call: VirtualCall, request: ParsedRequest): Promise<{ readonly found: OfferOrChallenge } | undefined> {
    return await call.route(async (signal) => ({ found: await this.#compositeAfterLogin(request, signal) }))
  }

  async #compositeAfterLogin({ method, message: { params = {} } }: ParsedRequest, signal: AbortSignal): Promise<OfferOrChallenge> {
    const missing = this.view.composites.missing.get(String(params['name'])) ?? []
    const waiting = this.view.awaitingLogin
    const meant = missing.flatMap((tool) => {
      const own = waiting.filter(({ name }) => tool.startsWith(`${name}.`))
      const names = own.length > 0 ? own.map(({ name }) => name) : this.#waitingFor({ method, params: { name: tool } })
      return names.length === 1 ? names : []
    })
    const asked = waiting.filter(({ name }) => meant.includes(name))
    const challenge = joinChallenges(await this.view.loadAfterLogin(asked, signal))
    return this.composites.find(method, params) ?? (challenge && { challenge })
  }

  #waitingFor(request: { readonly method: string; readonly params: JsonObject }): readonly string[] {
    const names = this.view.awaitingLogin.map(({ name }) => name)
    return possibleBackends(request, names, this.#config.aggregation)
  }

  /** The response to a list request, out of memory. */
  async listText(context: MessageContext, request: ParsedRequest, { project, extra = {} }: ListTextOptions): Promise<string | Rejection> {
    const kind = KIND_OF.get(request.method)
    if (kind === undefined) return reject('method_not_found')
    await this.view.current()
    const page = pageOf(this.view.textOf(kind), request.message.params?.['cursor'], { project, isShared: !this.isPerCaller })
    if (page === undefined) return reject('invalid_params', { detail: 'the cursor is not valid' })
    const rest = { ...(page.nextCursor !== undefined && { nextCursor: page.nextCursor }), ...extra }
    const tail = Object.entries(rest).map(([key, value]) => `,${JSON.stringify(key)}:${JSON.stringify(value)}`)
    const text = `{"jsonrpc":"2.0","id":${JSON.stringify(request.id)},"result":{"${kind}":[${page.text}]${tail.join('')}}}`
    const edited = this.pipeline.edits(request.method) ? this.pipeline.responseText(context, text) : text
    context.outcome = 'ok'
    if (edited.length <= this.pipeline.answerBytes) context.answer = edited
    return edited
  }
}

export type OfferOrChallenge = CompositeOffer | LoginChallenge | undefined

export type RouteOrChallenge = ReturnType<typeof findRoute> | LoginChallenge

/** No list has the target, and the login that is missing may lead to one that has. */
export interface LoginChallenge {
  readonly challenge: Rejection
}

const DEFAULT_TIMEOUT_MS = 30_000

function passedNames({ passthroughHeaders }: VmcpConfig): readonly string[] {
  return [...new Set(passthroughHeaders.map((name) => name.toLowerCase()))].toSorted()
}

/** Parsed once: every call needs one of them. */
interface Timeouts {
  readonly byTool: ReadonlyMap<string, number>
  readonly defaultMs: number
}

function timeoutsOf({ operational: { timeouts } }: VmcpConfig): Timeouts {
  const msOf = (duration: string) => tryParseDuration(duration) ?? DEFAULT_TIMEOUT_MS
  const byTool = new Map(Object.entries(timeouts.perTool).map(([tool, duration]) => [tool, msOf(duration)]))
  return { byTool, defaultMs: msOf(timeouts.default) }
}

function retryOf({ operational: { retry } }: VmcpConfig): RetryPolicy | undefined {
  return retry && { attempts: retry.attempts, backoffMs: tryParseDuration(retry.backoff) ?? 250, on: new Set(retry.on) }
}
