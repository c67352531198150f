import { setTimeout as sleep } from 'node:timers/promises'
import { PATIENCE_MS } from '@thv/testkit/run/patience'

/** Looks again and again. The limit is for a machine that is very busy. */
export async function until<T>(look: () => T | undefined | false | Promise<T | undefined | false>, limitMs = PATIENCE_MS): Promise<T> {
  const deadline = performance.now() + limitMs
  for (;;) {
    const found = await look()
    if (found) return found
    if (performance.now() > deadline) throw new Error(`it did not happen: ${look}`)
    await sleep(5)
  }
}
