import type { Exchange } from '@thv/http/server/exchange'
import type { Clock } from '@thv/kernel/clock'
import type { JsonObject } from '@thv/kube-schema/kind-schema'
import type { ObjectStore } from '../../store/object-store.ts'
import { objectKey, type StoredObject } from '../../store/stored-object.ts'
import type { AccountTokens } from '../accounts/account-tokens.ts'
import type { PodStreams } from '../kinds/pod/pod-streams.ts'
import { servedObject, servedText } from '../objects/object-encoder.ts'
import { readStored } from '../objects/read-stored.ts'
import type { ServedKind } from '../objects/served-kind.ts'
import { badRequest, notFound } from '../objects/status-error.ts'
import type { KindRegistry } from '../registry/kind-registry.ts'
import type { ResourcePath } from './api-path.ts'
import { headerOf } from './read-input.ts'
import { type AnswerForm, answerForm, checkForm, partialObject } from './response-form.ts'
import { includeObject, tableOf } from './table.ts'
import type { Upgrade } from './tls-server.ts'

export interface ApiEnv {
  readonly store: ObjectStore
  readonly registry: KindRegistry
  readonly clock: Clock
  /** The addresses of Services, as a CIDR. */
  readonly serviceRange: string
  readonly accounts: AccountTokens
  /** Of the node that runs the pods; undefined without one. */
  podStreams(): PodStreams | undefined
  readonly metricsPage: (() => string) | undefined
}

/** One request for a resource. */
export interface ApiCall {
  readonly env: ApiEnv
  readonly exchange: Exchange
  readonly kind: ServedKind
  readonly path: ResourcePath
  readonly query: URLSearchParams
  /** Told to the client in Warning headers. */
  readonly warnings: string[]
  /** There when the client asks for a WebSocket. */
  readonly upgrade: Upgrade | undefined
}

/** The response; undefined when the verb has written it itself. */
export interface ApiAnswer {
  readonly status: number
  readonly text: string
}

/** The object that the path names, or 404. */
export function storedObject({ env, kind, path }: ApiCall): StoredObject {
  const found = env.store.get(kind.type, objectKey(path.namespace, path.name ?? ''))
  if (found === undefined) throw notFound(kind, path.name ?? '')
  return readStored(kind, found)
}

/** An object that is stored, in the form that the client asks for. */
export function answerStored(call: ApiCall, object: StoredObject, status = 200): ApiAnswer {
  if (formOf(call) !== 'Object') return answerBody(call, object.body, status)
  return { status, text: servedText(call.kind, object) }
}

/** A body in its stored form that may not be stored: a dry run's. */
export function answerBody(call: ApiCall, body: JsonObject, status = 200): ApiAnswer {
  const { kind, query, env } = call
  const form = formOf(call)
  checkForm(form, kind, false)
  if (form === 'Object') return { status, text: JSON.stringify(servedObject(kind, body)) }
  if (form === 'PartialObjectMetadata') return { status, text: JSON.stringify(partialObject(body)) }
  const table = tableOf(kind, [body], { include: includeObject(query), now: env.clock.now(), metadata: revisionOf(body) })
  return { status, text: JSON.stringify(table) }
}

/** The form in which the client wants its answer, or 406. */
export function formOf({ exchange }: ApiCall): AnswerForm {
  return answerForm(headerOf(exchange, 'accept'))
}

/** As the real server reads it: whatever is there and is not 0 or false is true, even an empty text. */
export function flagOf(query: URLSearchParams, name: string): boolean {
  const value = query.get(name)
  return value !== null && value !== '0' && value.toLowerCase() !== 'false'
}

/** A whole number of the query; undefined when it is not given. */
export function numberOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  const refuse = (why: string) => badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: ${why}`)
  if (!/^[+-]?\d+$/.test(text)) throw refuse('invalid syntax')
  if (!(Math.abs(Number(text)) < 2 ** 63)) throw refuse('value out of range')
  return Number(text)
}

export function isDryRun(query: URLSearchParams): boolean {
  return query.getAll('dryRun').includes('All')
}

/** RFC 3339 in whole seconds, as all times in metadata. */
export function timestamp(clock: Clock): string {
  return new Date(clock.now()).toISOString().replace(/\.\d+Z$/, 'Z')
}

/** Part of its object that the metadata of a Table repeat. */
export function revisionOf(body: JsonObject): JsonObject {
  const metadata = body['metadata'] as JsonObject
  const version = metadata['resourceVersion']
  return version === undefined ? {} : { resourceVersion: version }
}
