export interface BatchResult {
  readonly successes: number
  /** The first one; batches after the one that failed were not begun. */
  readonly error?: unknown
}

/** One call, then twice as many at a time: when all of them must fail, only a few do. */
export async function slowStart(count: number, call: (index: number) => Promise<void>, maxBatch = 64): Promise<BatchResult> {
  let successes = 0
  let next = 0
  for (let size = Math.min(1, count); size > 0; size = Math.min(2 * size, maxBatch, count - next)) {
    const batch = Array.from({ length: size }, (_, offset) => call(next + offset))
    next += size
    const failures = (await Promise.allSettled(batch)).filter((result) => result.status === 'rejected')
    successes += size - failures.length
    if (failures[0] !== undefined) return { successes, error: failures[0].reason }
  }
  return { successes }
}
