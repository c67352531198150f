import { OutboundError } from '@thv/http/outbound/outbound-error'
import { isThvError } from '@thv/kernel/errors'
import { type Rejection, reject, retryLater } from '@thv/mcp/wire-errors'

/** `Retry-After` of a request to a backend that was not reachable. */
const RETRY_AFTER_MS = 2_000

/**
 * The rejection of a failed call. `data.mayHaveRun` tells the client whether it may repeat the call: false only when the
 * backend provably never saw the request. No address and no text of the system gets out. Undefined: not a failure of the backend.
 */
export function rejectionOf(error: unknown): Rejection | undefined {
  if (!isThvError(error)) return undefined
  const sent = error instanceof OutboundError ? error.sent : error.details['sent'] !== false
  switch (error.code as string) {
    case 'backend_busy':
      return unavailable('too many calls are waiting for it')
    case 'backend_blocked':
      return unavailable('its address is not allowed by the configuration')
    case 'backend_tls':
      return unavailable('its certificate is not trusted')
    case 'backend_connect_timeout':
    case 'backend_dns':
    case 'backend_refused':
    case 'backend_unreachable':
      return unavailable('it cannot be reached')
    case 'redis_unavailable':
      return unavailable('its session cannot be stored or read now')
    case 'timeout':
    case 'backend_timeout':
      return timedOut('no sign of life within the time limit')
    case 'backend_response_too_large':
    case 'message_too_large':
      return brokenAnswer('the answer is over the size limit')
    case 'backend_protocol':
      return sent ? brokenAnswer('the answer is not valid HTTP') : unavailable('it does not speak HTTP')
    case 'backend_reset':
      return sent ? connectionLost() : unavailable('the connection broke before the request was sent')
    case 'aborted':
      return retryLater('draining', RETRY_AFTER_MS)
    default:
      return undefined
  }
}

export function unavailable(detail: string, afterMs: number = RETRY_AFTER_MS): Rejection {
  return { ...retryLater('backend_unavailable', afterMs), detail, data: { mayHaveRun: false, retryable: true } }
}

export function timedOut(detail: string): Rejection {
  return reject('backend_timeout', { detail, data: { mayHaveRun: true, retryable: true } })
}

/** A stream that its server ended in good order, but too early. */
export function unanswered(): Rejection {
  const detail = 'the answer ended without a response to the call, which may have been carried out'
  return reject('backend_protocol_error', { detail, data: { mayHaveRun: true, retryable: true } })
}

/** The protocol has no way to ask what became of the call. */
export function connectionLost(detail = 'it broke before the answer was complete; the call may have been carried out'): Rejection {
  return reject('backend_connection_lost', { detail, data: { mayHaveRun: true, retryable: true } })
}

export function brokenAnswer(detail: string, status?: number): Rejection {
  const data = { mayHaveRun: true, retryable: false, ...(status !== undefined && { backendStatus: status }) }
  return reject('backend_protocol_error', { detail, data })
}
