import { type ApiAnswer, type ApiCall, storedObject } from './api-call.ts'
import { decodeObject, placeInNamespace } from './decode-object.ts'
import type { FieldTracker } from './field-tracker.ts'
import type { Json, JsonObject } from './kind-schema.ts'
import { servedObject } from './object-encoder.ts'
import { patchTypes } from './openapi.ts'
import { parseJson } from './read-input.ts'
import { isObject, type ServedKind, textAt } from './served-kind.ts'
import { badRequest, StatusError, unsupportedMediaType } from './status-error.ts'
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
  const patched = patch(servedObject(call.kind, old.body))
  const body = placeInNamespace(call, decodeObject(call, patched, options.fieldValidation))
  checkName(call, textAt(body, 'metadata', 'name'))
  return updateDecoded(call, { old, body, options, tracker })
}

/** The function that a patch is. Throws 415 for a form that the kind does not take, 400 for one that cannot be read. */
export function patchOf(kind: Pick<ServedKind, 'custom'>, { mediaType, bytes }: PatchInput): (current: JsonObject) => Json {
  switch (mediaType) {
    case 'application/merge-patch+json': {
      const patch = parseJson(bytes)
      if (!isObject(patch)) throw badRequest('the patch is not a JSON object')
      return (current) => mergePatch(current, patch)
    }
    case 'application/json-patch+json':
    case 'application/strategic-merge-patch+json':
    case 'application/apply-patch+yaml':
      if (kind.custom && mediaType.includes('strategic')) throw unsupportedMediaType(patchTypes(kind as ServedKind))
      throw new StatusError({ code: 501, reason: 'NotImplemented', message: `patches of type ${mediaType} are not implemented yet` })
    default:
      throw new StatusError({ code: 415, reason: 'UnsupportedMediaType', message: '415: Unsupported Media Type', details: {} })
  }
}

/** RFC 7386. */
export function mergePatch(target: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch
  const result = new Map(Object.entries(isObject(target) ? target : {}))
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) result.delete(name)
    else result.set(name, mergePatch(result.get(name), value))
  }
  return Object.fromEntries(result)
}
