import { isErrorResponse, isObject, type JsonRpcResponse } from '@thv/mcp/json-rpc'
import { parseText } from '@thv/mcp/parse-body'
import type { Outcome } from '@thv/middleware/pipeline/request-context'

/** The outcome of a call, by its response. */
export function outcomeOf(message: JsonRpcResponse): Outcome {
  if (isErrorResponse(message)) return 'error'
  return isObject(message.result) && message.result['isError'] === true ? 'toolError' : 'ok'
}

const ERROR = Buffer.from('"error"')
const IS_ERROR = Buffer.from('"isError"')

/** As `outcomeOf`, for the bytes of a response. They are parsed only if a member name in them suggests a failure. */
export function outcomeOfBytes(bytes: Buffer): Outcome {
  if (!bytes.includes(ERROR) && !bytes.includes(IS_ERROR)) return 'ok'
  const parsed = parseText(bytes.toString('utf8'))
  return parsed.kind === 'response' ? outcomeOf(parsed.message) : 'ok'
}
