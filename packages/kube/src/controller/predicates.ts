import { jsonEqual } from '@thv/kernel/json'
import type { ObjectEvent } from '../cache/reflector.ts'
import type { KubeObject } from '../objects/types.ts'

/** Whether an event is worth waking a reconciler. Additions and deletions always are, unless one says otherwise. */
export type Predicate<T extends KubeObject = KubeObject> = (event: ObjectEvent<T>) => boolean

/** Keeps out writes to status and metadata. For kinds whose `generation` the server counts. */
export const generationChanged: Predicate = onModified((now, old) => now.generation !== old.generation)

/** Keeps out repetitions, such as those a re-list could bring. */
export const resourceVersionChanged: Predicate = onModified((now, old) => now.resourceVersion !== old.resourceVersion)

export const labelsChanged: Predicate = onModified((now, old) => !jsonEqual(now.labels ?? {}, old.labels ?? {}))

/** Any annotation, or only the named ones. */
export function annotationsChanged(keys?: readonly string[]): Predicate {
  return onModified((now, old) =>
    keys === undefined
      ? !jsonEqual(now.annotations ?? {}, old.annotations ?? {})
      : keys.some((key) => now.annotations?.[key] !== old.annotations?.[key]),
  )
}

/** The deletion of an object with finalizers arrives as a modification. */
export const deletionStarted: Predicate = onModified(
  (now, old) => now.deletionTimestamp !== undefined && old.deletionTimestamp === undefined,
)

export function or<T extends KubeObject>(...predicates: Predicate<T>[]): Predicate<T> {
  return (event) => predicates.some((predicate) => predicate(event))
}

export function and<T extends KubeObject>(...predicates: Predicate<T>[]): Predicate<T> {
  return (event) => predicates.every((predicate) => predicate(event))
}

export function not<T extends KubeObject>(predicate: Predicate<T>): Predicate<T> {
  return (event) => !predicate(event)
}

function onModified(changed: (now: KubeObject['metadata'], old: KubeObject['metadata']) => boolean): Predicate {
  return (event) => event.old === undefined || event.type !== 'MODIFIED' || changed(event.object.metadata, event.old.metadata)
}
