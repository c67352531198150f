import { setTimeout as sleep } from 'node:timers/promises'
import type { LoadGenerator } from '../proxy/load-generator.ts'

const LIMIT_MS = 60_000

/** Repeats work in which a call failed, and says so: sessions in Redis are rejected until it is connected, and while it is too slow. */
export async function untilItWorks<T>(load: LoadGenerator, work: () => Promise<T>, log: (line: string) => void): Promise<T> {
  const deadline = performance.now() + LIMIT_MS
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (performance.now() > deadline) throw error
      log(`again: ${String(error).split('\n')[0]}`)
      await load.order({ order: 'close' }).catch(() => log('some sessions could not be closed'))
      await sleep(500)
    }
  }
}
