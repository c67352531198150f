import type { Clock, Timer } from '@thv/kernel/clock'
import { type Publication, targetKey } from './publication.ts'

export interface PublicationGate {
  accept(publication: Publication): void
  /** Nothing passes until all sources have been tried, or for half a minute. */
  hold(): void
  close(): void
}

const HOLD_MS = 30_000
const MAX_HELD = 256

/** Between an engine that begins with an empty store, and readers who still see what the one before it had. */
export function createPublicationGate({ clock, pass }: { clock: Clock; pass: (publication: Publication) => void }): PublicationGate {
  /** The newest of each kind, and of views for each reader: many sources have much to tell until all were tried. */
  let held: Map<string, Publication> | undefined
  let timer: Timer | undefined

  function open(): void {
    timer?.cancel()
    const waiting = held
    held = undefined
    for (const publication of waiting?.values() ?? []) pass(publication)
  }

  return {
    accept(publication) {
      if (!held) return pass(publication)
      const key = keyOf(publication)
      const before = held.get(key)
      // In the order in which they came; but which registries there are comes before what they serve.
      if (publication.kind !== 'layout') held.delete(key)
      held.set(key, withIndex(publication, before))
      const complete =
        publication.kind === 'status' && publication.status.storeError === undefined && publication.status.unsynced.length === 0
      if (complete || held.size >= MAX_HELD) open()
    },
    hold() {
      held = new Map()
      timer?.cancel()
      timer = clock.setTimer(HOLD_MS, open)
    },
    close: () => timer?.cancel(),
  }
}

/** A search that is the same as one that waits here takes its place. */
function withIndex(publication: Publication, before: Publication | undefined): Publication {
  if (publication.kind !== 'search' || publication.index || before?.kind !== 'search') return publication
  return { ...publication, index: before.index, sameAs: before.index ? undefined : before.sameAs }
}

function keyOf(publication: Publication): string {
  const targets = 'targets' in publication ? publication.targets.map(targetKey) : []
  return JSON.stringify([publication.kind, ...targets])
}
