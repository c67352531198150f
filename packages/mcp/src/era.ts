import { badEnvelope, META, metaOf } from './envelope.ts'
import type { JsonObject } from './json-rpc.ts'
import { METHODS } from './methods.ts'
import type { ParsedBody, ParsedRequest } from './parse-body.ts'
import { isLegacyVersion, isModernOrNewer, type LegacyVersion, MODERN_VERSION, SERVED_VERSIONS } from './versions.ts'
import { methodNotAllowed, type Rejection, reject, sessionRequired, unsupportedVersion } from './wire-errors.ts'

export interface Classifiable {
  /** In capitals, as HTTP has it. */
  readonly httpMethod: string
  /** `MCP-Protocol-Version` without white space around it; undefined if there is none. */
  readonly versionHeader: string | undefined
  /** Only a POST has one. */
  readonly body: ParsedBody | undefined
  /**
   * Looked at for responses and one sort of muddled request only. Where a look-up costs something, give the mere presence
   * of an `Mcp-Session-Id` header: an unknown id is then refused with 404 by the session table, as on every other legacy request.
   */
  readonly hasLegacySession: boolean
  /** For `supported` in -32022. */
  readonly served?: readonly string[]
}

/**
 * `rule` is the row of the decision table that spoke, for logs and tests. The version of a legacy request is that of its header, if it
 * names one, else the session knows; that of a modern one is as claimed, not checked yet.
 */
export type Classification =
  | { readonly era: 'legacy'; readonly rule: string; readonly version: LegacyVersion | undefined }
  | { readonly era: 'modern'; readonly rule: string; readonly version: string | undefined }
  | { readonly era: 'none'; readonly rule: string; readonly rejection: Rejection }

/**
 * Which era an inbound HTTP request belongs to: by the request alone, without memory of earlier ones. The body decides, the header
 * is checked against it. What comes out as modern still has to climb the ladder (`checkHeaders`), which also refuses an envelope
 * that claims a legacy version.
 */
export function classify(request: Classifiable): Classification {
  const { httpMethod, versionHeader, body } = request
  if (httpMethod !== 'POST') return sessionOperation(httpMethod, versionHeader)
  if (body === undefined) return none('C2', reject('parse_error', { detail: 'there is no body' }))
  switch (body.kind) {
    case 'invalid': // a batch, or nothing with an era
      return none('C2', reject(body.error, { detail: body.detail }))
    case 'response':
      return response(request)
    case 'notification':
      return notification(versionHeader, metaOf(body.message))
    case 'request':
      return call(request, body)
  }
}

function sessionOperation(httpMethod: string, header: string | undefined): Classification {
  if (header === MODERN_VERSION) return none('C1', methodNotAllowed(['POST']))
  if (httpMethod !== 'GET' && httpMethod !== 'DELETE') return none('C1', methodNotAllowed(['GET', 'POST', 'DELETE']))
  return legacy('C1', header)
}

/** Only a legacy client has server requests to answer. */
function response({ versionHeader, hasLegacySession }: Classifiable): Classification {
  if (versionHeader === MODERN_VERSION) return none('C3', reject('invalid_request', { detail: 'a client sends no responses' }))
  return hasLegacySession ? legacy('C3', versionHeader) : none('C3', sessionRequired())
}

function notification(header: string | undefined, meta: JsonObject | undefined): Classification {
  const version = meta?.[META.protocolVersion]
  if (isModernOrNewer(version)) return { era: 'modern', rule: 'C4', version }
  return header === MODERN_VERSION ? { era: 'modern', rule: 'C4', version: undefined } : legacy('C4', header)
}

function call(request: Classifiable, { message, method }: ParsedRequest): Classification {
  const header = request.versionHeader
  const meta = metaOf(message)
  const version = meta?.[META.protocolVersion]
  if (typeof version === 'string' && version !== '') return { era: 'modern', rule: 'C5', version }
  if (version !== undefined) return isLegacyVersion(header) ? legacy('C7', header) : none('C7', badEnvelope(META.protocolVersion))
  // Before the header is looked at: a client that does not know the answer yet may send any, and the handshake will tell it.
  if (method === METHODS.initialize) return legacy('C8', header)
  if (header === MODERN_VERSION) return none('C6', badEnvelope(META.protocolVersion))
  if (isLegacyVersion(header)) return legacy('C9', header)
  if (header !== undefined) return unknownHeader(header, request.served)
  // Half an envelope is a modern client gone wrong, unless a session proves otherwise. Never silently a legacy call.
  const isMuddled = meta !== undefined && (META.clientInfo in meta || META.clientCapabilities in meta)
  if (!isMuddled) return legacy('C11', undefined)
  return request.hasLegacySession ? legacy('C10', undefined) : none('C10', badEnvelope(META.protocolVersion))
}

/** A date to come is a modern client of tomorrow that forgot its envelope; anything else is no version at all. */
function unknownHeader(header: string, served: readonly string[] = SERVED_VERSIONS): Classification {
  return none('C12', isModernOrNewer(header) ? badEnvelope(META.protocolVersion) : unsupportedVersion(header, served))
}

function legacy(rule: string, header: string | undefined): Classification {
  return { era: 'legacy', rule, version: isLegacyVersion(header) ? header : undefined }
}

function none(rule: string, rejection: Rejection): Classification {
  return { era: 'none', rule, rejection }
}
