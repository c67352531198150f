import { DEFAULT_PARSE_LIMITS, echoId } from '@thv/mcp/parse-body'
import { isValidSessionId } from '@thv/mcp/session-id'
import { isRejection, methodNotAllowed, type Rejection, reject } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { Log } from '@thv/telemetry/log'
import type { SseEndpoint, SseMessageContext } from '../backend.ts'
import type { ExchangeContext } from '../exchange-context.ts'
import { RejectedError } from '../response/rejected-error.ts'
import { sendFailure } from '../response/send-failure.ts'
import { readMessage } from './read-message.ts'

export interface SseRoutesOptions {
  readonly sse: SseEndpoint
  readonly pipeline: Pipeline
  readonly log: Log
  readonly maxBodyBytes: number
}

export interface SseRoutes {
  /** `/sse`. Every method but GET gets 405, which tells a client that this is not streamable HTTP. */
  open(context: ExchangeContext): Promise<void>
  /** `/messages`. */
  message(context: ExchangeContext): Promise<void>
}

/** HTTP+SSE of 2024-11-05: one stream down, POSTs up; the session is named in the query. */
export function createSseRoutes({ sse, pipeline, log, maxBodyBytes }: SseRoutesOptions): SseRoutes {
  const parseLimits = { ...DEFAULT_PARSE_LIMITS, maxBytes: maxBodyBytes }

  async function pass(context: ExchangeContext & SseMessageContext): Promise<void> {
    try {
      const rejection = await pipeline.message(context)
      if (rejection === undefined) await sse.message(context)
      else await rejectMessage(context, rejection)
    } catch (error) {
      if (error instanceof RejectedError && error.rejection.inBand) await rejectMessage(context, error.rejection)
      else sendFailure(context, error, log)
    }
  }

  async function rejectMessage(context: ExchangeContext & SseMessageContext, rejection: Rejection): Promise<void> {
    if (rejection.inBand === undefined || context.requestId === undefined) return context.reject(rejection)
    context.outcome = 'rejected'
    context.rejection = rejection
    await sse.reject(context, rejection)
  }

  return {
    async open(context) {
      if (context.exchange.method !== 'GET') return context.reject(methodNotAllowed(['GET']))
      context.era = 'legacy'
      try {
        await sse.open(context)
      } catch (error) {
        sendFailure(context, error, log)
      }
    },
    async message(context) {
      const { exchange } = context
      if (exchange.method !== 'POST') return context.reject(methodNotAllowed(['POST']))
      const body = await readMessage(exchange, parseLimits)
      if (isRejection(body)) return context.reject(body)
      if (body.kind === 'invalid') return context.reject(reject(body.error, { detail: body.detail }), body.id)
      context.era = 'legacy'
      context.received = context.outgoing = body
      const query = new URLSearchParams(exchange.query)
      const sessionId = query.get('sessionId') ?? query.get('session_id')
      if (sessionId === null) return context.reject(reject('session_required', { detail: 'the query names none' }), echoId(body))
      if (!isValidSessionId(sessionId)) return context.reject(reject('session_not_found'), echoId(body))
      context.sessionId = sessionId
      if (context.isMessage() && context.isSession()) await pass(context)
    },
  }
}
