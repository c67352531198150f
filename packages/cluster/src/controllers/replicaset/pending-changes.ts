import type { Clock } from '@thv/kernel/clock'
import { compareResourceVersions, type Pod, type Reflector } from '@thv/kube'

/** A change that is not seen after this long is not waited for any longer: a set that does nothing is worse than one that does too much. */
const GIVE_UP_MS = 5 * 60_000

interface Change {
  readonly pod: Pod
  readonly kind: 'created' | 'deleted'
  readonly at: number
}

export interface PendingChanges {
  created(owner: string, pod: Pod): void
  deleted(owner: string, pod: Pod): void
  /** Whether the cache shows all that was done to the owner's pods. Counting them before that would do it again. */
  settled(owner: string): boolean
  forget(owner: string): void
}

/** Creations and deletions of pods that the cache may not know yet. Bounded by what one owner may do at a time. */
export function createPendingChanges(pods: Pick<Reflector<Pod>, 'store' | 'stats'>, clock: Clock): PendingChanges {
  const changes = new Map<string, Change[]>()

  function note(owner: string, kind: Change['kind'], pod: Pod): void {
    const list = changes.get(owner) ?? []
    list.push({ pod, kind, at: clock.monotonic() })
    changes.set(owner, list)
  }

  function isSeen({ pod, kind, at }: Change): boolean {
    if (clock.monotonic() - at > GIVE_UP_MS) return true
    const cached = pods.store.get(pod.metadata)
    const same = cached !== undefined && cached.metadata.uid === pod.metadata.uid
    if (kind === 'deleted') return !same || cached.metadata.deletionTimestamp !== undefined
    // It may have come and gone: then the cache is past it.
    return same || (compareResourceVersions(pods.stats.resourceVersion, pod.metadata.resourceVersion) ?? -1) >= 0
  }

  return {
    created: (owner, pod) => note(owner, 'created', pod),
    deleted: (owner, pod) => note(owner, 'deleted', pod),
    settled(owner) {
      const open = (changes.get(owner) ?? []).filter((change) => !isSeen(change))
      if (open.length > 0) changes.set(owner, open)
      else changes.delete(owner)
      return open.length === 0
    },
    forget: (owner) => changes.delete(owner),
  }
}
