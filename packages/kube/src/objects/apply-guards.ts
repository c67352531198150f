import type { KubeObject } from './types.ts'

/**
 * No object has this version: the first write of a store gets the second one. Server-side apply compares the version with that of an
 * existing object and ignores it where there is none.
 */
const NO_VERSION = '1'

/** For an apply that creates: fails with 409 when an object of this name exists. Without it, apply would merge into that object. */
export function onlyIfAbsent<T extends KubeObject>(object: T): T {
  return { ...object, metadata: { ...object.metadata, resourceVersion: NO_VERSION } }
}

/** For an apply that updates: fails when another object has taken the name of `live`, or none has it. Other changes do not matter. */
export function onlyIfSame<T extends KubeObject>(object: T, live: KubeObject): T {
  return { ...object, metadata: { ...object.metadata, uid: live.metadata.uid } }
}
