import type { McpClient } from '@thv/mcp/client/mcp-client'
import { stripParams } from '@thv/mcp/envelope'
import { isObject, type JsonObject, type RequestId } from '@thv/mcp/json-rpc'
import { spliceMember } from '@thv/mcp/json-splice'
import type { ParsedRequest } from '@thv/mcp/parse-body'
import type { CallingClient } from '../route/virtual-call.ts'

/**
 * A request of a legacy client to a legacy backend. Its text goes there as it is written, but for the id, the name and what belongs to this hop, and
 * a plain result comes back as it is written, but for the id. Undefined: it has to be written again.
 */
export function passingClient(client: McpClient, request: ParsedRequest, params: JsonObject): CallingClient | undefined {
  const given = request.message.params ?? {}
  if (client.era !== 'legacy' || params['arguments'] !== given['arguments'] || stripParams(given) !== given) return undefined
  return {
    get era() {
      return client.era
    },
    request: (method, traced, options) => {
      const write = (id: RequestId) => textOf(request, { params: traced, id, hasToken: options.onProgress !== undefined })
      const { cancellation, onNotification, onProgress, handlers, logLevel } = options
      return client.pass(method, traced, {
        get signal() {
          return options.signal
        },
        ...{ cancellation, onNotification, onProgress, handlers, logLevel, write, answerId: request.id },
      })
    },
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
