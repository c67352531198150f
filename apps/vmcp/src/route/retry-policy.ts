import { OutboundError } from '@thv/http/outbound/outbound-error'
import { McpHttpError } from '@thv/mcp/client/client-errors'
import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'

export interface RetryPolicy {
  readonly attempts: number
  readonly backoffMs: number
  readonly on: ReadonlySet<string>
}

/** Whether a failed call may be sent again: one that never left may, one that may have run only if that makes no difference. */
export function mayRepeat(error: unknown, { on }: RetryPolicy, isIdempotent: boolean): boolean {
  if (error instanceof OutboundError)
    return on.has('connect') && !error.sent && error.code !== 'backend_blocked' && error.code !== 'backend_busy'
  if (error instanceof McpHttpError) return on.has('unavailable') && isIdempotent && error.status >= 502 && error.status <= 504
  return false
}

/** Reading has no effect; a tool says of itself whether it may be called twice. */
export function isIdempotentCall(method: string, tool: JsonObject | undefined): boolean {
  if (method !== METHODS.toolsCall) return true
  const annotations = tool?.['annotations']
  return isObject(annotations) && (annotations['readOnlyHint'] === true || annotations['idempotentHint'] === true)
}
