import type { Clock } from '@thv/kernel/clock'

export interface Waker {
  /** Ends the wait that is under way, or else the next one. */
  wake(): void
  /** Until woken, for so long at most. Also ends when the signal aborts; never rejects. */
  wait(ms: number, signal: AbortSignal): Promise<void>
}

/** For one waiter. */
export function createWaker(clock: Clock): Waker {
  let woken = false
  let end: (() => void) | undefined
  return {
    wake() {
      woken = true
      end?.()
    },
    async wait(ms, signal) {
      if (!woken && !signal.aborted) {
        const { promise, resolve } = Promise.withResolvers<void>()
        const stop = () => resolve()
        end = stop
        const timer = clock.setTimer(ms, stop)
        signal.addEventListener('abort', stop, { once: true })
        await promise
        timer.cancel()
        signal.removeEventListener('abort', stop)
        end = undefined
      }
      woken = false
    },
  }
}

/** Whether it ended in time; what comes of it later is not looked at. */
export async function endsWithin(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  const over = new AbortController()
  const late = clock.sleep(ms, over.signal).then(
    () => false,
    () => true,
  )
  try {
    return await Promise.race([work.then(() => true), late])
  } finally {
    over.abort()
  }
}
