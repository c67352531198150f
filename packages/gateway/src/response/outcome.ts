import { isErrorResponse, isObject } from '@thv/mcp/json-rpc'
import { type ParsedResponse, parseText } from '@thv/mcp/parse-body'
import type { Rejection } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { RequestContext } from '@thv/middleware/pipeline/request-context'

/** The response of the backend, as `end` steps see it: notes outcome and error, and the text where a middleware asks for it. */
export function noteResponse(context: RequestContext, { message, text }: ParsedResponse, pipeline: Pipeline): void {
  if (isErrorResponse(message)) {
    context.outcome = 'error'
    context.failure = message.error
  } else context.outcome = isObject(message.result) && message.result['isError'] === true ? 'toolError' : 'ok'
  if (pipeline.answerBytes > 0 && text.length <= pipeline.answerBytes) context.answer = text
}

const ERROR = Buffer.from('"error"')
const IS_ERROR = Buffer.from('"isError"')

/** As `noteResponse`, for bytes. They are parsed only if a member name in them suggests a failure. */
export function noteResponseBytes(context: RequestContext, bytes: Buffer, pipeline: Pipeline): void {
  if (!pipeline.observesEnd) return
  context.outcome = 'ok'
  if (bytes.includes(ERROR) || bytes.includes(IS_ERROR)) {
    const parsed = parseText(bytes.toString('utf8'))
    if (parsed.kind === 'response') noteResponse(context, parsed, pipeline)
  } else if (pipeline.answerBytes > 0 && bytes.length <= pipeline.answerBytes) context.answer = bytes.toString('utf8')
}

/** The client got an error of ours in the place of the backend's response. */
export function noteFailure(context: RequestContext, rejection: Rejection): void {
  context.outcome = 'error'
  context.rejection = rejection
}
