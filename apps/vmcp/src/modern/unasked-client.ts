import { McpErrorResponse } from '@thv/mcp/client/client-errors'
import type { ClientHandler, ClientHandlers, McpClient, RequestOptions } from '@thv/mcp/client/mcp-client'
import type { JsonObject } from '@thv/mcp/json-rpc'
import { errorObjectOf, missingCapability } from '@thv/mcp/wire-errors'
import { LocalRefusal } from '../members/local-refusal.ts'
import type { CallingClient } from '../route/virtual-call.ts'

/**
 * The shared session of a legacy backend, for a call that is not parked: its client declares nothing that it can be asked, or no call is. A question
 * of the backend is refused, and the call fails whatever the backend makes of the refusal: with the capability that the client lacks, else with
 * the way of asking that is turned off.
 */
export function unaskedClient(shared: McpClient, declared: JsonObject): CallingClient {
  return {
    get era() {
      return shared.era
    },
    async request(method, params, options) {
      const missing = new Set<string>()
      const refuse =
        (capability: string): ClientHandler =>
        () => {
          missing.add(capability)
          throw new McpErrorResponse({ code: -32601, message: 'Method not found' })
        }
      const handlers = { sampling: refuse('sampling'), elicitation: refuse('elicitation'), roots: refuse('roots') }
      try {
        const result = await shared.request(method, params, new UnaskedOptions(options, handlers))
        if (missing.size === 0) return result
      } catch (error) {
        if (missing.size === 0 || !(error instanceof McpErrorResponse)) throw error
      }
      const undeclared = [...missing].filter((capability) => !Object.hasOwn(declared, capability))
      if (undeclared.length === 0) throw notParked()
      const required: JsonObject = Object.fromEntries(undeclared.map((capability) => [capability, {}]))
      throw new LocalRefusal(errorObjectOf(missingCapability(required)))
    },
  }
}

function notParked(): LocalRefusal {
  const message = 'The backend asks its client during a call as legacy servers do, and bridge.parkedCalls is off'
  return new LocalRefusal({ code: -32603, message, data: { reason: 'legacy interactive call', mayHaveRun: true } })
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
