import { ThvError } from '@thv/kernel/errors'
import type { FinalVerdict } from '../../era-cache.ts'
import { METHODS } from '../../methods.ts'
import { contradictionOf, type Observation } from '../../probe.ts'
import { type ClientContext, clientContext } from '../client-context.ts'
import { FootingLost, McpErrorResponse, McpHttpError } from '../client-errors.ts'
import type { Engine } from '../engine.ts'
import { EngineClient, type Opener } from '../engine-client.ts'
import { LegacyEngine } from '../legacy-engine.ts'
import { createLegacyMemory } from '../legacy-memory.ts'
import type { LinkAnswer } from '../link.ts'
import type { ClientOptions, McpClient } from '../mcp-client.ts'
import { ModernEngine } from '../modern-engine.ts'
import { BackendEras } from './backend-eras.ts'
import { type EndpointOptions, HttpEndpoint } from './http-endpoint.ts'
import { openSseEngine } from './http-sse-client.ts'
import { LegacyHttpLink } from './legacy-http-link.ts'
import { ModernHttpLink } from './modern-http-link.ts'
import { type ProbeReport, probeEra } from './probe-http.ts'

export interface StreamableHttpOptions extends ClientOptions, EndpointOptions {
  /** The era cache of all clients of a process; unless given, this client remembers for itself. */
  readonly eras?: BackendEras | undefined
}

/** A client of an MCP server at a URL: streamable HTTP in the era that the server speaks, or HTTP+SSE where it speaks nothing newer. */
export function createStreamableHttpClient(options: StreamableHttpOptions): McpClient {
  const context = clientContext(options)
  return new EngineClient(context, new HttpOpener(context, options))
}

class HttpOpener implements Opener {
  readonly #context: ClientContext
  readonly #endpoint: HttpEndpoint
  readonly #pin: StreamableHttpOptions['era']
  readonly #eras: BackendEras
  readonly #ownEras: BackendEras | undefined
  /** Not of one principal or query: the era is a property of the server. */
  readonly #key: string
  readonly #memory = createLegacyMemory()

  constructor(context: ClientContext, options: StreamableHttpOptions) {
    this.#context = context
    this.#endpoint = new HttpEndpoint(options)
    this.#pin = options.era
    this.#ownEras = options.eras ? undefined : new BackendEras({ clock: context.clock })
    this.#eras = options.eras ?? (this.#ownEras as BackendEras)
    this.#key = `${this.#endpoint.url.origin}${this.#endpoint.url.pathname}`
  }

  async open(signal: AbortSignal): Promise<Engine> {
    if (this.#pin === 'legacy') return await this.#openLegacy(signal)
    if (this.#pin === 'modern') return this.#modernEngine(await this.#probe(signal))
    try {
      return await this.#openByVerdict(signal)
    } catch (error) {
      // The known facts about the server are out of date and have been forgotten: ask it once more.
      if (error instanceof FootingLost) return await this.#openByVerdict(signal)
      throw error
    }
  }

  close(): void {
    this.#ownEras?.close()
  }

  async #openByVerdict(signal: AbortSignal): Promise<Engine> {
    let report: ProbeReport | undefined
    const probe = async (limit: AbortSignal) => {
      report = await probeEra(new ModernHttpLink(this.#endpoint, this.#context), this.#context, limit)
      return report.verdict
    }
    const verdict = await this.#eras.get(this.#key, probe, signal)
    if (verdict.verdict === 'legacy') return await this.#openLegacy(signal, { isFresh: report !== undefined })
    if (verdict.verdict !== 'modern') throw verdictError(verdict, report?.failure)
    return this.#modernEngine(report ?? (await this.#probe(signal)))
  }

  /** Also for what a server says about itself where its era is known. */
  async #probe(signal: AbortSignal): Promise<ProbeReport> {
    const report = await probeEra(new ModernHttpLink(this.#endpoint, this.#context), this.#context, signal)
    if (report.verdict.verdict === 'inconclusive') throw verdictError(report.verdict, report.failure)
    if (report.verdict.verdict === 'modern' || this.#pin === 'modern') return report
    this.#eras.forget(this.#key)
    throw new FootingLost('the MCP server does not speak the modern era any more', { mayRetry: true, cause: report.failure })
  }

  #modernEngine({ identity }: ProbeReport): Engine {
    const context = this.#context
    if (!identity) context.warn('the MCP server is modern but did not answer server/discover: its capabilities are not known')
    const observe = this.#pin === undefined || this.#pin === 'auto' ? { observe: (seen: Observation) => this.#observeModern(seen) } : {}
    const unknown = { serverInfo: undefined, capabilities: {}, instructions: undefined }
    return new ModernEngine({ link: new ModernHttpLink(this.#endpoint, context), context, identity: identity ?? unknown, ...observe })
  }

  async #openLegacy(signal: AbortSignal, { isFresh = true } = {}): Promise<Engine> {
    const context = this.#context
    const link = new LegacyHttpLink(this.#endpoint, context)
    const inspect = (answer: LinkAnswer) => this.#inspectHandshake(answer, isFresh)
    try {
      return await LegacyEngine.open({ link, context, memory: this.#memory, signal, inspect })
    } catch (error) {
      await link.close()
      if (!isUnknownHere(error)) throw error
      return await this.#openSse(signal, error)
    }
  }

  /** A server of 2024-11-05 knows no POST at this URL. If it does not know the GET either, the first refusal says more. */
  async #openSse(signal: AbortSignal, refusal: unknown): Promise<Engine> {
    const context = this.#context
    try {
      return await openSseEngine({ endpoint: this.#endpoint, context, memory: this.#memory, signal })
    } catch (error) {
      context.warn(`no HTTP+SSE either: ${error instanceof Error ? error.message : String(error)}`)
      throw signal.aborted ? error : refusal
    }
  }

  /** Throws when the answer to `initialize` says that the server is modern; a verdict of this very moment weighs more than a refusal. */
  #inspectHandshake({ status, body }: LinkAnswer, isFresh: boolean): void {
    if (this.#pin === 'legacy') return
    const observation = { method: METHODS.initialize, status, body }
    const contradiction = contradictionOf('legacy', observation)
    if (contradiction === undefined || (isFresh && contradiction.era === undefined)) return
    this.#eras.observe(this.#key, observation)
    throw new FootingLost('the MCP server does not speak the legacy era any more', { mayRetry: true })
  }

  /** Judged by what this client takes the server for: another client may have corrected the common knowledge already. */
  #observeModern(observation: Observation) {
    const contradiction = contradictionOf('modern', observation)
    if (contradiction) this.#eras.observe(this.#key, observation)
    return contradiction
  }
}

/** The status with which servers of other kinds refuse an `initialize`, without a word that only a modern server would say. */
function isUnknownHere(error: unknown): boolean {
  if (error instanceof McpHttpError) return error.status === 400 || error.status === 404 || error.status === 405
  if (!(error instanceof McpErrorResponse)) return false
  const { httpStatus, rpcCode } = error
  return (httpStatus === 400 || httpStatus === 404 || httpStatus === 405) && !(rpcCode <= -32020 && rpcCode > -32100)
}

function verdictError(verdict: FinalVerdict, failure: unknown): unknown {
  if (verdict.verdict === 'fail') return new ThvError('mcp_no_common_version', 'the MCP server and this client have no revision in common')
  if (failure !== undefined) return failure
  const isAuth = verdict.verdict === 'inconclusive' && verdict.reason === 'unauthorized'
  return new ThvError(isAuth ? 'mcp_auth_required' : 'backend_unavailable', `the era of the MCP server could not be found out`)
}
