import type { Exchange } from '@thv/http/server/exchange'
import { errorMessage } from '@thv/kernel/errors'
import type { RequestId } from '@thv/mcp/json-rpc'
import type { Log } from '@thv/telemetry/log'
import { rejectionOf } from './backend-rejection.ts'
import { RejectedError } from './rejected-error.ts'
import { sendRejection } from './send-rejection.ts'

export interface FailureOptions {
  readonly log: Log
  readonly id?: RequestId | undefined
}

/** Tells the client what became of its request, with a coded error. Rethrows what is no failure of the backend: that is a fault of ours. */
export function sendFailure(exchange: Exchange, error: unknown, { log, id }: FailureOptions): void {
  const rejection = error instanceof RejectedError ? error.rejection : rejectionOf(error)
  if (rejection === undefined) throw error
  if (exchange.closed) return
  if (!(error instanceof RejectedError))
    log.warn('a request failed at the backend', { answer: rejection.error, error: errorMessage(error) })
  if (exchange.begun) exchange.destroy(error)
  else sendRejection(exchange, rejection, id)
}
