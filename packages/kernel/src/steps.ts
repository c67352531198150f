/** Long work cut into pieces: it yields wherever others may run. The pieces are bounded by work, not by a clock. */
export type Steps<T> = Generator<void, T, void>

export interface TurnOptions {
  /** Lets the event loop turn, for example by `setImmediate`. */
  readonly pause: () => Promise<void>
  readonly signal?: AbortSignal | undefined
}

export function runAtOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

/** Rejects with the signal's reason when it aborts between two pieces. */
export async function runInTurns<T>(steps: Steps<T>, options: TurnOptions): Promise<T> {
  for (;;) {
    options.signal?.throwIfAborted()
    const step = steps.next()
    if (step.done) return step.value
    await options.pause()
  }
}

const CHUNK = 512
const MERGED_PER_STEP = 4096

/** A stable merge sort; `items` stays as it is. */
export function* sortInSteps<T>(items: readonly T[], compare: (a: T, b: T) => number): Steps<T[]> {
  if (items.length <= CHUNK) return items.toSorted(compare)
  let runs: T[][] = []
  for (let i = 0; i < items.length; i += CHUNK) {
    runs.push(items.slice(i, i + CHUNK).sort(compare))
    yield
  }
  let done = 0
  while (runs.length > 1) {
    const merged: T[][] = []
    for (let i = 0; i < runs.length; i += 2) {
      const left = runs[i] ?? []
      const right = runs[i + 1]
      merged.push(right === undefined ? left : yield* merge(left, right, compare))
      done += left.length
      // Many short merges are as long as one long one.
      if (done >= MERGED_PER_STEP) {
        done = 0
        yield
      }
    }
    runs = merged
  }
  return runs[0] ?? []
}

function* merge<T>(left: readonly T[], right: readonly T[], compare: (a: T, b: T) => number): Steps<T[]> {
  const out: T[] = []
  let l = 0
  let r = 0
  while (l < left.length || r < right.length) {
    const takeLeft = r >= right.length || (l < left.length && compare(left[l] as T, right[r] as T) <= 0)
    out.push((takeLeft ? left[l++] : right[r++]) as T)
    if (out.length % MERGED_PER_STEP === 0) yield
  }
  return out
}
