import type { ObjectEvent } from '../cache/event-feed.ts'
import type { Reflector } from '../cache/reflector.ts'
import { formatKey, keyOf, parseKey } from '../objects/object-key.ts'
import { type OwnerFilter, ownerKeys } from '../objects/owners.ts'
import type { KubeObject, ObjectKey } from '../objects/types.ts'
import type { Predicate } from './predicates.ts'

/** Something that wakes a controller. */
export interface Source {
  /** Named in the message when its cache does not come up. */
  readonly name: string
  readonly hasSynced: boolean
  waitForSync(signal?: AbortSignal): Promise<void>
  /** Gives out the keys of all changes from now on, and first of all that is there. Returns how to stop. */
  subscribe(enqueue: (key: ObjectKey) => void): () => void
}

type Watched<T extends KubeObject> = Pick<Reflector<T>, 'name' | 'hasSynced' | 'waitForSync' | 'addHandler'>

/** The controller's own kind. */
export function watchSelf<T extends KubeObject>(reflector: Watched<T>, ...predicates: Predicate<T>[]): Source {
  return watchMapped(reflector, (object) => [keyOf(object)], ...predicates)
}

/** Objects that the controller's kind owns: by default as their controller. */
export function watchOwned<T extends KubeObject>(
  reflector: Watched<T>,
  owner: Omit<OwnerFilter, 'kind'> & { ownerKind: string },
  ...predicates: Predicate<T>[]
): Source {
  const filter: OwnerFilter = { ...owner, kind: owner.ownerKind }
  return watchMapped(reflector, (object) => ownerKeys(object, filter), ...predicates)
}

/**
 * Whatever else matters to the controller's objects. `map` says whom an object concerns. It is asked about the state before a change
 * too: an object that is no longer concerned must learn of that.
 */
export function watchMapped<T extends KubeObject>(
  reflector: Watched<T>,
  map: (object: T) => readonly ObjectKey[],
  ...predicates: Predicate<T>[]
): Source {
  return {
    name: reflector.name,
    get hasSynced() {
      return reflector.hasSynced
    },
    waitForSync: (signal) => reflector.waitForSync(signal),
    subscribe: (enqueue) =>
      reflector.addHandler((event: ObjectEvent<T>) => {
        if (!predicates.every((predicate) => predicate(event))) return
        const concerned = event.old === undefined ? map(event.object) : [...map(event.object), ...map(event.old)]
        // Once per event: a key that an idle worker takes at once would count as wanted again.
        for (const key of new Set(concerned.map(formatKey))) enqueue(parseKey(key))
      }),
  }
}
