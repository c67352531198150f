import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { type ApplyResult, serverSideApply } from '@thv/kube-schema/patch/ownership'
import { PatchError } from '@thv/kube-schema/patch/patch-error'
import { TypedValueError } from '@thv/kube-schema/patch/typed-value'
import { objectKey } from '../../store/stored-object.ts'
import { type ApiAnswer, type ApiCall, timestamp } from '../http/request-context.ts'
import { parseYaml, YamlError } from '../http/yaml-body.ts'
import { decodeObject, placeInNamespace } from '../objects/decode-object.ts'
import { ownershipOf } from '../objects/field-tracker.ts'
import { servedObject } from '../objects/object-encoder.ts'
import { readStored } from '../objects/read-stored.ts'
import { apiVersionOf, at, isObject, metaOf, textAt, without } from '../objects/served-kind.ts'
import { badRequest, conflict, invalid, notFound, StatusError } from '../objects/status-error.ts'
import { createDecoded } from './create-object.ts'
import { checkName, updateDecoded } from './update-object.ts'
import { type WriteOptions, writeOptions } from './write-options.ts'

export const APPLY_TYPE = 'application/apply-patch+yaml'

/** Server-side apply: what is not there is made; of what is there only the fields of this manager change. */
export function applyObject(call: ApiCall, bytes: Buffer): ApiAnswer {
  const { kind, env, path } = call
  const options = writeOptions(call, 'PatchOptions', true)
  const applied = appliedObject(call, readApplied(bytes, false))
  const stored = env.store.get(kind.type, objectKey(path.namespace, path.name ?? ''))
  const old = stored && readStored(kind, stored)
  if (old === undefined && path.subresource !== undefined) throw notFound(kind, path.name ?? '')
  const result = merged(call, { live: old && servedObject(kind, old.body), applied, options })
  if ('conflict' in result) {
    const { message, causes } = result.conflict
    throw new StatusError({ code: 409, reason: 'Conflict', message, details: { causes: [...causes] } })
  }
  checkStrictly(call, bytes, options)
  checkNulls(call, result.object)
  checkNamed(call, result.object)
  const body = placeInNamespace(call, decodeObject(call, result.object, 'Ignore'))
  checkName(call, textAt(body, 'metadata', 'name'))
  if (old !== undefined) return updateDecoded(call, { old, body, options })
  const uid = textAt(body, 'metadata', 'uid')
  if (uid !== '')
    throw conflict(kind, path.name ?? '', `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`)
  // A version is compared with that of an object that exists, and says nothing about one that does not.
  const created = { ...body, metadata: without(metaOf(body), 'resourceVersion') }
  return createDecoded(call, { body: created, options, track: (object) => object })
}

function readApplied(bytes: Buffer, strict: boolean): Json {
  try {
    return parseYaml(bytes, strict)
  } catch (error) {
    if (!(error instanceof YamlError)) throw error
    throw badRequest(`error ${strict ? 'strict ' : ''}decoding YAML: error converting YAML to JSON: ${error.message}`)
  }
}

/** A key that is there twice; what the schema does not know was refused before. */
function checkStrictly({ warnings }: ApiCall, bytes: Buffer, { fieldValidation }: WriteOptions): void {
  if (fieldValidation === 'Ignore') return
  try {
    readApplied(bytes, true)
  } catch (error) {
    if (!(error instanceof StatusError) || fieldValidation === 'Strict') throw error
    warnings.push(error.message)
  }
}

/** A null that is sent otherwise is forgotten where it may not be; one that is applied stays, and is wrong. */
function checkNulls({ kind, path }: ApiCall, object: JsonObject): void {
  if (!kind.custom || !hasNull(without(object, 'metadata'))) return
  const problems = kind.schema.validate(object)
  const nulls = problems.filter(({ message }) => message.endsWith(': "null"'))
  if (nulls.length > 0) throw invalid(kind, path.name ?? '', [...nulls, ...problems.filter(({ field }) => field === '<nil>')])
}

function hasNull(value: Json): boolean {
  if (value === null) return true
  return typeof value === 'object' && Object.values(value).some(hasNull)
}

/** An existing object has its name; a new one must state it. */
function checkNamed({ path }: ApiCall, object: JsonObject): void {
  if (textAt(object, 'metadata', 'name') === '')
    throw badRequest(`the name of the object (${path.name} based on URL) was undeterminable: name must be provided`)
}

interface Apply {
  readonly live: JsonObject | undefined
  readonly applied: JsonObject
  readonly options: WriteOptions
}

function merged({ kind, env, path }: ApiCall, { live, applied, options }: Apply): ApplyResult {
  try {
    const writer = { fieldManager: options.fieldManager, subresource: path.subresource, now: timestamp(env.clock) }
    return serverSideApply(live, applied, { ...ownershipOf(kind, writer), force: options.force })
  } catch (error) {
    if (error instanceof TypedValueError || error instanceof PatchError)
      throw new StatusError({ code: 500, reason: '', message: error.message })
    throw error
  }
}

/** The fields that are applied, as they were sent: without defaults, which the manager does not own. */
function appliedObject({ kind }: ApiCall, input: Json): JsonObject {
  if (!isObject(input) && input !== null)
    throw badRequest(`error decoding YAML: error unmarshaling JSON: while decoding JSON: ${wrongBody(input)}`)
  const applied = input ?? {}
  const [name, version] = [textAt(applied, 'kind'), textAt(applied, 'apiVersion')]
  if (name !== kind.kind || version !== apiVersionOf(kind))
    throw badRequest(`invalid object type: ${version.includes('/') ? version : `/${version}`}, Kind=${name}`)
  if ((at(applied, 'metadata', 'managedFields') ?? null) !== null) throw badRequest('metadata.managedFields must be nil')
  return applied
}

function wrongBody(input: Json): string {
  const type = Array.isArray(input) ? 'array' : typeof input === 'boolean' ? 'bool' : typeof input
  return `json: cannot unmarshal ${type} into Go value of type map[string]interface {}`
}
