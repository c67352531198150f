import { wireErrors } from '@thv/kernel/error-registry'
import { isErrorResponse, isObject, type JsonRpcResponse } from './json-rpc.ts'
import { METHODS } from './methods.ts'
import type { ParsedBody } from './parse-body.ts'
import { type Era, isLegacyVersion, MODERN_VERSION } from './versions.ts'

/** The result of a `server/discover` with a full modern envelope. */
export type ProbeOutcome =
  /** `body` is the JSON-RPC message of the answer, out of JSON or of an event stream; undefined if there is none. */
  | { readonly kind: 'http'; readonly status: number; readonly body: ParsedBody | undefined }
  /** DNS, connect, TLS, time-out, or closed before the answer was complete. */
  | { readonly kind: 'transport_failure' }
  | { readonly kind: 'stdio'; readonly body: ParsedBody }
  /** No answer within the time limit. */
  | { readonly kind: 'stdio_silence' }
  /** The process ended on the probe and must be started again. */
  | { readonly kind: 'stdio_exit' }

export type ProbeVerdict =
  | { readonly verdict: Era }
  /** Nothing can be said and nothing may be kept: authenticate first, or wait until the backend is there. */
  | { readonly verdict: 'inconclusive'; readonly reason: 'unauthorized' | 'unavailable' }
  | { readonly verdict: 'retry'; readonly retryWith: string }
  | { readonly verdict: 'fail'; readonly reason: 'no_common_version' | 'version_refused_twice' }

/**
 * The era of a backend by its answer to the probe. Falling back to legacy is tied to no particular error: servers refuse what they do
 * not know in many ways. `isRetry` says that this was the second probe, after a verdict of `retry`.
 */
export function verdictOf(outcome: ProbeOutcome, isRetry = false): ProbeVerdict {
  switch (outcome.kind) {
    case 'transport_failure':
      return UNAVAILABLE
    case 'stdio_silence':
    case 'stdio_exit':
      return LEGACY
    case 'stdio':
      return verdictOfBody(outcome.body, isRetry)
    case 'http':
      return verdictOfStatus(outcome.status) ?? verdictOfBody(outcome.body, isRetry)
  }
}

export interface Observation {
  /** Of the request that was sent. */
  readonly method: string
  /** 200 where there is no HTTP. */
  readonly status: number
  readonly body: ParsedBody | undefined
}

/** Evidence of an ordinary answer against the assumed era of its backend. */
export interface Contradiction {
  /** The new era if the answer itself proves it; else probe again. */
  readonly era: Era | undefined
  /** The backend did not carry out the request, so it may be sent again in the other era. */
  readonly mayRetry: boolean
}

export function contradictionOf(era: Era, observation: Observation): Contradiction | undefined {
  return era === 'modern' ? againstModern(observation) : againstLegacy(observation)
}

function verdictOfStatus(status: number): ProbeVerdict | undefined {
  if (status === 401 || status === 403 || status === 407) return UNAUTHORIZED
  if (status === 501) return undefined // "I do not know this" and not "I am ill"
  if (status === 408 || status === 429 || status >= 500) return UNAVAILABLE
  return status >= 300 && status < 400 ? UNAVAILABLE : undefined
}

function verdictOfBody(body: ParsedBody | undefined, isRetry: boolean): ProbeVerdict {
  if (body?.kind !== 'response') return LEGACY
  if (!isErrorResponse(body.message)) return verdictOfResult(body.message.result)
  const { code, data } = body.message.error
  // Only a modern server checks modern metadata. That it found fault is our mistake, to be logged, and no proof against it.
  if (code === HEADER_MISMATCH || code === MISSING_CAPABILITY) return MODERN
  return code === UNSUPPORTED_VERSION ? verdictOfVersions(supportedOf(data), isRetry) : LEGACY
}

/** Some legacy servers answer the probe too while they negotiate down, so a result is no proof: the list is. */
function verdictOfResult(result: unknown): ProbeVerdict {
  const versions = isObject(result) ? stringsOf(result['supportedVersions']) : undefined
  if (versions === undefined) return LEGACY
  return versions.includes(MODERN_VERSION) ? MODERN : versions.some(isLegacyVersion) ? LEGACY : NO_COMMON_VERSION
}

function verdictOfVersions(versions: readonly string[] | undefined, isRetry: boolean): ProbeVerdict {
  if (versions === undefined || versions.length === 0) return LEGACY
  if (versions.includes(MODERN_VERSION)) return isRetry ? REFUSED_TWICE : { verdict: 'retry', retryWith: MODERN_VERSION }
  return versions.some(isLegacyVersion) ? LEGACY : NO_COMMON_VERSION
}

function againstModern({ status, body }: Observation): Contradiction | undefined {
  const response = body?.kind === 'response' ? body.message : undefined
  if (response !== undefined && !isErrorResponse(response)) {
    // It may have been carried out: the result stands, only the era is in doubt.
    const isComplete = isObject(response.result) && 'resultType' in response.result
    return isComplete ? undefined : { era: undefined, mayRetry: false }
  }
  if (response !== undefined && response.error.code === UNSUPPORTED_VERSION) {
    return supportedOf(response.error.data)?.includes(MODERN_VERSION) ? undefined : { era: undefined, mayRetry: true }
  }
  const isRefused = status === 400 || status === 404
  return isRefused && !isModernRefusal(response) ? { era: undefined, mayRetry: true } : undefined
}

/**
 * Errors with which a modern server refuses at its edge. -32600 is not among them: we send nothing malformed, but legacy servers use
 * it for a missing session.
 */
function isModernRefusal(response: JsonRpcResponse | undefined): boolean {
  if (response === undefined || !isErrorResponse(response)) return false
  const { code } = response.error
  return code === METHOD_NOT_FOUND || code === INVALID_PARAMS || code === HEADER_MISMATCH || code === MISSING_CAPABILITY
}

/** Only the handshake tells: everything else a legacy server may refuse for reasons of its own. */
function againstLegacy({ method, status, body }: Observation): Contradiction | undefined {
  if (method !== METHODS.initialize) return undefined
  const response = body?.kind === 'response' ? body.message : undefined
  if (response !== undefined && !isErrorResponse(response)) {
    const isModern = isObject(response.result) && response.result['protocolVersion'] === MODERN_VERSION
    return isModern ? { era: 'modern', mayRetry: true } : undefined
  }
  const isRefused = status === 400 || response?.error.code === UNSUPPORTED_VERSION
  return isRefused ? { era: undefined, mayRetry: true } : undefined
}

function supportedOf(data: unknown): readonly string[] | undefined {
  return isObject(data) ? stringsOf(data['supported']) : undefined
}

function stringsOf(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) && value.every((item) => typeof item === 'string') ? value : undefined
}

const LEGACY: ProbeVerdict = { verdict: 'legacy' }
const MODERN: ProbeVerdict = { verdict: 'modern' }
const UNAUTHORIZED: ProbeVerdict = { verdict: 'inconclusive', reason: 'unauthorized' }
const UNAVAILABLE: ProbeVerdict = { verdict: 'inconclusive', reason: 'unavailable' }
const NO_COMMON_VERSION: ProbeVerdict = { verdict: 'fail', reason: 'no_common_version' }
const REFUSED_TWICE: ProbeVerdict = { verdict: 'fail', reason: 'version_refused_twice' }

const METHOD_NOT_FOUND = wireErrors.method_not_found.jsonRpcCode
const INVALID_PARAMS = wireErrors.invalid_params.jsonRpcCode
const HEADER_MISMATCH = wireErrors.header_mismatch.jsonRpcCode
const MISSING_CAPABILITY = wireErrors.missing_client_capability.jsonRpcCode
const UNSUPPORTED_VERSION = wireErrors.unsupported_protocol_version.jsonRpcCode
