import { headerText } from '@thv/http/header-map'
import { ClientAnswer } from '@thv/http/server/client-answer'
import type { RequestId } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'
import { reject } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { RequestContext } from '@thv/middleware/pipeline/request-context'
import { brokenAnswer, timedOut, unavailable } from '../response/backend-rejection.ts'
import { RejectedError } from '../response/rejected-error.ts'
import { editedBody, editedFrames } from './answer-frames.ts'
import { encodedAnswer, isEncoded } from './encoded-answer.ts'
import { type HeldAnswer, isEventStream } from './relay-call.ts'
import { responseKind } from './response-check.ts'

/**
 * An answer that was held back, with the lists in it edited as in any other answer. Without a request whose method is known, the form of
 * the result decides. Throws OutboundError for a result that cannot be checked.
 */
export function editedAnswer(pipeline: Pipeline, context: RequestContext, held: HeldAnswer): HeldAnswer {
  const method = context.received?.kind === 'request' ? context.received.method : undefined
  const isList = method !== undefined && pipeline.edits(method)
  const isStray = pipeline.editsStrays && (method === undefined || method === METHODS.listen)
  if (!isList && !isStray) return held
  const edit = (text: string) => (isList ? pipeline.responseText(context, text) : pipeline.strayResponseText(context, text))
  const isEvents = isEventStream(held.headers)
  return { ...held, body: isEvents ? editedFrames(held.body, edit) : editedBody(held.body, edit) }
}

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
