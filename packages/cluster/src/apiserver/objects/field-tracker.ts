import { emptyObject } from '@thv/kube-schema/builtin/empty-objects'
import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { EMPTY_SET, type FieldSet, setOf } from '@thv/kube-schema/patch/field-set'
import { managersOf, withManagers } from '@thv/kube-schema/patch/managed-fields'
import { type Writer, withOwnership } from '@thv/kube-schema/patch/ownership'
import { TypedValueError } from '@thv/kube-schema/patch/typed-value'
import { servedObject, storedBody } from './object-encoder.ts'
import { apiVersionOf, keptByStatus, metaOf, type ServedKind, without } from './served-kind.ts'

/** The writer, for `metadata.managedFields`. */
export interface FieldWriter {
  readonly fieldManager: string
  readonly subresource?: string | undefined
  /** RFC 3339, whole seconds. */
  readonly now: string
}

/** Keeps `metadata.managedFields` for every write but an apply. Objects are in their stored form; `old` is undefined for a new one. */
export type FieldTracker = (kind: ServedKind, change: { object: JsonObject; old?: JsonObject }, writer: FieldWriter) => JsonObject

export const fieldTracker: FieldTracker = (kind, { object, old }, writer) => {
  const live = old === undefined ? undefined : servedObject(kind, old)
  try {
    const tracked = withOwnership(live, servedObject(kind, object), ownershipOf(kind, writer))
    return storedBody(kind, writer.subresource === 'scale' ? withoutTime(tracked) : tracked)
  } catch (error) {
    // Items of a list without their keys cannot be owned. Validation comes next and says it better.
    if (!(error instanceof TypedValueError)) throw error
    return { ...object, metadata: without(metaOf(object), 'managedFields') }
  }
}

/** The same in the words of the rules of ownership. */
export function ownershipOf(kind: ServedKind, { fieldManager, subresource, now }: FieldWriter): Writer {
  const empty = kind.custom ? undefined : emptyObject(kind.kind)
  return {
    schema: kind.schema.merge,
    manager: fieldManager,
    apiVersion: apiVersionOf(kind),
    now,
    resetFields: resetFields(kind, subresource),
    ...(subresource === undefined ? {} : { subresource }),
    ...(empty === undefined ? {} : { empty: kind.conversion?.fromStored(empty) ?? empty }),
  }
}

/** Fields that a write of this kind cannot change, whatever it says: they get no owner. */
function resetFields({ status, type }: ServedKind, subresource: string | undefined): FieldSet {
  if (subresource === 'status') return setOf(['f:spec'], ...(keptByStatus[type] ?? []).map((name) => ['f:metadata', `f:${name}`]))
  return status ? setOf(['f:status']) : EMPTY_SET
}

/** The real server notes no time for a scale. */
function withoutTime(object: JsonObject): JsonObject {
  const managers = new Map(managersOf(object))
  for (const [key, manager] of managers) if (manager.subresource === 'scale') managers.set(key, { ...manager, time: undefined })
  return withManagers(object, managers)
}
