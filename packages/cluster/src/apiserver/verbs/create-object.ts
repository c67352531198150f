import { randomUUID } from 'node:crypto'
import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { generatedName } from '@thv/kube-schema/values/object-name'
import { objectKey } from '../../store/stored-object.ts'
import { type ApiAnswer, type ApiCall, answerBody, answerStored, timestamp } from '../http/request-context.ts'
import { decodeObject, placeInNamespace } from '../objects/decode-object.ts'
import type { FieldTracker } from '../objects/field-tracker.ts'
import { apiVersionOf, CRD_TYPE, metaOf, type ServedKind, textAt, without } from '../objects/served-kind.ts'
import { alreadyExists, forbidden, notFound, StatusError } from '../objects/status-error.ts'
import { validateObject } from '../objects/validate-object.ts'
import { withCrdStatus } from '../registry/crd-status.ts'
import { type WriteOptions, writeOptions } from './write-options.ts'

export function createObject(call: ApiCall, input: Json, tracker: FieldTracker): ApiAnswer {
  const options = writeOptions(call, 'CreateOptions')
  const decoded = placeInNamespace(call, decodeObject(call, input, options.fieldValidation))
  const body = {
    ...decoded,
    metadata: without(metaOf(decoded), 'managedFields', 'deletionTimestamp', 'deletionGracePeriodSeconds', 'selfLink'),
  }
  return createDecoded(call, {
    body,
    track: (object) => tracker(call.kind, { object }, { ...options, now: timestamp(call.env.clock) }),
    options,
  })
}

export interface NewObject {
  readonly body: JsonObject
  readonly track: (object: JsonObject) => JsonObject
  readonly options: WriteOptions
}

/** The second half: for POST, and for an apply of what is not there yet. */
export function createDecoded(call: ApiCall, { body, track, options }: NewObject): ApiAnswer {
  const { kind, env } = call
  checkNamespace(call)
  checkDefinition(call, textAt(body, 'metadata', 'name'))
  if (textAt(body, 'metadata', 'resourceVersion') !== '')
    throw new StatusError({ code: 500, reason: '', message: 'resourceVersion should not be set on objects to be created' })
  // As on the real server: fields that the server itself adds have no owner.
  const object = prepare(call, track(body))
  validateObject(kind, object)
  kind.rules.permit?.(object, env)
  const name = textAt(object, 'metadata', 'name')
  const key = objectKey(call.path.namespace, name)
  if (options.dryRun) {
    if (env.store.get(kind.type, key)) throw alreadyExists(kind, name)
    return answerBody(call, object, 201)
  }
  const result = env.store.create(kind.type, key, withDefaultStatus(kind, object))
  if ('refused' in result) throw alreadyExists(kind, name)
  return answerStored(call, result.object, 201)
}

function prepare({ kind, env }: ApiCall, body: JsonObject): JsonObject {
  const given = without(
    metaOf(body),
    'selfLink',
    'deletionTimestamp',
    'deletionGracePeriodSeconds',
    'resourceVersion',
    ...(kind.rules.generation.length > 0 ? ['generation'] : []),
  )
  const base = textAt(given, 'generateName')
  const metadata = {
    ...given,
    ...(textAt(given, 'name') === '' && base !== '' ? { name: generatedName(base) } : {}),
    uid: randomUUID(),
    creationTimestamp: timestamp(env.clock),
    ...(kind.rules.generation.length > 0 ? { generation: 1 } : {}),
  }
  const fresh: JsonObject = { ...(kind.custom && kind.status ? without(body, 'status') : body), metadata }
  const equipped = kind.rules.allocate?.(fresh, env) ?? fresh
  const prepared = kind.rules.prepareCreate?.(equipped) ?? equipped
  return kind.type === CRD_TYPE ? withCrdStatus(prepared, env.registry.namesTaken(prepared), timestamp(env.clock)) : prepared
}

/** A new custom object has no status but the one that its schema gives it. */
function withDefaultStatus(kind: ServedKind, object: JsonObject): JsonObject {
  if (!kind.custom || !kind.status) return object
  const { status } = kind.schema.applyDefaults({ apiVersion: apiVersionOf(kind), kind: kind.kind, ...object })
  return status === undefined ? object : { ...object, status }
}

const NAMESPACES = { group: '', kind: 'Namespace', plural: 'namespaces' }

/** Nothing is made in a namespace that is not there, or that is about to go. */
function checkNamespace({ env, kind, path }: ApiCall): void {
  if (!kind.namespaced) return
  const name = path.namespace ?? ''
  const namespace = env.store.get('namespaces', name)
  if (namespace === undefined) throw notFound(NAMESPACES, name)
  if (textAt(namespace.body, 'metadata', 'deletionTimestamp') === '') return
  const why = `unable to create new content in namespace ${name} because it is being terminated`
  const causes = [{ reason: 'NamespaceTerminating', message: `namespace ${name} is being terminated`, field: 'metadata.namespace' }]
  throw forbidden(kind, '', why, causes)
}

function checkDefinition({ env, kind }: ApiCall, name: string): void {
  if (!kind.custom || textAt(env.store.get(CRD_TYPE, kind.type)?.body, 'metadata', 'deletionTimestamp') === '') return
  throw forbidden(kind, name, 'create not allowed while custom resource definition is terminating')
}
