import type { Clock, Timer } from '@thv/kernel/clock'
import type { Publication } from './publication.ts'

export interface PublicationGate {
  accept(publication: Publication): void
  /** Nothing passes until all sources have been tried, or for half a minute. */
  hold(): void
  close(): void
}

const HOLD_MS = 30_000
const MAX_HELD = 64

/** Between an engine that begins with an empty store, and readers who still see what the one before it had. */
export function createPublicationGate({ clock, pass }: { clock: Clock; pass: (publication: Publication) => void }): PublicationGate {
  let held: Publication[] | undefined
  let timer: Timer | undefined

  function open(): void {
    timer?.cancel()
    const waiting = held ?? []
    held = undefined
    for (const publication of waiting) pass(publication)
  }

  return {
    accept(publication) {
      if (!held) return pass(publication)
      held.push(publication)
      const complete =
        publication.kind === 'status' && publication.status.storeError === undefined && publication.status.unsynced.length === 0
      if (complete || held.length >= MAX_HELD) open()
    },
    hold() {
      held = []
      timer?.cancel()
      timer = clock.setTimer(HOLD_MS, open)
    },
    close: () => timer?.cancel(),
  }
}
