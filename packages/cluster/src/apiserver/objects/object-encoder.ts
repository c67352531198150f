import type { JsonObject } from '@thv/kube-schema/kind-schema'
import type { Change } from '../../store/change-log.ts'
import type { StoredObject } from '../../store/stored-object.ts'
import { apiVersionOf, type ServedKind, without } from './served-kind.ts'

/** A stored object as it is served under one version: with its kind, and converted where the stored form is another. */
export function servedObject(kind: ServedKind, body: JsonObject): JsonObject {
  return { kind: kind.kind, apiVersion: apiVersionOf(kind), ...(kind.conversion?.fromStored(body) ?? body) }
}

/** The way back. */
export function storedBody(kind: ServedKind, object: JsonObject): JsonObject {
  const body = without(object, 'kind', 'apiVersion')
  return kind.conversion?.toStored(body) ?? body
}

/** The same as text, without parsing or serializing again where it is not needed. */
export function servedText(kind: ServedKind, object: StoredObject): string {
  if (kind.conversion) return JSON.stringify(servedObject(kind, object.body))
  return `${headOf(kind)},${object.text.slice(1)}`
}

/** As an item of a list: built-in kinds leave kind and version out there. */
export function itemText(kind: ServedKind, object: StoredObject): string {
  if (kind.custom) return servedText(kind, object)
  return kind.conversion ? JSON.stringify(kind.conversion.fromStored(object.body)) : object.text
}

/** Event of a change for watchers; made once for all who ask for the same form. */
export function sharedEvent(change: Change, form: string, encode: () => string): Buffer {
  let bytes = change.encoded.get(form)
  if (bytes === undefined) {
    bytes = Buffer.from(`${encode()}\n`)
    change.encoded.set(form, bytes)
  }
  return bytes
}

export function eventText(type: string, objectText: string): string {
  return `{"type":"${type}","object":${objectText}}`
}

function headOf(kind: ServedKind): string {
  return `{"kind":${JSON.stringify(kind.kind)},"apiVersion":${JSON.stringify(apiVersionOf(kind))}`
}
