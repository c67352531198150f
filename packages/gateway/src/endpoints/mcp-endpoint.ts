import type { Exchange } from '@thv/http/server/exchange'
import { sendEmpty } from '@thv/http/server/respond'
import { classify } from '@thv/mcp/era'
import { HEADERS, headerValue } from '@thv/mcp/header-names'
import type { RequestId } from '@thv/mcp/json-rpc'
import { METHODS, REMOVED_IN_MODERN } from '@thv/mcp/methods'
import { checkHeaders } from '@thv/mcp/modern-headers'
import { DEFAULT_PARSE_LIMITS, echoId, type ParsedMessage } from '@thv/mcp/parse-body'
import { isValidSessionId } from '@thv/mcp/session-id'
import { ASSUMED_LEGACY_VERSION, LEGACY_VERSIONS, MODERN_VERSION, SERVED_VERSIONS } from '@thv/mcp/versions'
import { isRejection, methodNotAllowed, type Rejection, reject, sessionRequired, unsupportedVersion } from '@thv/mcp/wire-errors'
import type { Pipeline, Refusal } from '@thv/middleware/pipeline/pipeline'
import type { RequestContext } from '@thv/middleware/pipeline/request-context'
import type { Log } from '@thv/telemetry/log'
import type { Backend } from '../backend.ts'
import { sendFailure } from '../response/send-failure.ts'
import { sendInBand, sendRejection } from '../response/send-rejection.ts'
import { readMessage } from './read-message.ts'

export interface McpEndpointOptions {
  readonly backend: Backend
  readonly pipeline: Pipeline
  readonly log: Log
  readonly maxBodyBytes: number
  /** What is served at all, whatever the backend speaks. */
  readonly era: 'auto' | 'legacy' | 'modern'
  /** The backend takes nothing but POST. */
  readonly stateless: boolean
}

/** Everybody, until there is authentication. */
export const ANONYMOUS = 'anonymous'

const SERVED = { auto: SERVED_VERSIONS, legacy: LEGACY_VERSIONS, modern: [MODERN_VERSION] } as const

/**
 * The streamable HTTP endpoint, for both eras. It answers what can be told from the request alone, in the order that the standard
 * makes visible; everything else is the upstream's. Returns the method of the message, for the metrics.
 */
export function createMcpEndpoint(options: McpEndpointOptions): (exchange: Exchange) => Promise<string | undefined> {
  const { backend, pipeline, log, maxBodyBytes, era: pinned } = options
  const served: readonly string[] = SERVED[pinned]
  const takes = options.stateless || pinned === 'modern' ? ['POST'] : ['GET', 'POST', 'DELETE']

  const parseLimits = { ...DEFAULT_PARSE_LIMITS, maxBytes: maxBodyBytes }

  async function post(exchange: Exchange): Promise<string | undefined> {
    const body = await readMessage(exchange, parseLimits)
    if (isRejection(body)) {
      sendRejection(exchange, body)
      return undefined
    }
    const context = body.kind === 'invalid' ? reject(body.error, { detail: body.detail }) : admit(exchange, body)
    if (isRejection(context)) sendRejection(exchange, versioned(context), echoId(body))
    else if (context.era === 'modern' && context.received.kind !== 'request')
      sendEmpty(exchange, 202) // there is none that a server heeds (C4)
    else {
      try {
        await pass(context)
      } catch (error) {
        sendFailure(exchange, error, { log, id: idOf(context) })
      }
    }
    return body.method
  }

  /** Era, headers and version: steps 3 to 9 of the ladder. */
  function admit(exchange: Exchange, received: ParsedMessage): RequestContext | Rejection {
    const { headers } = exchange
    const sessionId = headerValue(headers, HEADERS.sessionId)
    const versionHeader = headerValue(headers, HEADERS.protocolVersion)
    const is = classify({ httpMethod: 'POST', versionHeader, body: received, hasLegacySession: sessionId !== undefined, served })
    if (is.era === 'none') return is.rejection
    const { era } = is
    if (era === 'modern') {
      const fault = received.kind === 'request' ? modernFault(exchange, received) : undefined
      return fault ?? { exchange, era, received, outgoing: received, sessionId: undefined, principal: ANONYMOUS }
    }
    if (pinned === 'modern') return unsupportedVersion(is.version ?? ASSUMED_LEGACY_VERSION, served)
    const named = received.method === METHODS.initialize ? undefined : sessionId
    if (named !== undefined && !isValidSessionId(named)) return reject('session_not_found')
    return { exchange, era, received, outgoing: received, sessionId: named, principal: ANONYMOUS }
  }

  function modernFault(exchange: Exchange, received: ParsedMessage & { kind: 'request' }): Rejection | undefined {
    const checked = checkHeaders(received.message, exchange.headers, served)
    if (isRejection(checked)) return checked
    // A server of both eras could take it for what it was in the other one.
    return REMOVED_IN_MODERN.has(received.method) ? reject('method_not_found') : undefined
  }

  /** What `server/discover` of the backend lists must hold all that we list. */
  function versioned(rejection: Rejection): Rejection {
    const known = rejection.error === 'unsupported_protocol_version' && pinned === 'auto' ? backend.status.versions : undefined
    return known === undefined ? rejection : { ...rejection, data: { ...rejection.data, supported: known } }
  }

  /** Makes no promise of its own where the links make none. */
  function pass(context: RequestContext): Promise<void> | undefined {
    const refusal = pipeline.request(context)
    return refusal instanceof Promise ? refusal.then((settled) => judged(context, settled)) : judged(context, refusal)
  }

  function judged(context: RequestContext, refusal: Refusal | undefined): Promise<void> | undefined {
    if (refusal === undefined) return backend.post(context)
    if (refusal.at === 'edge') sendRejection(context.exchange, refusal.rejection, idOf(context))
    else refuseInBand(context.exchange, refusal.rejection, idOf(context))
    return undefined
  }

  async function sessionOperation(exchange: Exchange): Promise<undefined> {
    const { headers, method } = exchange
    const is = classify({
      httpMethod: method,
      versionHeader: headerValue(headers, HEADERS.protocolVersion),
      body: undefined,
      hasLegacySession: true,
    })
    if (is.era === 'none') {
      sendRejection(exchange, is.rejection)
      return
    }
    const sessionId = headerValue(headers, HEADERS.sessionId)
    try {
      if (sessionId === undefined) {
        if (backend.withoutSession === undefined) sendRejection(exchange, sessionRequired())
        else await backend.withoutSession(exchange, ANONYMOUS)
      } else if (!isValidSessionId(sessionId)) sendRejection(exchange, reject('session_not_found'))
      else {
        const use = { sessionId, principal: ANONYMOUS, lastEventId: headerValue(headers, HEADERS.lastEventId) }
        await (method === 'GET' ? backend.openStream(exchange, use) : backend.endSession(exchange, use))
      }
    } catch (error) {
      sendFailure(exchange, error, { log })
    }
  }

  return (exchange) => {
    const { method } = exchange
    if (method === 'POST') return post(exchange)
    if (takes.includes(method)) return sessionOperation(exchange)
    sendRejection(exchange, methodNotAllowed(takes))
    return NOTHING
  }
}

const NOTHING = Promise.resolve(undefined)

function idOf({ received }: RequestContext): RequestId | undefined {
  return received.kind === 'request' ? received.id : undefined
}

/** A notification has nobody who could be told. */
function refuseInBand(exchange: Exchange, rejection: Rejection, id: RequestId | undefined): void {
  if (id === undefined) sendEmpty(exchange, 202)
  else sendInBand(exchange, rejection, id)
}
