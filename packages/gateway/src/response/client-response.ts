import { spliceId } from '@thv/mcp/json-rpc'
import type { ParsedResponse } from '@thv/mcp/parse-body'
import { type Rejection, reject } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { MessageContext } from '@thv/middleware/pipeline/request-context'
import { noteResponse } from './outcome.ts'

/**
 * The server's answer as the client gets it: under the client's id, in its JSON type. Everything that no middleware changes stays as
 * the server wrote it. A middleware that fails makes it a rejection. Notes the outcome of the call.
 */
export function answerText(response: ParsedResponse, context: MessageContext, pipeline: Pipeline): string | Rejection {
  const { id, method } = context.received
  if (id === undefined || method === undefined) return reject('internal_error')
  noteResponse(context, response, pipeline)
  const { text } = response
  if (!pipeline.edits(method)) return spliceId(text, id)
  try {
    return spliceId(pipeline.responseText(context, text), id)
  } catch {
    return reject('internal_error', { detail: 'the answer of the server could not be edited' })
  }
}
