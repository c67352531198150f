import { ThvError } from '@thv/kernel/errors'
import { type Envelope, readEnvelope } from './envelope.ts'
import { HEADER_TITLES, HEADERS, type HeaderBag, headerValue } from './header-names.ts'
import { decodeHeaderValue, encodeHeaderValue } from './header-value.ts'
import type { JsonRpcRequest } from './json-rpc.ts'
import { NAME_SOURCES } from './methods.ts'
import { MODERN_VERSION, SERVED_VERSIONS } from './versions.ts'
import { headerMismatch, isRejection, type Rejection, unsupportedVersion } from './wire-errors.ts'

/**
 * Checks of a request that was classified as modern, in this order: envelope, version header, version served,
 * `Mcp-Method`, `Mcp-Name`. The order can be seen from outside: a header that differs from the body is worse than a version that is
 * not served, and a broken envelope is worse than both. Gives the envelope, or the rejection.
 */
export function checkHeaders(
  message: JsonRpcRequest,
  headers: HeaderBag,
  served: readonly string[] = SERVED_VERSIONS,
): Envelope | Rejection {
  const envelope = readEnvelope(message)
  if (isRejection(envelope)) return envelope
  return (
    versionFault(envelope.protocolVersion, headers) ??
    // Other revisions that we serve do not know the envelope, so a request that has one cannot be meant for them.
    (envelope.protocolVersion === MODERN_VERSION && served.includes(MODERN_VERSION)
      ? undefined
      : unsupportedVersion(envelope.protocolVersion, served)) ??
    methodFault(message.method, headers) ??
    nameFault(message, headers) ??
    envelope
  )
}

/** The headers that a modern request must carry, derived from the body as it will be sent; those of `Mcp-Param-*` come on top. */
export function expectedHeaders(message: JsonRpcRequest): Record<string, string> {
  const envelope = readEnvelope(message)
  if (isRejection(envelope)) throw new RangeError('a modern request must be stamped before its headers are derived')
  const headers: Record<string, string> = {
    [HEADERS.protocolVersion]: envelope.protocolVersion,
    [HEADERS.method]: headerSafeMethod(message.method),
  }
  const name = nameOf(message)
  if (name !== undefined) headers[HEADERS.name] = encodeHeaderValue(name)
  return headers
}

/** The required `Mcp-Name`; undefined where the method has no name or the params lack it. */
export function nameOf(message: JsonRpcRequest): string | undefined {
  const source = NAME_SOURCES.get(message.method)
  const name = source === undefined ? undefined : message.params?.[source]
  return typeof name === 'string' ? name : undefined
}

function versionFault(version: string, headers: HeaderBag): Rejection | undefined {
  return plainFault(headers, { header: HEADERS.protocolVersion, title: HEADER_TITLES.protocolVersion, expected: version })
}

function methodFault(method: string, headers: HeaderBag): Rejection | undefined {
  return plainFault(headers, { header: HEADERS.method, title: HEADER_TITLES.method, expected: method })
}

function plainFault(headers: HeaderBag, { header, title, expected }: { header: string; title: string; expected: string }) {
  const value = headerValue(headers, header)
  if (value === undefined) return headerMismatch(title, 'is missing')
  return value === expected ? undefined : headerMismatch(title, 'differs from the body')
}

/** Demanded where the method has a name, also of a body that lacks it. Elsewhere it is ignored: there is nothing to compare it with. */
function nameFault(message: JsonRpcRequest, headers: HeaderBag): Rejection | undefined {
  if (!NAME_SOURCES.has(message.method)) return undefined
  const value = headerValue(headers, HEADERS.name)
  if (value === undefined) return headerMismatch(HEADER_TITLES.name, 'is missing')
  const name = decodeHeaderValue(value)
  if (name === undefined) return headerMismatch(HEADER_TITLES.name, 'is malformed')
  return name === nameOf(message) ? undefined : headerMismatch(HEADER_TITLES.name, 'differs from the body')
}

/** The encoding for odd characters is not defined for this header, and no such method exists anywhere. */
function headerSafeMethod(method: string): string {
  if (!/^[\x21-\x7e]+$/.test(method)) throw new ThvError('method_not_found', 'the method name does not fit into a header')
  return method
}
