import { spliceId } from '@thv/mcp/json-rpc'
import type { ParsedResponse } from '@thv/mcp/parse-body'
import { type Rejection, reject } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { RequestContext } from '@thv/middleware/pipeline/request-context'

/**
 * The server's answer as the client gets it: under the client's id, in its JSON type. Only what a link of the chain has changed is
 * written anew; all else stays as the server wrote it. A link that fails makes it a rejection.
 */
export function answerText({ text }: ParsedResponse, context: RequestContext, pipeline: Pipeline): string | Rejection {
  const { id, method } = context.received
  if (id === undefined || method === undefined) return reject('internal_error')
  if (!pipeline.editsResultOf(method)) return spliceId(text, id)
  try {
    return spliceId(pipeline.responseText(context, text), id)
  } catch {
    return reject('internal_error', { detail: 'the answer of the server could not be edited' })
  }
}
