import { OutboundError } from '@thv/http/outbound/outbound-error'
import type { Exchange } from '@thv/http/server/exchange'
import { ThvError } from '@thv/kernel/errors'
import { McpErrorResponse, protocolError, streamBroken } from '@thv/mcp/client/client-errors'
import type { Headers } from '@thv/mcp/client/http/http-endpoint'
import { NamedHeaders } from '@thv/mcp/client/http/named-headers'
import { httpError } from '@thv/mcp/client/http-failure'
import type { RequestOptions } from '@thv/mcp/client/mcp-client'
import { META, metaOf } from '@thv/mcp/envelope'
import { HEADERS } from '@thv/mcp/header-names'
import { isErrorResponse, isObject, type JsonObject, type JsonRpcResponse } from '@thv/mcp/json-rpc'
import { skipSpace } from '@thv/mcp/json-scan'
import { findMember, findMembers, insertFirst, type MemberSpan, spliceMember } from '@thv/mcp/json-splice'
import { CACHEABLE_METHODS, METHODS, NAME_SOURCES, NOTIFICATIONS } from '@thv/mcp/methods'
import { type ParsedNotification, type ParsedRequest, parseText } from '@thv/mcp/parse-body'
import { contradictionOf } from '@thv/mcp/probe'
import { MODERN_VERSION } from '@thv/mcp/versions'
import { formatTraceparent, type TraceContext } from '@thv/telemetry/trace/trace-context'
import { MAX_MESSAGE_BYTES, type Member } from '../members/member.ts'
import type { CallOptions } from '../route/sent-options.ts'
import type { CallingClient } from '../route/virtual-call.ts'
import { ByteAnswer } from './byte-answer.ts'

export interface ByteRequest {
  readonly member: Member
  readonly request: ParsedRequest
  readonly exchange: Exchange
  /** For the backend. They differ from those of the request in the name alone. */
  readonly params: JsonObject
  readonly capabilities: JsonObject
  readonly trace: TraceContext | undefined
  /** JSON of the virtual server's own. */
  readonly serverInfo: string
  /** The same request by way of a client, for answers that need a closer look. */
  readonly client: CallingClient
  /** A question of the backend, as the client gets it. */
  asked(result: JsonObject): JsonObject
}

const NAMED_HEADERS = new NamedHeaders({
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'accept-encoding': 'identity',
  [HEADERS.protocolVersion]: MODERN_VERSION,
})
const PARAM_PREFIX = 'mcp-param-'
const LINGER_MS = 1_000
/** The backend takes the version or the headers for wrong: a client knows the cure. */
const CURABLE: ReadonlySet<number> = new Set([-32022, -32020])

/**
 * A request of a modern client to a modern backend. Its text goes there as it is written, but for the name of the tool or prompt, and the
 * response comes back as it is written, but for the name of the server. Whatever is no plain result takes the way of all other requests.
 */
export class ByteClient implements CallingClient {
  readonly #bytes: ByteRequest

  constructor(bytes: ByteRequest) {
    this.#bytes = bytes
  }

  /** Another one when the backend turns out to be of the other era. */
  get era(): CallingClient['era'] {
    return this.#bytes.client.era ?? 'modern'
  }

  request(_method: string, params: JsonObject, options: CallOptions): Promise<JsonObject | string> {
    return send(this.#bytes, params, options)
  }
}

async function send(bytes: ByteRequest, params: JsonObject, options: CallOptions): Promise<JsonObject | string> {
  const { member, request } = bytes
  const { cancellation } = options
  const responded = Promise.withResolvers<void>()
  const answer = new ByteAnswer({
    ...{ id: request.id, maxBytes: MAX_MESSAGE_BYTES },
    onNotification: (notification) => tell(notification, options),
    onResponse: () => responded.resolve(),
  })
  const sending = member.bytes.send({ method: 'POST', headers: headersOf(bytes), body: textOf(bytes), cancellation }, answer)
  sending.then(responded.resolve, responded.reject)
  try {
    await responded.promise
  } catch (error) {
    throw error instanceof OutboundError && answer.isStream ? streamBroken(request.method, error) : error
  }
  if (answer.isStream && answer.response !== undefined) endSoon(sending, cancellation)
  return answer.response === undefined ? await closerLook(bytes, answer, { params, options }) : stamped(answer.response, bytes)
}

/** A stream that ends by itself keeps its connection for the next request. */
function endSoon(sending: Promise<void>, cancellation: CallOptions['cancellation']): void {
  const timer = setTimeout(() => cancellation.cancel(new ThvError('aborted', 'the answer is there')), LINGER_MS)
  sending.catch(() => undefined).finally(() => clearTimeout(timer)) // the call has its answer
}

/** Requests that the backend refused without doing anything are sent again by the client, which knows about eras, versions and headers. */
async function closerLook(bytes: ByteRequest, answer: ByteAnswer, { params, options }: Sent): Promise<JsonObject | string> {
  const { request, client } = bytes
  const { status, headers, other = Buffer.alloc(0) } = answer
  if (answer.isStream) throw streamBroken(request.method)
  const body = parseText(other.toString('utf8'))
  const failure = httpError({ status, headers, body })
  if (failure?.code === 'mcp_auth_required' || status >= 500) throw failure ?? protocolError(`answered HTTP ${status}`)
  const error = body.kind === 'response' && isErrorResponse(body.message) ? body.message.error : undefined
  // No modern server refuses a request like this: it is not one any more.
  const isOtherEra = contradictionOf('modern', { method: request.method, status, body })?.mayRetry === true
  if (!isOtherEra && error !== undefined && (body.id === request.id || body.id === undefined) && !CURABLE.has(error.code))
    throw new McpErrorResponse(error, status)
  if (status >= 400 || error !== undefined) return await client.request(request.method, params, options)
  throw protocolError(`answered ${request.method} with what is not its answer`)
}

interface Sent {
  readonly params: JsonObject
  readonly options: CallOptions
}

function tell({ method, message }: ParsedNotification, { onProgress, onNotification }: RequestOptions): void {
  if (method === NOTIFICATIONS.progress) onProgress?.(message.params ?? {})
  else onNotification?.(message)
}

function headersOf({ request, params, exchange }: ByteRequest): Headers {
  const { method } = request
  const source = NAME_SOURCES.get(method)
  const name = source === undefined ? undefined : params[source]
  const headers = NAMED_HEADERS.of(method, typeof name === 'string' ? name : undefined)
  // They repeat arguments, have been checked against them, and stay true.
  let repeated: Record<string, string> | undefined
  for (const key in exchange.headers) {
    const value = key.startsWith(PARAM_PREFIX) ? exchange.headers[key] : undefined
    if (typeof value !== 'string') continue
    repeated ??= { ...headers }
    repeated[key] = value
  }
  return repeated ?? headers
}

function textOf({ request, params, capabilities, trace }: ByteRequest): string {
  const { message, method } = request
  let { text } = request
  const given = message.params ?? {}
  if (params['name'] !== given['name']) text = spliceMember(text, ['params', 'name'], JSON.stringify(params['name']))
  if (method === METHODS.complete && params['ref'] !== given['ref'])
    text = spliceMember(text, ['params', 'ref'], JSON.stringify(params['ref']))
  const declared = metaOf(message)?.[META.clientCapabilities]
  if (!isObject(declared) || Object.keys(declared).length !== Object.keys(capabilities).length)
    text = spliceMember(text, ['params', '_meta', META.clientCapabilities], JSON.stringify(capabilities))
  if (trace === undefined) return text
  const traced = spliceMember(text, ['params', '_meta', META.traceparent], JSON.stringify(formatTraceparent(trace)))
  const state = trace.state === undefined ? undefined : JSON.stringify(trace.state)
  return spliceMember(traced, ['params', '_meta', META.tracestate], state)
}

/** The response under the name of the virtual server. A question of the backend is the one result that is read. */
function stamped(response: string, { request, serverInfo, asked }: ByteRequest): JsonObject | string {
  try {
    // Of a repeated name the last one counts for most clients: it must not be the id of a request that another backend answers.
    const [id, result] = findMembers(response, skipSpace(response, 0), ['id', 'result'])
    if (id !== undefined && JSON.parse(response.slice(id.start, id.end)) !== request.id) throw protocolError('sent a response with two ids')
    if (result === undefined) return failed(response)
    if (response[result.start] !== '{') throw protocolError(NO_OBJECT)
    const [type, meta] = findMembers(response, result.start, ['resultType', '_meta'])
    if (type !== undefined && isInputRequired(response.slice(type.start, type.end))) return asked(resultIn(response))
    const named = withServerInfo(response, { result, meta }, serverInfo)
    const text = type === undefined ? insertFirst(named, result.start, COMPLETE) : named
    return CACHEABLE_METHODS.has(request.method) ? withPrivateCache(text) : text
  } catch (error) {
    // Spliced into something that is no object.
    if (error instanceof RangeError || error instanceof SyntaxError) throw protocolError(NO_OBJECT)
    throw error
  }
}

const NO_OBJECT = 'sent a result that is no object'
const COMPLETE = '"resultType":"complete"'
const SERVER_INFO = JSON.stringify(META.serverInfo)

interface ResultSpans {
  readonly result: MemberSpan
  readonly meta: MemberSpan | undefined
}

/** Every part of the result but `_meta` keeps its place, so that what stands before is still found there. */
function withServerInfo(response: string, { result, meta }: ResultSpans, serverInfo: string): string {
  if (meta === undefined) return insertFirst(response, result.start, `"_meta":{${SERVER_INFO}:${serverInfo}}`)
  if (response[meta.start] !== '{') throw protocolError(NO_OBJECT)
  const [own] = findMembers(response, meta.start, [META.serverInfo])
  if (own === undefined) return insertFirst(response, meta.start, `${SERVER_INFO}:${serverInfo}`)
  return response.slice(0, own.start) + serverInfo + response.slice(own.end)
}

/** `"input\u005frequired"` is the same word. */
function isInputRequired(json: string): boolean {
  if (json === '"complete"') return false
  const type: unknown = JSON.parse(json)
  if (type !== 'complete' && type !== 'input_required') throw protocolError(`sent a result of the unknown type ${JSON.stringify(type)}`)
  return type === 'input_required'
}

/** A copy for all would be a copy for callers whom no policy has let through. */
function withPrivateCache(text: string): string {
  const ttl = findMember(text, ['result', 'ttlMs'])
  const isValid = ttl !== undefined && /^\d+$/.test(text.slice(ttl.start, ttl.end))
  return spliceMember(isValid ? text : spliceMember(text, ['result', 'ttlMs'], '0'), ['result', 'cacheScope'], '"private"')
}

function resultIn(response: string): JsonObject {
  const { result } = JSON.parse(response) as { result: unknown }
  if (!isObject(result)) throw protocolError(NO_OBJECT)
  return result
}

function failed(response: string): never {
  const message = JSON.parse(response) as JsonRpcResponse
  if (isErrorResponse(message)) throw new McpErrorResponse(message.error)
  throw protocolError('sent a response without a result')
}
