import { isThvError } from '@thv/kernel/errors'
import { RequestError } from '../http-errors.ts'
import type { Exchange } from './exchange.ts'
import { sendProblem } from './respond.ts'

/**
 * Answers an exchange whose handler failed: with the status of a RequestError, with 500 for a surprise, or by cutting the connection
 * where the answer has begun. Only surprises are reported.
 */
export function answerHandlerFailure(exchange: Exchange, error: unknown, report: (error: unknown, exchange: Exchange) => void): void {
  const { begun } = exchange
  if (error instanceof RequestError && !begun) {
    sendProblem(exchange, error.status, { text: error.message })
    return
  }
  // A handler that stops because the client has gone did right.
  if (!(exchange.aborted && isThvError(error, 'aborted'))) report(error, exchange)
  if (begun) exchange.destroy(error)
  else sendProblem(exchange, 500)
}
