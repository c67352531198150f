import { errorMessage } from '@thv/kernel/errors'
import type { Log } from '@thv/telemetry/log'
import type { ExchangeContext } from '../exchange-context.ts'
import { rejectionOf } from './backend-rejection.ts'
import { RejectedError } from './rejected-error.ts'

/** Answers a request that failed at the backend, with a coded error. Rethrows an error that is not the backend's: a fault of ours. */
export function sendFailure(context: ExchangeContext, error: unknown, log: Log): void {
  const { exchange } = context
  const isExpected = error instanceof RejectedError
  const rejection = isExpected ? error.rejection : rejectionOf(error)
  if (rejection === undefined) throw error
  if (exchange.closed) return
  if (!isExpected) log.warn('request failed at the backend', { answer: rejection.error, error: errorMessage(error) })
  if (exchange.begun) exchange.destroy(error)
  else context.reject(rejection)
  if (rejection.httpStatus >= 500) context.outcome = 'error'
}
