import { createHash } from 'node:crypto'
import type { Exchange } from '@thv/http/server/exchange'
import { type HeaderPairs, sendBytes, sendEmpty, sendText } from '@thv/http/server/respond'
import { ISSUER } from './accounts/account-tokens.ts'
import { awaitDefaultAccount } from './accounts/default-account.ts'
import { reviewSelf } from './accounts/self-review.ts'
import { requestToken } from './accounts/token-request.ts'
import { encodeAnswer } from './http/answer-encoding.ts'
import { parseResourcePath, type ResourcePath } from './http/api-path.ts'
import { headerOf, mediaTypeOf, readDeleteInput, readInput, readJsonInput } from './http/read-input.ts'
import { type ApiAnswer, type ApiCall, type ApiEnv, answerStored, flagOf, formOf, storedObject } from './http/request-context.ts'
import { answerForm, notAcceptable } from './http/response-form.ts'
import type { Upgrade } from './http/tls-server.ts'
import { bearerOf, type Tokens, type User } from './http/tokens.ts'
import { attachToPod } from './kinds/pod/streams/pod-attach.ts'
import { sendPodLog } from './kinds/pod/streams/pod-log.ts'
import { fieldTracker } from './objects/field-tracker.ts'
import { methodNotAllowed, noSuchPath, StatusError, unauthorized } from './objects/status-error.ts'
import { AGGREGATED, aggregatedDiscovery, discoveryDocument, wantsAggregated } from './registry/discovery.ts'
import type { KindRegistry } from './registry/kind-registry.ts'
import { openApiDocument, openApiIndex } from './registry/openapi.ts'
import { swaggerDocument, swaggerType } from './registry/swagger.ts'
import { swaggerProtobuf } from './registry/swagger-protobuf.ts'
import { APPLY_TYPE, applyObject } from './verbs/apply-object.ts'
import { createObject } from './verbs/create-object.ts'
import { deleteCollection, deleteObject } from './verbs/delete-object.ts'
import { askedRevision, listObjects, refusedElsewhere } from './verbs/list-objects.ts'
import { patchObject, patchOf } from './verbs/patch-object.ts'
import { bindPod } from './verbs/pod-binding.ts'
import { getScale, putScale } from './verbs/scale.ts'
import { replaceObject } from './verbs/update-object.ts'
import { watchObjects } from './verbs/watch-objects.ts'
import { VERSION } from './version.ts'

export interface FrontEnv extends ApiEnv {
  readonly tokens: Tokens
  readonly upgrade: Upgrade | undefined
}

const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'
const SELF_REVIEWS = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const OPEN_PATHS: ReadonlySet<string> = new Set(['/healthz', '/livez', '/readyz', '/version', '/version/'])

/** One request. Rejects with a StatusError for what is refused. */
export async function handleRequest(exchange: Exchange, env: FrontEnv): Promise<void> {
  const user = userOf(exchange, env)
  if (!OPEN_PATHS.has(exchange.path) && user === undefined) throw unauthorized()
  // Served as the caller it would be a wrong success: who tries `--as` wants to know what that user may do.
  if (headerOf(exchange, 'impersonate-user') !== '') throw notImplemented('impersonation')
  if (exchange.path === SELF_REVIEWS && user !== undefined) {
    if (exchange.method !== 'POST') throw methodNotAllowed()
    sendJsonText(exchange, reviewSelf(user, env.clock), [])
    return
  }
  const path = parseResourcePath(exchange.path)
  if (path === undefined) {
    answerDocument(exchange, env)
    return
  }
  // The one resource that is only ever written: another way to the subresource of pods.
  const bindings = path.group === '' && path.plural === 'bindings' && path.namespace !== undefined && path.name === undefined
  const kind = env.registry.find(path.group, path.version, bindings ? 'pods' : path.plural)
  if (kind === undefined && !env.registry.all().some((one) => one.group === path.group)) {
    if (REVIEWS.has(path.group)) {
      if (answerForm(headerOf(exchange, 'accept')) !== 'Object') throw notAcceptable(ONLY_OBJECTS)
      throw notImplemented(`${path.plural}.${path.group}`)
    }
    answerNowhere(exchange)
    return
  }
  if (kind === undefined || (path.namespace !== undefined && !kind.namespaced)) throw noSuchPath()
  const call: ApiCall = { env, exchange, kind, path, query: new URLSearchParams(exchange.query), warnings: [], upgrade: env.upgrade }
  const answer = bindings ? await runBinding(call) : await runVerb(call)
  if (answer !== undefined) sendJsonText(exchange, answer, call.warnings)
}

function userOf(exchange: Exchange, { tokens, accounts }: FrontEnv): User | undefined {
  const token = bearerOf(headerOf(exchange, 'authorization'))
  return token === undefined ? undefined : (tokens.userOf(token) ?? accounts.userOf(token))
}

/** Everything but the reading of bodies is one synchronous step, so no other write comes between a read and the write that follows from it. */
async function runVerb(call: ApiCall): Promise<ApiAnswer | undefined> {
  const { path, exchange, query, kind } = call
  if (path.watch) {
    runOldWatch(call)
    return undefined
  }
  // Before anything is done: what cannot be answered must not happen.
  if (path.subresource === undefined || path.subresource === 'status') formOf(call)
  if (path.name === undefined) {
    switch (exchange.method) {
      case 'GET':
        if (!flagOf(query, 'watch')) return listObjects(call)
        watchObjects(call)
        return undefined
      case 'POST':
        if (kind.namespaced && path.namespace === undefined) throw methodNotAllowed()
        return await runCreate(call)
      case 'DELETE':
        return deleteCollection(call, await readDeleteInput(exchange))
      default:
        throw methodNotAllowed()
    }
  }
  if (kind.namespaced && path.namespace === undefined) throw noSuchPath()
  if (path.subresource !== undefined) return await runSubresource(call, path)
  switch (exchange.method) {
    case 'GET':
      askedRevision(query, refusedElsewhere)
      return answerStored(call, storedObject(call))
    case 'PUT':
      return replaceObject(call, await readJsonInput(exchange, kind), fieldTracker)
    case 'PATCH':
      return await runPatch(call)
    case 'DELETE':
      return deleteObject(call, await readDeleteInput(exchange))
    default:
      throw methodNotAllowed()
  }
}

/** Of a collection, or of one object by its name. */
function runOldWatch(call: ApiCall): void {
  const { path, exchange, query } = call
  if (exchange.method !== 'GET') throw methodNotAllowed()
  formOf(call)
  const named = new URLSearchParams(query)
  named.set('watch', 'true')
  if (path.name !== undefined) named.set('fieldSelector', `metadata.name=${path.name}`)
  watchObjects({ ...call, query: named, path: { ...path, name: undefined } })
}

async function runCreate(call: ApiCall): Promise<ApiAnswer> {
  const input = await readJsonInput(call.exchange, call.kind)
  if (call.kind.type === 'pods') await awaitDefaultAccount(call, input)
  return createObject(call, input, fieldTracker)
}

async function runPatch(call: ApiCall): Promise<ApiAnswer> {
  const mediaType = mediaTypeOf(call.exchange)
  const bytes = await readInput(call.exchange)
  return mediaType === APPLY_TYPE ? applyObject(call, bytes) : patchObject(call, { mediaType, bytes }, fieldTracker)
}

async function runSubresource(call: ApiCall, { subresource }: ResourcePath): Promise<ApiAnswer | undefined> {
  const { kind, exchange } = call
  const isStatus = subresource === 'status' && kind.status
  const isFinalize = subresource === 'finalize' && kind.type === 'namespaces' && exchange.method === 'PUT'
  if (subresource === 'scale' && kind.scale) return await runScale(call)
  if (subresource === 'log' && kind.type === 'pods') return await runLog(call)
  if (subresource === 'attach' && kind.type === 'pods') {
    await attachToPod(call)
    return undefined
  }
  if (subresource === 'token' && kind.type === 'serviceaccounts') return await runToken(call)
  if (subresource === 'binding' && kind.type === 'pods') return await runBinding(call)
  if (!isStatus && !isFinalize) throw missingSubresource(call, subresource ?? '')
  switch (exchange.method) {
    case 'GET':
      return answerStored(call, storedObject(call))
    case 'PUT':
      return replaceObject(call, await readJsonInput(exchange, kind), fieldTracker)
    case 'PATCH':
      return await runPatch(call)
    default:
      throw methodNotAllowed()
  }
}

async function runScale(call: ApiCall): Promise<ApiAnswer> {
  const { exchange, kind } = call
  switch (exchange.method) {
    case 'GET':
      return getScale(call)
    case 'PUT': {
      const wanted = await readJsonInput(exchange, { group: 'autoscaling', kind: 'Scale', custom: false })
      return putScale(call, () => wanted, fieldTracker)
    }
    case 'PATCH': {
      const patch = patchOf(kind, { mediaType: mediaTypeOf(exchange), bytes: await readInput(exchange) })
      return putScale(call, patch.apply, fieldTracker)
    }
    default:
      throw methodNotAllowed()
  }
}

async function runLog(call: ApiCall): Promise<undefined> {
  if (call.exchange.method !== 'GET') throw methodNotAllowed()
  await sendPodLog(call)
  return undefined
}

async function runBinding(call: ApiCall): Promise<ApiAnswer> {
  if (call.exchange.method !== 'POST') throw methodNotAllowed()
  return bindPod(call, await readJsonInput(call.exchange, { group: '', kind: 'Binding', custom: false }), call.path.name)
}

async function runToken(call: ApiCall): Promise<ApiAnswer> {
  if (call.exchange.method !== 'POST') throw methodNotAllowed()
  return requestToken(call, await readJsonInput(call.exchange, { group: 'authentication.k8s.io', kind: 'TokenRequest', custom: false }))
}

const KNOWN_SUBRESOURCES: ReadonlySet<string> = new Set(['ephemeralcontainers', 'eviction', 'exec', 'portforward', 'proxy', 'resize'])

/** Features of Kubernetes that this server lacks say so, so that users do not look for a mistake of their own. */
function missingSubresource({ kind }: ApiCall, subresource: string): StatusError {
  if (kind.custom || !KNOWN_SUBRESOURCES.has(subresource)) return noSuchPath()
  return notImplemented(`${kind.plural}/${subresource}`)
}

/** Every token may do everything, so there is nothing to review yet. */
const REVIEWS: ReadonlySet<string> = new Set(['authentication.k8s.io', 'authorization.k8s.io'])

/** A review is no resource with metadata. */
const ONLY_OBJECTS = 'only the following media types are accepted: application/json'

function notImplemented(what: string): StatusError {
  return new StatusError({ code: 501, reason: 'NotImplemented', message: `${what} is not implemented by this server` })
}

/** `application/json` alone is not enough. */
function acceptsKeySet(accept: string | undefined): boolean {
  const types = (accept || '*/*').split(',').map((each) => each.split(';')[0]?.trim().toLowerCase())
  return types.some((type) => type === '*/*' || type === 'application/jwk-set+json')
}

function answerDocument(exchange: Exchange, { registry, accounts, metricsPage }: FrontEnv): void {
  if (exchange.method !== 'GET' && exchange.method !== 'HEAD') throw exchange.path.startsWith('/api') ? noSuchPath() : methodNotAllowed()
  const path = exchange.path.replace(/\/+$/, '') || '/'
  if (path === '/healthz' || path === '/livez' || path === '/readyz') sendText(exchange, 'ok')
  else if (path === '/metrics' && metricsPage !== undefined)
    sendBytes(exchange, 200, { type: METRICS_TYPE, body: Buffer.from(metricsPage()), headers: ['Cache-Control', 'no-store'] })
  else if (path === '/openid/v1/jwks') {
    if (!acceptsKeySet(headerOf(exchange, 'accept')))
      throw notAcceptable('406: Not Acceptable\n\nAvailable representations: application/jwk-set+json')
    sendBytes(exchange, 200, { type: 'application/jwk-set+json', body: jsonBytes(accounts.jwks) })
  } else if (path === '/.well-known/openid-configuration') sendDocument(exchange, openIdConfiguration(exchange))
  else if ((path === '/api' || path === '/apis') && wantsAggregated(headerOf(exchange, 'accept')))
    sendDocument(exchange, aggregatedDiscovery(registry, path === '/api' ? 'api' : 'apis'), { type: AGGREGATED })
  else if (path === '/openapi/v2') sendSwagger(exchange, registry)
  else {
    const document = documentAt(path, registry) ?? discoveryDocument(registry, path, headerOf(exchange, 'host'))
    if (document === undefined) answerNowhere(exchange)
    else sendDocument(exchange, document)
  }
}

/** The entity tag is that of the JSON form in both. */
function sendSwagger(exchange: Exchange, registry: KindRegistry): void {
  const type = swaggerType(headerOf(exchange, 'accept'))
  if (type === undefined) sendEmpty(exchange, 406, ['Vary', 'Accept'])
  else if (type === 'application/json') sendDocument(exchange, swaggerDocument(registry))
  else sendDocument(exchange, swaggerDocument(registry), { type, encode: swaggerProtobuf })
}

/** Outside of all groups the real server answers with plain text. */
function answerNowhere(exchange: Exchange): void {
  sendText(exchange, '404 page not found\n', { status: 404 })
}

function documentAt(path: string, registry: KindRegistry): object | undefined {
  if (path === '/version') return VERSION
  if (path === '/openapi/v3') return openApiIndex(registry)
  return path.startsWith('/openapi/v3/') ? openApiDocument(registry, path.slice('/openapi/v3/'.length)) : undefined
}

/** By which others could check our tokens by themselves. */
function openIdConfiguration(exchange: Exchange): object {
  return {
    issuer: ISSUER,
    jwks_uri: `https://${headerOf(exchange, 'host')}/openid/v1/jwks`,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
  }
}

function jsonBytes(value: object): Buffer {
  return Buffer.from(JSON.stringify(value))
}

/** With an ETag: kubectl asks again and again for documents that seldom change. */
function sendDocument<T extends object>(
  exchange: Exchange,
  document: T,
  { type = 'application/json', encode }: { type?: string; encode?: (document: T) => Buffer } = {},
): void {
  const json = jsonBytes(document)
  const etag = `"${createHash('sha256').update(json).digest('hex').toUpperCase()}"`
  if (exchange.headers['if-none-match'] === etag) {
    exchange.response.writeHead(304, { ETag: etag }).end()
    return
  }
  sendBytes(exchange, 200, { type, body: encode?.(document) ?? json, headers: ['ETag', etag, 'Vary', 'Accept'] })
}

function sendJsonText(exchange: Exchange, { status, text }: ApiAnswer, warnings: readonly string[]): void {
  const headers: HeaderPairs = ['Cache-Control', 'no-cache, private', ...warnings.flatMap((warning) => ['Warning', warningHeader(warning)])]
  sendBytes(exchange, status, { ...encodeAnswer(text, headerOf(exchange, 'accept')), headers })
}

/** RFC 9111 §5.5 takes ASCII only in a quoted text. */
function warningHeader(text: string): string {
  return `299 - ${JSON.stringify(text.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 1_000))}`
}
