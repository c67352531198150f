import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { applyJsonPatch } from '@thv/kube-schema/patch/json-patch'
import { applyMergePatch } from '@thv/kube-schema/patch/merge-patch'
import { PatchError } from '@thv/kube-schema/patch/patch-error'
import { applyStrategicMergePatch } from '@thv/kube-schema/patch/strategic-merge'
import { parseJson } from '../http/read-input.ts'
import { type ApiAnswer, type ApiCall, storedObject } from '../http/request-context.ts'
import { decodeObject, patchNotReadable, placeInNamespace } from '../objects/decode-object.ts'
import type { FieldTracker } from '../objects/field-tracker.ts'
import { servedObject } from '../objects/object-encoder.ts'
import { type ServedKind, textAt } from '../objects/served-kind.ts'
import { badRequest, StatusError, unsupportedMediaType } from '../objects/status-error.ts'
import { patchTypes } from '../registry/openapi.ts'
import { checkName, updateDecoded } from './update-object.ts'
import { writeOptions } from './write-options.ts'

export interface PatchInput {
  readonly mediaType: string
  readonly bytes: Buffer
}

/** PATCH of an object or of its status. */
export function patchObject(call: ApiCall, input: PatchInput, tracker: FieldTracker): ApiAnswer {
  const options = writeOptions(call, 'PatchOptions')
  const patch = patchOf(call.kind, input)
  const old = storedObject(call)
  const patched = patch.apply(servedObject(call.kind, old.body))
  const decoded = decodeObject(call, patched, options.fieldValidation, { refuse: patchNotReadable, source: patch.source })
  const body = placeInNamespace(call, decoded)
  checkName(call, textAt(body, 'metadata', 'name'))
  return updateDecoded(call, { old, body, options, tracker })
}

export interface Patch {
  /** As it was sent. */
  readonly source: Json
  apply(current: JsonObject): Json
}

/** Throws 415 for a form that the kind does not take, 400 for a patch that cannot be read. */
export function patchOf(kind: ServedKind, { mediaType, bytes }: PatchInput): Patch {
  const carryOut = PATCHES[mediaType]
  if (carryOut === undefined)
    throw new StatusError({ code: 415, reason: 'UnsupportedMediaType', message: '415: Unsupported Media Type', details: {} })
  if (!patchTypes(kind).includes(mediaType)) throw unsupportedMediaType(patchTypes(kind))
  const patch = parseJson(bytes)
  if (mediaType === JSON_PATCH && !Array.isArray(patch))
    throw badRequest('error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp')
  return {
    source: patch,
    apply(current) {
      try {
        return carryOut(current, patch, kind)
      } catch (error) {
        if (error instanceof PatchError) throw refusal(error)
        throw error
      }
    },
  }
}

const JSON_PATCH = 'application/json-patch+json'
const PATCHES: Readonly<Record<string, (current: JsonObject, patch: Json, kind: ServedKind) => Json>> = {
  [JSON_PATCH]: applyJsonPatch,
  'application/merge-patch+json': applyMergePatch,
  'application/strategic-merge-patch+json': (current, patch, kind) => applyStrategicMergePatch(current, patch, kind.schema.merge),
}

const REASONS: Readonly<Record<number, string>> = { 400: 'BadRequest', 413: 'RequestEntityTooLarge', 422: 'Invalid' }

function refusal({ status, message }: PatchError): StatusError {
  return new StatusError({ code: status, reason: REASONS[status] ?? '', message, ...(status === 422 ? { details: {} } : {}) })
}
