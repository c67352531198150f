import { jsonEqual } from '@thv/kernel/json'
import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { objectKey, type StoredObject } from '../../store/stored-object.ts'
import { type ApiAnswer, type ApiCall, answerBody, answerStored, storedObject, timestamp } from '../http/request-context.ts'
import { decodeObject, placeInNamespace } from '../objects/decode-object.ts'
import type { FieldTracker } from '../objects/field-tracker.ts'
import { finalizersOf } from '../objects/object-meta.ts'
import { at, CRD_TYPE, keptByStatus, metaOf, type ServedKind, textAt, without } from '../objects/served-kind.ts'
import { badRequest, conflict, invalid, invalidValue, problem, StatusError } from '../objects/status-error.ts'
import { validateObject } from '../objects/validate-object.ts'
import { withCrdStatus } from '../registry/crd-status.ts'
import { createDecoded } from './create-object.ts'
import { finishDefinition } from './definition-cleanup.ts'
import { type WriteOptions, writeOptions } from './write-options.ts'

/** PUT of an object or of its status. */
export function replaceObject(call: ApiCall, input: Json, tracker: FieldTracker): ApiAnswer {
  const options = writeOptions(call, 'UpdateOptions')
  const decoded = decodeObject(call, input, options.fieldValidation)
  const name = textAt(decoded, 'metadata', 'name')
  const { path } = call
  if (name === '') throw badRequest(`the name of the object (${path.name} based on URL) was undeterminable: name must be provided`)
  checkName(call, name)
  const body = placeInNamespace(call, decoded)
  if (call.kind.rules.createOnUpdate && path.subresource === undefined && !isStored(call)) {
    const track = (object: JsonObject) => tracker(call.kind, { object }, { ...options, now: timestamp(call.env.clock) })
    return createDecoded(call, { body: { ...body, metadata: without(metaOf(body), 'resourceVersion', 'uid') }, track, options })
  }
  const old = storedObject(call)
  return updateDecoded(call, { old, body, options, tracker })
}

function isStored({ env, kind, path }: ApiCall): boolean {
  return env.store.get(kind.type, objectKey(path.namespace, path.name ?? '')) !== undefined
}

export function checkName({ path }: ApiCall, name: string): void {
  if (name !== path.name) throw badRequest(`the name of the object (${name}) does not match the name on the URL (${path.name})`)
}

export interface Update {
  readonly old: StoredObject
  /** In stored form. */
  readonly body: JsonObject
  readonly options: WriteOptions
  /** Left out by an apply, which has kept the entries itself. */
  readonly tracker?: FieldTracker
  /** The one that is written by way of the object itself. */
  readonly subresource?: string
}

/** The second half of every change of an existing object: PUT, PATCH, apply, scale. */
export function updateDecoded(call: ApiCall, { old, body, options, tracker, subresource }: Update): ApiAnswer {
  const { kind, env, path } = call
  checkVersion(call, body, old)
  const writer = { fieldManager: options.fieldManager, subresource: subresource ?? path.subresource, now: timestamp(env.clock) }
  const tracked = tracker?.(kind, { object: body, old: old.body }, writer) ?? body
  const prepared = prepare(call, tracked, old.body)
  validateObject(kind, prepared, { old: old.body, statusOnly: path.subresource === 'status' })
  if (isSame(prepared, old.body)) return answerStored(call, old)
  // A write of the status changes no spec, so the generation stays, whatever else it holds.
  const object = path.subresource === 'status' ? prepared : withGeneration(kind, prepared, old.body)
  if (options.dryRun) return answerBody(call, withVersion(object, old))
  const result = isFinished(kind, object) ? env.store.delete(old, object) : env.store.update(old, object)
  if ('refused' in result) throw conflict(kind, old.name)
  if (isFinished(kind, object)) finishDefinition(env, kind)
  return answerStored(call, result.object)
}

function checkVersion({ kind, path, exchange }: ApiCall, body: JsonObject, old: StoredObject): void {
  const version = textAt(body, 'metadata', 'resourceVersion')
  const quoted = JSON.stringify(version)
  // 500 and no reason: the real server does not expect it here.
  if (version !== '' && !/^\d+$/.test(version))
    throw new StatusError({ code: 500, reason: '', message: `strconv.ParseUint: parsing ${quoted}: invalid syntax` })
  if (Number(version) !== 0 && version !== String(old.revision)) throw conflict(kind, old.name)
  if (Number(version) === 0 && !kind.rules.unconditionalUpdate && path.subresource !== 'scale')
    throw invalid({ ...kind, kind: kind.plural }, old.name, [
      problem('metadata.resourceVersion', 'FieldValueInvalid', 'Invalid value: 0: must be specified for an update'),
    ])
  const uid = textAt(body, 'metadata', 'uid')
  const current = textAt(old.body, 'metadata', 'uid')
  if (uid === '' || uid === current) return
  if (exchange.method === 'PATCH') throw invalid(kind, old.name, [invalidValue('metadata.uid', uid, 'field is immutable')])
  const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${current}`
  const key = `/registry/${kind.custom ? `${kind.group}/` : ''}${kind.plural}/${old.key}`
  throw conflict(kind, old.name, `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ${why}`)
}

/** Fields of the server stay as they are; the status changes by its subresource only, and nothing else by that. */
function prepare({ kind, path, env }: ApiCall, body: JsonObject, old: JsonObject): JsonObject {
  const before = metaOf(old)
  const given = metaOf(body)
  const kept: Record<string, Json> = {}
  for (const name of OWNED) if (before[name] !== undefined) kept[name] = before[name]
  const metadata: JsonObject = { ...without(given, ...OWNED), ...kept, ...immutable(given, before) }
  const status = (value: Json | undefined) => (value === undefined ? {} : { status: value })
  if (path.subresource === 'status') {
    const written = { ...without(old, 'status', 'metadata'), metadata: statusMetadata(kind, metadata, before), ...status(body['status']) }
    return kind.rules.prepareStatus?.(written, old) ?? written
  }
  if (path.subresource === 'finalize') return { ...body, metadata, ...status(old['status']) }
  const merged: JsonObject = kind.status ? { ...without(body, 'status'), metadata, ...status(old['status']) } : { ...body, metadata }
  const equipped = kind.rules.allocate?.(merged, { ...env, old }) ?? merged
  const prepared = kind.rules.prepareUpdate?.(equipped, old) ?? equipped
  return kind.type === CRD_TYPE ? withCrdStatus(prepared, env.registry.namesTaken(prepared), timestamp(env.clock)) : prepared
}

/** A write of the status may change the labels and the rest of the metadata too, but for what its kind keeps. */
function statusMetadata({ custom, type }: ServedKind, given: JsonObject, before: JsonObject): JsonObject {
  if (custom || type === CRD_TYPE) {
    const managed = given['managedFields']
    return { ...without(before, 'managedFields'), ...(managed === undefined ? {} : { managedFields: managed }) }
  }
  const kept = (keptByStatus[type] ?? []).filter((name) => before[name] !== undefined)
  return { ...without(given, ...(keptByStatus[type] ?? [])), ...Object.fromEntries(kept.map((name) => [name, before[name] ?? null])) }
}

/** Fields that no client can change; `immutable` lists those that it must repeat if it sends them. */
const OWNED = ['generation', 'selfLink', 'resourceVersion', 'creationTimestamp', 'uid']

function immutable(given: JsonObject, before: JsonObject): JsonObject {
  const members = ['deletionTimestamp', 'deletionGracePeriodSeconds'].filter(
    (name) => given[name] === undefined && before[name] !== undefined,
  )
  return Object.fromEntries(members.map((name) => [name, before[name] ?? null]))
}

function withGeneration(kind: ServedKind, object: JsonObject, old: JsonObject): JsonObject {
  const generation = at(old, 'metadata', 'generation')
  if (typeof generation !== 'number' || !isNewGeneration(kind, object, old)) return object
  return { ...object, metadata: { ...metaOf(object), generation: generation + 1 } }
}

function isNewGeneration({ rules, status }: ServedKind, object: JsonObject, old: JsonObject): boolean {
  if (!rules.generation.includes('*'))
    return rules.generation.some((name) => !jsonEqual(at(object, ...name.split('.')), at(old, ...name.split('.'))))
  const ignored = ['metadata', ...(status ? ['status'] : [])]
  return !jsonEqual(without(object, ...ignored), without(old, ...ignored))
}

/** Deleted, and nothing holds it any more. */
export function isFinished(kind: ServedKind, object: JsonObject): boolean {
  if (textAt(object, 'metadata', 'deletionTimestamp') === '' || finalizersOf(object).length > 0) return false
  const grace = at(object, 'metadata', 'deletionGracePeriodSeconds')
  return !(kind.rules.held?.(object) ?? false) && !(typeof grace === 'number' && grace > 0)
}

/** A write that changes nothing is none: the version stays. The times in managed fields do not count. */
function isSame(object: JsonObject, old: JsonObject): boolean {
  return jsonEqual(comparable(object), comparable(old))
}

function comparable(object: JsonObject): JsonObject {
  const metadata = without(metaOf(object), 'resourceVersion')
  const managed = metadata['managedFields']
  const entries = Array.isArray(managed) ? (managed as JsonObject[]).map((entry) => without(entry, 'time')) : []
  return { ...object, metadata: { ...metadata, managedFields: entries } }
}

function withVersion(object: JsonObject, old: StoredObject): JsonObject {
  return { ...object, metadata: { ...metaOf(object), resourceVersion: String(old.revision) } }
}
