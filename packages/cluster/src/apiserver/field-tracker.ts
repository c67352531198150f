import type { JsonObject } from './kind-schema.ts'
import type { ServedKind } from './served-kind.ts'

/** Who writes, for `metadata.managedFields`. */
export interface Writer {
  readonly fieldManager: string
  readonly subresource?: string
}

/** Keeps `metadata.managedFields`. All calls give the object with the new entries. */
export interface FieldTracker {
  created(kind: ServedKind, object: JsonObject, writer: Writer): JsonObject
  updated(kind: ServedKind, change: { object: JsonObject; old: JsonObject }, writer: Writer): JsonObject
}

/** Keeps none: whatever a client sends of them is dropped. */
export const noTracker: FieldTracker = {
  created: (_kind, object) => object,
  updated: (_kind, { object }) => object,
}
