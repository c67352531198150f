import { allTools } from '@thv/gateway/relay/tool-list'
import { RejectedError } from '@thv/gateway/response/rejected-error'
import { ThvError } from '@thv/kernel/errors'
import { isErrorResponse, isObject, type JsonObject, serialise } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'
import { isRejection, reject } from '@thv/mcp/wire-errors'
import { ownMeta } from './handshake.ts'
import type { ProcessSlot } from './process-slot.ts'
import { requestOf } from './request.ts'
import type { StdioConfig } from './stdio-config.ts'

/** The tools of a process that has been greeted, by a request of our own. */
export function toolsOfProcess({ link, greeting }: ProcessSlot, config: StdioConfig): Promise<JsonObject[]> {
  return allTools(async (cursor) => {
    if (link === undefined) throw new RejectedError(reject('backend_unavailable'))
    const params = { ...(cursor !== undefined && { cursor }), ...(greeting?.era === 'modern' && { _meta: ownMeta(config) }) }
    const text = serialise({ jsonrpc: '2.0', id: 0, method: METHODS.toolsList, params })
    const answer = await requestOf(link, text, { idleMs: config.idleTimeoutMs })
    if (isRejection(answer)) throw new RejectedError(answer)
    const { message } = answer
    if (isErrorResponse(message) || !isObject(message.result)) throw new ThvError('backend_protocol', 'the server does not list its tools')
    return message.result
  })
}
