import type { FetchPlace } from '@thv/catalog/sources/fetch/fetch-address'
import type { Clock } from '@thv/kernel/clock'
import { abortable } from '@thv/kernel/deadline'

/** Places for those that sync at the same time. A source that does not answer loses its own after a while, and gets one again when it does. */
export interface Places {
  /** How many may begin now. Those that come back go first. */
  readonly free: number
  open(): SyncPlace
}

export interface SyncPlace extends FetchPlace {
  /** To be called in any case. */
  end(): void
}

export interface PlacesOptions {
  readonly clock: Clock
  /** May change. */
  readonly bound: () => number
  readonly onFree: () => void
}

/** A source that answers has done so by then, nearly always. */
const PATIENCE_MS = 2_000
/** So many are without a place at most; each has a connection, and holds no more than a few megabytes. The others keep theirs. */
const MAX_AWAY = 64

export function createPlaces({ clock, bound, onFree }: PlacesOptions): Places {
  let taken = 0
  let away = 0
  const waiting = new Set<() => void>()

  function passOn(): void {
    for (const enter of waiting) {
      if (taken >= bound()) return
      waiting.delete(enter)
      taken++
      enter()
    }
    if (taken < bound()) onFree()
  }

  function open(): SyncPlace {
    taken++
    let state: 'here' | 'away' | 'ended' = 'here'
    let patience: { cancel(): void } | undefined
    let returning: { readonly enter: () => void; readonly here: Promise<void> } | undefined

    function lose(): void {
      patience = away < MAX_AWAY ? undefined : clock.setTimer(PATIENCE_MS, lose)
      if (patience) return
      state = 'away'
      away++
      taken--
      passOn()
    }

    async function comeBack(signal: AbortSignal): Promise<void> {
      const { promise: here, resolve } = Promise.withResolvers<void>()
      const enter = () => {
        away--
        state = 'here'
        returning = undefined
        resolve()
      }
      returning = { enter, here }
      waiting.add(enter)
      passOn()
      await abortable(here, signal)
    }

    return {
      leave() {
        if (state === 'here') patience ??= clock.setTimer(PATIENCE_MS, lose)
      },
      async take(signal) {
        patience?.cancel()
        patience = undefined
        if (returning) await abortable(returning.here, signal)
        else if (state === 'away') await comeBack(signal)
      },
      end() {
        patience?.cancel()
        if (returning) waiting.delete(returning.enter)
        returning = undefined
        if (state === 'here') taken--
        if (state === 'away') away--
        state = 'ended'
        passOn()
      },
    }
  }

  return {
    get free() {
      return Math.max(0, bound() - taken - waiting.size)
    },
    open,
  }
}
