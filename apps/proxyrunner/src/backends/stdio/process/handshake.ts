import type { Clock } from '@thv/kernel/clock'
import { wireErrors } from '@thv/kernel/error-registry'
import { META } from '@thv/mcp/envelope'
import { isErrorResponse, isObject, type JsonObject, serialise } from '@thv/mcp/json-rpc'
import { METHODS, NOTIFICATIONS } from '@thv/mcp/methods'
import type { ParsedResponse } from '@thv/mcp/parse-body'
import { type ProbeOutcome, verdictOf } from '@thv/mcp/probe'
import { MODERN_VERSION, NEWEST_LEGACY_VERSION } from '@thv/mcp/versions'
import { isRejection, type Rejection } from '@thv/mcp/wire-errors'
import type { ProcessLink } from './process-connection.ts'
import { requestOf } from './request.ts'
import type { StdioConfig } from './stdio-config.ts'

/** A process's answer to the handshake. From then on it speaks that era for life. */
export type Greeting =
  | {
      readonly era: 'legacy'
      /** The whole answer to `initialize`, for clients that are answered from it. */
      readonly response: ParsedResponse
      readonly version: string
      readonly capabilities: JsonObject
    }
  | { readonly era: 'modern'; readonly result: JsonObject }

export type HandshakeOutcome =
  | { readonly outcome: 'greeted'; readonly greeting: Greeting }
  /** It is up, and does not speak that era. `response` is its refusal, where it gave one. */
  | { readonly outcome: 'refused'; readonly era: 'legacy' | 'modern'; readonly response: ParsedResponse | undefined }
  /** Nothing can be said about it. */
  | { readonly outcome: 'failed'; readonly rejection: Rejection }

export interface GreeterEnv {
  readonly config: StdioConfig
  readonly clock: Clock
}

/** `initialize` with the text given, whose id is replaced. `notifications/initialized` is for the caller to send. */
export async function greetLegacy(link: ProcessLink, initialize: string, { config }: GreeterEnv): Promise<HandshakeOutcome> {
  const answer = await requestOf(link, initialize, { hardMs: config.startTimeoutMs })
  if (isRejection(answer)) return { outcome: 'failed', rejection: answer }
  const { message } = answer
  if (isErrorResponse(message) || !isObject(message.result)) return { outcome: 'refused', era: 'legacy', response: answer }
  const { protocolVersion, capabilities } = message.result
  const version = typeof protocolVersion === 'string' ? protocolVersion : NEWEST_LEGACY_VERSION
  const greeting = { era: 'legacy', response: answer, version, capabilities: isObject(capabilities) ? capabilities : {} } as const
  return { outcome: 'greeted', greeting }
}

/**
 * `server/discover` with an envelope of our own: whether the process speaks the modern era must be known before a client's call is
 * entrusted to it. Silence and exit mean that it does not (decision table of the probe); a start that never gets so far fails.
 */
export async function greetModern(link: ProcessLink, env: GreeterEnv): Promise<HandshakeOutcome> {
  for (const isRetry of [false, true]) {
    const outcome = await probe(link, env)
    const verdict = verdictOf(outcome, isRetry)
    if (verdict.verdict === 'retry') continue
    const response = outcome.kind === 'stdio' && outcome.body.kind === 'response' ? outcome.body : undefined
    const result = response && !isErrorResponse(response.message) ? response.message.result : undefined
    if (verdict.verdict === 'modern') return { outcome: 'greeted', greeting: { era: 'modern', result: isObject(result) ? result : {} } }
    return { outcome: 'refused', era: 'modern', response }
  }
  return { outcome: 'refused', era: 'modern', response: undefined }
}

/** For the one process there can be: the handshake first, as a probe before it would spoil a legacy server. */
async function greetEither(link: ProcessLink, initialize: string, env: GreeterEnv): Promise<HandshakeOutcome> {
  const legacy = await greetLegacy(link, initialize, env)
  if (legacy.outcome !== 'refused' || link.ended) return legacy
  const modern = await greetModern(link, env)
  return modern.outcome === 'greeted' ? modern : legacy
}

/** Exits during the handshake, one after the other, that say something about the server. */
const TELLING_EXITS = 2

/**
 * A server that exits on `initialize` must be asked the other way by its next process. A single exit says nothing: in a rollout the pod
 * that is greeted may be the one that is just going, and its successor would be pinned to an era for life.
 */
export function podGreeter(initialize: string, env: GreeterEnv): (link: ProcessLink) => Promise<HandshakeOutcome> {
  let exits = 0
  return async (link) => {
    if (env.config.era === 'legacy') return greetLegacy(link, initialize, env)
    if (env.config.era === 'modern' || exits >= TELLING_EXITS) {
      exits = 0
      return greetModern(link, env)
    }
    const outcome = await greetEither(link, initialize, env)
    exits = outcome.outcome !== 'greeted' && link.ended ? exits + 1 : 0
    return outcome
  }
}

/** An error that says "not this handshake". Others, such as bad params of a client, say nothing about the era. */
export function isEraRefusal({ era, response }: Extract<HandshakeOutcome, { outcome: 'refused' }>): boolean {
  if (era === 'modern') return true
  if (response === undefined || !isErrorResponse(response.message)) return false
  return response.message.error.code === UNSUPPORTED_VERSION || response.message.error.code === METHOD_NOT_FOUND
}

/** How the runner introduces itself to a process that several sessions share. */
export function initializeText({ name, version }: StdioConfig, capabilities: JsonObject): string {
  const params = { protocolVersion: NEWEST_LEGACY_VERSION, capabilities, clientInfo: { name: `thv-proxyrunner/${name}`, version } }
  return serialise({ jsonrpc: '2.0', id: 0, method: METHODS.initialize, params })
}

export const INITIALIZED = serialise({ jsonrpc: '2.0', method: NOTIFICATIONS.initialized })

/** Envelope of calls that the runner makes for itself. */
export function ownMeta({ name, version }: StdioConfig): JsonObject {
  return {
    [META.protocolVersion]: MODERN_VERSION,
    [META.clientCapabilities]: {},
    [META.clientInfo]: { name: `thv-proxyrunner/${name}`, version },
  }
}

async function probe(link: ProcessLink, { config, clock }: GreeterEnv): Promise<ProbeOutcome> {
  const text = serialise({ jsonrpc: '2.0', id: 0, method: METHODS.discover, params: { _meta: ownMeta(config) } })
  const isSilent = Promise.withResolvers<ProbeOutcome>()
  const watch = watchSilence(link, { config, clock }, () => isSilent.resolve({ kind: 'stdio_silence' }))
  const answer = requestOf(link, text, { hardMs: config.startTimeoutMs }).then((settled): ProbeOutcome => {
    if (!isRejection(settled)) return { kind: 'stdio', body: settled }
    return link.ended ? { kind: 'stdio_exit' } : { kind: 'stdio_silence' }
  })
  const outcome = await Promise.race([answer, isSilent.promise])
  watch.cancel()
  return outcome
}

/** The wait counts from the first sign of life; a process that gives none may still be starting, up to a limit. */
function watchSilence(link: ProcessLink, { config, clock }: GreeterEnv, onSilence: () => void): { cancel(): void } {
  const startedAt = clock.monotonic()
  const check = () => {
    const isOver = link.hasSpoken || clock.monotonic() - startedAt >= Math.min(START_SILENCE_MS, config.startTimeoutMs)
    if (isOver) onSilence()
    else timer = clock.setTimer(config.probeTimeoutMs, check)
  }
  let timer = clock.setTimer(config.probeTimeoutMs, check)
  return { cancel: () => timer.cancel() }
}

const START_SILENCE_MS = 30_000
const METHOD_NOT_FOUND = wireErrors.method_not_found.jsonRpcCode
const UNSUPPORTED_VERSION = wireErrors.unsupported_protocol_version.jsonRpcCode
