import { isObject, type JsonObject, type JsonRpcRequest } from './json-rpc.ts'
import { spliceMember } from './json-splice.ts'
import type { ParsedRequest } from './parse-body.ts'
import { type Rejection, reject } from './wire-errors.ts'

const PREFIX = 'io.modelcontextprotocol/'

/** Reserved keys of `_meta` in revision 2026-07-28. */
export const META = {
  protocolVersion: `${PREFIX}protocolVersion`,
  clientCapabilities: `${PREFIX}clientCapabilities`,
  clientInfo: `${PREFIX}clientInfo`,
  logLevel: `${PREFIX}logLevel`,
  serverInfo: `${PREFIX}serverInfo`,
  subscriptionId: `${PREFIX}subscriptionId`,
  relatedTask: `${PREFIX}related-task`,
  modelImmediateResponse: `${PREFIX}model-immediate-response`,
  progressToken: 'progressToken',
  traceparent: 'traceparent',
  tracestate: 'tracestate',
  baggage: 'baggage',
} as const

/**
 * They speak about one hop, so they are taken off whatever is forwarded. All else travels from end to end: the two task keys,
 * trace context, keys of vendors, and reserved keys that this build does not know.
 */
export const HOP_KEYS: readonly string[] = [
  META.protocolVersion,
  META.clientCapabilities,
  META.clientInfo,
  META.logLevel,
  META.serverInfo,
  META.subscriptionId,
]

/** From the most to the least verbose. */
export const LOG_LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

export function isLogLevel(level: unknown): level is LogLevel {
  return (LOG_LEVELS as readonly unknown[]).includes(level)
}

/** Facts that a modern request states about itself. */
export interface Envelope {
  readonly protocolVersion: string
  readonly clientCapabilities: JsonObject
  readonly clientInfo: JsonObject | undefined
  /** As sent: a bad one is for the handler to refuse, in-band. */
  readonly logLevel: unknown
  readonly progressToken: string | number | undefined
}

/**
 * The envelope, or its problem (-32602 with HTTP 400, naming the key). A missing or odd
 * `clientInfo` is no fault: a server must serve without it.
 */
export function readEnvelope(message: JsonRpcRequest): Envelope | Rejection {
  const meta = metaOf(message)
  if (meta === undefined) return badEnvelope('params._meta')
  const protocolVersion = meta[META.protocolVersion]
  if (typeof protocolVersion !== 'string' || protocolVersion === '') return badEnvelope(META.protocolVersion)
  const clientCapabilities = meta[META.clientCapabilities]
  if (!isObject(clientCapabilities)) return badEnvelope(META.clientCapabilities)
  const clientInfo = meta[META.clientInfo]
  return {
    protocolVersion,
    clientCapabilities,
    clientInfo: isObject(clientInfo) ? clientInfo : undefined,
    logLevel: meta[META.logLevel],
    progressToken: progressTokenOf(meta),
  }
}

export function badEnvelope(key: string): Rejection {
  return reject('invalid_params', { detail: `${key} is missing or malformed`, data: { missing: key } })
}

/** `params._meta` if it is an object. */
export function metaOf(message: { readonly params?: JsonObject }): JsonObject | undefined {
  const meta = message.params?.['_meta']
  return isObject(meta) ? meta : undefined
}

export function progressTokenOf(meta: JsonObject | undefined): string | number | undefined {
  const token = meta?.[META.progressToken]
  return typeof token === 'string' || typeof token === 'number' ? token : undefined
}

/** A `_meta` without the keys of the hop it came over; the same object if it has none. */
export function stripHopKeys(meta: JsonObject): JsonObject {
  let rest: Record<string, unknown> | undefined
  for (const key of HOP_KEYS) {
    if (!(key in meta)) continue
    rest ??= { ...meta }
    delete rest[key]
  }
  return rest ?? meta
}

/** Facts that this process states about itself on the hop to a backend, by reserved key; a progress token given here replaces the client's. */
export interface RequestStamp {
  readonly [META.protocolVersion]: string
  readonly [META.clientCapabilities]: JsonObject
  readonly [META.clientInfo]?: JsonObject
  readonly [META.logLevel]?: LogLevel
  readonly [META.progressToken]?: string | number
}

/** For a modern backend: the keys of the last hop are replaced by our own. The message given stays as it is. */
export function stampRequest(message: JsonRpcRequest, stamp: RequestStamp): JsonRpcRequest {
  return { ...message, params: { ...message.params, _meta: stampedMeta(message, stamp) } }
}

/** As `stampRequest`, on the text: everything but `_meta` is forwarded letter by letter. */
export function stampText(request: ParsedRequest, stamp: RequestStamp): string {
  return spliceMember(request.text, ['params', '_meta'], JSON.stringify(stampedMeta(request.message, stamp)))
}

/** For a legacy backend: no reserved key of the hop is left, and no empty `_meta`. Also for the params of notifications. */
export function stripParams(params: JsonObject): JsonObject {
  const meta = params['_meta']
  if (!isObject(meta)) return params
  const stripped = stripHopKeys(meta)
  if (stripped === meta) return params
  const { _meta, ...rest } = params
  return Object.keys(stripped).length === 0 ? rest : { ...rest, _meta: stripped }
}

/** A result under our own name: what the backend said about its hop goes, `serverInfo` is ours. */
export function stampResult(result: JsonObject, serverInfo: JsonObject): JsonObject {
  const meta = isObject(result['_meta']) ? stripHopKeys(result['_meta']) : undefined
  return { ...result, _meta: { ...meta, [META.serverInfo]: serverInfo } }
}

function stampedMeta(message: JsonRpcRequest, stamp: RequestStamp): JsonObject {
  const meta = metaOf(message)
  return meta === undefined ? { ...stamp } : { ...stripHopKeys(meta), ...stamp }
}
