import type { Exchange } from '@thv/http/server/exchange'
import { sendEmpty } from '@thv/http/server/respond'
import { DEFAULT_PARSE_LIMITS, echoId } from '@thv/mcp/parse-body'
import { isValidSessionId } from '@thv/mcp/session-id'
import { isRejection, methodNotAllowed, reject } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { RequestContext } from '@thv/middleware/pipeline/request-context'
import type { Log } from '@thv/telemetry/log'
import type { SseEndpoint } from '../backend.ts'
import { sendFailure } from '../response/send-failure.ts'
import { sendRejection } from '../response/send-rejection.ts'
import { ANONYMOUS } from './mcp-endpoint.ts'
import { readMessage } from './read-message.ts'

export interface SseRoutesOptions {
  readonly sse: SseEndpoint
  readonly pipeline: Pipeline
  readonly log: Log
  readonly maxBodyBytes: number
}

export interface SseRoutes {
  /** `/sse`. Anything but GET is refused with 405, which is how a client finds out that this is not streamable HTTP. */
  open(exchange: Exchange): Promise<undefined>
  /** `/messages`. Returns the method of the message, for the metrics. */
  message(exchange: Exchange): Promise<string | undefined>
}

/** HTTP+SSE of 2024-11-05: one stream down, POSTs up; the session is named in the query. */
export function createSseRoutes({ sse, pipeline, log, maxBodyBytes }: SseRoutesOptions): SseRoutes {
  const parseLimits = { ...DEFAULT_PARSE_LIMITS, maxBytes: maxBodyBytes }

  async function pass(context: RequestContext): Promise<void> {
    const { exchange, received } = context
    const id = received.kind === 'request' ? received.id : undefined
    try {
      const refusal = await pipeline.request(context)
      if (refusal === undefined) await sse.message(context)
      else if (refusal.at === 'edge') sendRejection(exchange, refusal.rejection, id)
      else if (id === undefined) sendEmpty(exchange, 202)
      else await sse.refuse(context, refusal.rejection)
    } catch (error) {
      sendFailure(exchange, error, { log, id })
    }
  }

  return {
    async open(exchange) {
      if (exchange.method !== 'GET') {
        sendRejection(exchange, methodNotAllowed(['GET']))
        return
      }
      try {
        await sse.open(exchange, ANONYMOUS)
      } catch (error) {
        sendFailure(exchange, error, { log })
      }
    },
    async message(exchange) {
      if (exchange.method !== 'POST') {
        sendRejection(exchange, methodNotAllowed(['POST']))
        return undefined
      }
      const body = await readMessage(exchange, parseLimits)
      if (isRejection(body)) {
        sendRejection(exchange, body)
        return undefined
      }
      const query = new URLSearchParams(exchange.query)
      const sessionId = query.get('sessionId') ?? query.get('session_id')
      if (body.kind === 'invalid') sendRejection(exchange, reject(body.error, { detail: body.detail }), body.id)
      else if (sessionId === null) sendRejection(exchange, reject('session_required', { detail: 'the query names none' }), echoId(body))
      else if (!isValidSessionId(sessionId)) sendRejection(exchange, reject('session_not_found'), echoId(body))
      else await pass({ exchange, era: 'legacy', received: body, outgoing: body, sessionId, principal: ANONYMOUS })
      return body.method
    },
  }
}
