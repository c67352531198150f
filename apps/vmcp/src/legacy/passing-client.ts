import type { McpClient, PassOptions } from '@thv/mcp/client/mcp-client'
import { stripParams } from '@thv/mcp/envelope'
import { isObject, type JsonObject, type RequestId } from '@thv/mcp/json-rpc'
import { spliceMember } from '@thv/mcp/json-splice'
import type { ParsedRequest } from '@thv/mcp/parse-body'
import type { CallOptions } from '../route/sent-options.ts'
import type { CallingClient } from '../route/virtual-call.ts'

/**
 * A request of a legacy client to a legacy backend. Its text goes there as it is written, but for the id, the name and what belongs to this hop, and
 * a plain result comes back as it is written, but for the id. Undefined: it has to be written again.
 */
export function passingClient(client: McpClient, request: ParsedRequest, params: JsonObject): CallingClient | undefined {
  const given = request.message.params ?? {}
  if (client.era !== 'legacy' || params['arguments'] !== given['arguments'] || stripParams(given) !== given) return undefined
  return new PassingClient(client, request)
}

class PassingClient implements CallingClient {
  readonly #client: McpClient
  readonly #request: ParsedRequest

  constructor(client: McpClient, request: ParsedRequest) {
    this.#client = client
    this.#request = request
  }

  get era(): McpClient['era'] {
    return this.#client.era
  }

  request(method: string, params: JsonObject, options: CallOptions): Promise<JsonObject | string> {
    return this.#client.pass(method, params, new PassedOptions(this.#request, params, options))
  }
}

/** The signal is made when it is asked for. */
class PassedOptions implements PassOptions {
  readonly cancellation: CallOptions['cancellation']
  readonly onNotification: PassOptions['onNotification']
  readonly onProgress: PassOptions['onProgress']
  readonly handlers: PassOptions['handlers']
  readonly logLevel: PassOptions['logLevel']
  readonly answerId: RequestId
  readonly #request: ParsedRequest
  readonly #params: JsonObject
  readonly #options: CallOptions

  constructor(request: ParsedRequest, params: JsonObject, options: CallOptions) {
    this.cancellation = options.cancellation
    this.onNotification = options.onNotification
    this.onProgress = options.onProgress
    this.handlers = options.handlers
    this.logLevel = options.logLevel
    this.answerId = request.id
    this.#request = request
    this.#params = params
    this.#options = options
  }

  get signal(): AbortSignal | undefined {
    return this.#options.signal
  }

  write(id: RequestId): string {
    return textOf(this.#request, { params: this.#params, id, hasToken: this.onProgress !== undefined })
  }
}

interface Writing {
  readonly params: JsonObject
  readonly id: RequestId
  readonly hasToken: boolean
}

function textOf({ text: given, message }: ParsedRequest, { params, id, hasToken }: Writing): string {
  let text = spliceMember(given, ['id'], JSON.stringify(id))
  const before = message.params ?? {}
  for (const member of ['name', 'ref'])
    if (params[member] !== before[member]) text = spliceMember(text, ['params', member], JSON.stringify(params[member]))
  const { _meta: meta } = params
  if (!hasToken && meta === before['_meta']) return text
  const own = { ...(isObject(meta) ? meta : {}), ...(hasToken && { progressToken: id }) }
  return spliceMember(text, ['params', '_meta'], JSON.stringify(own))
}
