import { headerText } from '@thv/http/header-map'
import { ClientAnswer } from '@thv/http/server/client-answer'
import type { RequestId } from '@thv/mcp/json-rpc'
import { reject } from '@thv/mcp/wire-errors'
import type { RequestContext } from '@thv/middleware/pipeline/request-context'
import { brokenAnswer, timedOut, unavailable } from '../response/backend-rejection.ts'
import { RejectedError } from '../response/rejected-error.ts'
import { encodedAnswer, isEncoded } from './encoded-answer.ts'
import type { HeldAnswer } from './relay-call.ts'
import { responseKind } from './response-check.ts'

/**
 * Passes on an answer that was held back. The backend's own rejections get to the client as they are; its failures become ours, so that
 * a status of 500 and above always comes with a coded error. A challenge to our own credentials is not for the client. Throws
 * RejectedError.
 */
export function passOn({ exchange, credentials }: RequestContext, held: HeldAnswer, id: RequestId | undefined): void {
  const { status, headers, body } = held
  if ((status === 200 || body.length > 0) && isEncoded(headers)) throw encodedAnswer()
  if (credentials !== undefined) {
    if (status === 401) throw new RejectedError(reject('credentials_refused'))
    headers['www-authenticate'] = undefined
  }
  if (status >= 300 && status < 400) throw new RejectedError(brokenAnswer('it redirects to somewhere else', status))
  if (status < 500) {
    new ClientAnswer(exchange).whole(status, headers, body)
    return
  }
  // Many servers answer with 500 when a handler failed, and with the error that belongs to it: that is an answer to the call.
  if (id !== undefined && responseKind(body.toString('utf8'), id) === 'ours') new ClientAnswer(exchange).whole(200, headers, body)
  else throw failureOf(held)
}

function failureOf({ status, headers }: HeldAnswer): RejectedError {
  if (status === 504) return new RejectedError(timedOut('a gateway before it gave up'))
  if (status !== 503) return new RejectedError(brokenAnswer('it failed', status))
  const seconds = Number(headerText(headers['retry-after']))
  return new RejectedError(unavailable('it says so itself', seconds > 0 && seconds < 3_600 ? seconds * 1_000 : undefined))
}
