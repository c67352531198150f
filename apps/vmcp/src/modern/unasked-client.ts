import { lackedCapability } from '@thv/mcp/bridge/questions'
import { McpErrorResponse } from '@thv/mcp/client/client-errors'
import type { ClientHandler, ClientHandlers, McpClient, RequestOptions } from '@thv/mcp/client/mcp-client'
import type { JsonObject } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'
import { errorObjectOf, missingCapability } from '@thv/mcp/wire-errors'
import { LocalRefusal } from '../members/local-refusal.ts'
import { linksFirst } from '../parked/links-first.ts'
import type { CallingClient } from '../route/virtual-call.ts'

/**
 * The shared session of a legacy backend, for one call that is not parked: its client declares nothing that it can be asked, or no call is. A
 * question of the backend is refused, and the call fails whatever the backend makes of the refusal: with the capability that the client lacks, else
 * with the way of asking that is turned off. A backend that goes on without roots is left alone.
 */
export function unaskedClient(shared: McpClient, declared: JsonObject): CallingClient {
  let hasLinks = false
  return {
    get era() {
      return hasLinks ? 'modern' : shared.era
    },
    async request(method, params, options) {
      const refused = new RefusedQuestions(declared)
      try {
        const result = await shared.request(method, params, new UnaskedOptions(options, refused.handlers))
        if (refused.maySucceed || (refused.isOptional && result['isError'] !== true)) return result
      } catch (error) {
        const links = linksFirst(error, declared)
        if (links !== undefined) {
          hasLinks = true
          return links
        }
        if (refused.maySucceed || !(error instanceof McpErrorResponse)) throw error
      }
      throw refused.reason
    },
  }
}

/** Questions of a backend in one call, all of them refused. */
class RefusedQuestions {
  readonly handlers: ClientHandlers
  readonly #declared: JsonObject
  #lacked: JsonObject = {}
  #count = 0
  /** Servers often go on without roots. */
  #roots = 0

  constructor(declared: JsonObject) {
    this.#declared = declared
    const refuse =
      (method: string): ClientHandler =>
      (params) =>
        this.#refuse(method, params)
    this.handlers = { sampling: refuse(METHODS.createMessage), elicitation: refuse(METHODS.elicit), roots: refuse(METHODS.rootsList) }
  }

  get maySucceed(): boolean {
    return this.#count === 0
  }

  get isOptional(): boolean {
    return this.#count === this.#roots
  }

  get reason(): LocalRefusal {
    if (Object.keys(this.#lacked).length > 0) return new LocalRefusal(errorObjectOf(missingCapability(this.#lacked)))
    const message = 'The backend asks its client during a call as legacy servers do, and bridge.parkedCalls is off'
    return new LocalRefusal({ code: -32603, message, data: { reason: 'legacy interactive call', mayHaveRun: true } })
  }

  #refuse(method: string, params: JsonObject): never {
    this.#count++
    if (method === METHODS.rootsList) this.#roots++
    this.#lacked = { ...this.#lacked, ...lackedCapability({ method, params }, this.#declared) }
    throw new McpErrorResponse({ code: -32601, message: 'Method not found' })
  }
}

/** The options of a call with other handlers. The signal is made when it is asked for. */
class UnaskedOptions implements RequestOptions {
  readonly cancellation: RequestOptions['cancellation']
  readonly handlers: ClientHandlers
  readonly onNotification: RequestOptions['onNotification']
  readonly onProgress: RequestOptions['onProgress']
  readonly capabilities: RequestOptions['capabilities']
  readonly logLevel: RequestOptions['logLevel']
  readonly returnInputRequired: RequestOptions['returnInputRequired']
  readonly #options: RequestOptions

  constructor(options: RequestOptions, handlers: ClientHandlers) {
    this.cancellation = options.cancellation
    this.handlers = handlers
    this.onNotification = options.onNotification
    this.onProgress = options.onProgress
    this.capabilities = options.capabilities
    this.logLevel = options.logLevel
    this.returnInputRequired = options.returnInputRequired
    this.#options = options
  }

  get signal(): AbortSignal | undefined {
    return this.#options.signal
  }
}
