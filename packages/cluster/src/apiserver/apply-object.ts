import { type ApplyResult, serverSideApply } from '../apply/ownership.ts'
import { TypedValueError } from '../apply/typed-value.ts'
import { objectKey } from '../store/stored-object.ts'
import { type ApiAnswer, type ApiCall, timestamp } from './api-call.ts'
import { createDecoded } from './create-object.ts'
import { decodeObject, patchNotReadable, placeInNamespace } from './decode-object.ts'
import { ownershipOf } from './field-tracker.ts'
import type { Json, JsonObject } from './kind-schema.ts'
import { servedObject } from './object-encoder.ts'
import { PATCH_OPTIONS } from './patch-object.ts'
import { apiVersionOf, at, isObject, textAt } from './served-kind.ts'
import { badRequest, invalid, notFound, requiredValue, StatusError } from './status-error.ts'
import { checkName, updateDecoded } from './update-object.ts'
import { type WriteOptions, writeOptions } from './write-options.ts'
import { parseYaml, YamlError } from './yaml-body.ts'

export const APPLY_TYPE = 'application/apply-patch+yaml'

/** Server-side apply: what is not there is made; of what is there only the fields of this manager change. */
export function applyObject(call: ApiCall, bytes: Buffer): ApiAnswer {
  const { kind, env, path, query } = call
  const options = writeOptions(call, 'PatchOptions')
  if ((query.get('fieldManager') ?? '') === '')
    throw invalid(PATCH_OPTIONS, '', [requiredValue('fieldManager', 'is required for apply patch')])
  const applied = appliedObject(call, readApplied(bytes), options)
  const old = env.store.get(kind.type, objectKey(path.namespace, path.name ?? ''))
  if (old === undefined && path.subresource !== undefined) throw notFound(kind, path.name ?? '')
  const result = merged(call, { live: old && servedObject(kind, old.body), applied, options })
  if ('conflict' in result) {
    const { message, causes } = result.conflict
    throw new StatusError({ code: 409, reason: 'Conflict', message, details: { causes: [...causes] } })
  }
  const body = placeInNamespace(call, decodeObject(call, result.object, 'Ignore'))
  if (old !== undefined) return updateDecoded(call, { old, body, options })
  return createDecoded(call, { body, options, track: (object) => object })
}

function readApplied(bytes: Buffer): Json {
  try {
    return parseYaml(bytes, false)
  } catch (error) {
    throw error instanceof YamlError ? badRequest(`error decoding YAML: error converting YAML to JSON: ${error.message}`) : error
  }
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
    if (error instanceof TypedValueError) throw new StatusError({ code: 500, reason: '', message: error.message })
    throw error
  }
}

/** The fields that are applied, as they were sent: without defaults, which the manager does not own. */
function appliedObject(call: ApiCall, input: Json, options: WriteOptions): JsonObject {
  const { kind, path } = call
  if (!isObject(input)) throw badRequest('error decoding YAML: it is not an object')
  if (at(input, 'metadata', 'managedFields') !== undefined) throw badRequest('metadata.managedFields must be nil')
  decodeObject(call, input, options.fieldValidation, patchNotReadable)
  const metadata = at(input, 'metadata')
  const name = textAt(metadata, 'name')
  if (name !== '') checkName(call, name)
  const place = { name: path.name ?? '', ...(path.namespace === undefined ? {} : { namespace: path.namespace }) }
  const whole = {
    kind: kind.kind,
    apiVersion: apiVersionOf(kind),
    ...input,
    metadata: { ...(isObject(metadata) ? metadata : {}), ...place },
  }
  return kind.schema.prune(whole).object
}
