import { sendEmpty } from '@thv/http/server/respond'
import { classify } from '@thv/mcp/era'
import { HEADERS, headerValue } from '@thv/mcp/header-names'
import { METHODS, REMOVED_IN_MODERN } from '@thv/mcp/methods'
import { checkHeaders } from '@thv/mcp/modern-headers'
import { DEFAULT_PARSE_LIMITS, echoId, type ParsedMessage } from '@thv/mcp/parse-body'
import { isValidSessionId } from '@thv/mcp/session-id'
import { ASSUMED_LEGACY_VERSION, LEGACY_VERSIONS, MODERN_VERSION, SERVED_VERSIONS } from '@thv/mcp/versions'
import { isRejection, methodNotAllowed, type Rejection, reject, sessionRequired, unsupportedVersion } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { MessageContext } from '@thv/middleware/pipeline/request-context'
import type { Log } from '@thv/telemetry/log'
import type { Backend } from '../backend.ts'
import type { ExchangeContext } from '../exchange-context.ts'
import { sendFailure } from '../response/send-failure.ts'
import { readMessage } from './read-message.ts'

export interface McpEndpointOptions {
  readonly backend: Backend
  readonly pipeline: Pipeline
  readonly log: Log
  readonly maxBodyBytes: number
  /** The eras that are served, whatever the backend speaks. */
  readonly era: 'auto' | 'legacy' | 'modern'
  /** The backend takes nothing but POST. */
  readonly stateless: boolean
  /** Reject unknown values of `MCP-Protocol-Version` also where the version decides nothing. */
  readonly strictVersions: boolean
}

const SERVED = { auto: SERVED_VERSIONS, legacy: LEGACY_VERSIONS, modern: [MODERN_VERSION] } as const

type IncomingMessage = ExchangeContext & MessageContext

/**
 * The streamable HTTP endpoint, for both eras. It answers everything that can be decided from the request alone, in the order that the
 * MCP specification makes visible; the rest is the backend's.
 */
export function createMcpEndpoint(options: McpEndpointOptions): (context: ExchangeContext) => Promise<void> | undefined {
  const { backend, pipeline, log, maxBodyBytes, era: pinned } = options
  const served: readonly string[] = SERVED[pinned]
  const takes = options.stateless || pinned === 'modern' ? ['POST'] : ['GET', 'POST', 'DELETE']

  const parseLimits = { ...DEFAULT_PARSE_LIMITS, maxBytes: maxBodyBytes }

  async function post(context: ExchangeContext): Promise<void> {
    const body = await readMessage(context.exchange, parseLimits)
    if (isRejection(body)) return context.reject(body)
    if (body.kind === 'invalid') return context.reject(reject(body.error, { detail: body.detail }), body.id)
    context.received = context.outgoing = body
    const problem = classifyMessage(context, body)
    if (problem !== undefined) return context.reject(versioned(problem), echoId(body))
    const other = backend.translate?.(body)
    if (other !== undefined && isRejection(other)) return context.reject(other)
    if (other !== undefined) context.received = context.outgoing = other
    if (!context.isMessage()) return
    try {
      await (backend.around === undefined ? pass(context) : backend.around(context, pass))
    } catch (error) {
      sendFailure(context, error, log)
    }
  }

  /** Settles era, headers, version and session of the message. */
  function classifyMessage(context: ExchangeContext, received: ParsedMessage): Rejection | undefined {
    const { headers } = context.exchange
    const sessionId = headerValue(headers, HEADERS.sessionId)
    const versionHeader = headerValue(headers, HEADERS.protocolVersion)
    const is = classify({ httpMethod: 'POST', versionHeader, body: received, hasLegacySession: sessionId !== undefined, served })
    if (is.era === 'none') return is.rejection
    context.era = is.era
    if (isUnknown(is, versionHeader) && received.method !== METHODS.initialize) return unsupportedVersion(versionHeader, served)
    if (is.era === 'modern') return received.kind === 'request' ? modernProblem(context, received) : undefined
    if (pinned === 'modern') return unsupportedVersion(is.version ?? ASSUMED_LEGACY_VERSION, served)
    if (received.method === METHODS.initialize || sessionId === undefined) return undefined
    if (!isValidSessionId(sessionId)) return reject('session_not_found')
    context.sessionId = sessionId
    return undefined
  }

  /** A legacy request names a version that is none. `initialize` is let through: the answer to it names the version to use. */
  function isUnknown({ era, version }: { era: string; version?: string | undefined }, header: string | undefined): header is string {
    return options.strictVersions && era === 'legacy' && version === undefined && header !== undefined
  }

  function modernProblem({ exchange }: ExchangeContext, received: ParsedMessage & { kind: 'request' }): Rejection | undefined {
    const checked = checkHeaders(received.message, exchange.headers, served)
    if (isRejection(checked)) return checked
    // A server of both eras could mistake it for the legacy method of that name.
    return REMOVED_IN_MODERN.has(received.method) ? reject('method_not_found') : undefined
  }

  /** The versions in -32022 must be among those that the backend lists in `server/discover`. */
  function versioned(rejection: Rejection): Rejection {
    const known = rejection.error === 'unsupported_protocol_version' && pinned === 'auto' ? backend.status.versions : undefined
    return known === undefined ? rejection : { ...rejection, data: { ...rejection.data, supported: known } }
  }

  /** Makes no promise of its own where the middleware make none. */
  function pass(context: IncomingMessage): Promise<void> | undefined {
    const rejection = pipeline.message(context)
    return rejection instanceof Promise ? rejection.then((settled) => forward(context, settled)) : forward(context, rejection)
  }

  function forward(context: IncomingMessage, rejection: Rejection | undefined): Promise<void> | undefined {
    if (rejection !== undefined) context.reject(rejection)
    // No server acts on a modern notification or response that comes over HTTP.
    else if (context.era === 'modern' && context.received.kind !== 'request') sendEmpty(context.exchange, 202)
    else return backend.post(context)
    return undefined
  }

  async function sessionOperation(context: ExchangeContext): Promise<void> {
    const { headers, method } = context.exchange
    const versionHeader = headerValue(headers, HEADERS.protocolVersion)
    const is = classify({ httpMethod: method, versionHeader, body: undefined, hasLegacySession: true })
    if (is.era === 'none') return context.reject(is.rejection)
    context.era = is.era
    if (isUnknown(is, versionHeader)) return context.reject(versioned(unsupportedVersion(versionHeader, served)))
    const sessionId = headerValue(headers, HEADERS.sessionId)
    if (sessionId !== undefined && !isValidSessionId(sessionId)) return context.reject(reject('session_not_found'))
    context.sessionId = sessionId
    context.lastEventId = headerValue(headers, HEADERS.lastEventId)
    try {
      if (context.isSession()) await (method === 'GET' ? backend.openStream(context) : backend.endSession(context))
      else if (backend.withoutSession === undefined) context.reject(sessionRequired())
      else await backend.withoutSession(context)
    } catch (error) {
      sendFailure(context, error, log)
    }
  }

  return (context) => {
    const { method } = context.exchange
    if (method === 'POST') return post(context)
    if (takes.includes(method)) return sessionOperation(context)
    context.reject(methodNotAllowed(takes))
    return undefined
  }
}
