import { parseDuration } from '@thv/kernel/duration'

/** The next step that a reconciler asks for. A thrown error means the same as `retry`, and is reported. */
export type Outcome =
  /** As it should be; nothing to do until something changes. */
  | { readonly kind: 'done' }
  /** Nothing wrong, but look again after this time at the latest. */
  | { readonly kind: 'requeueAfter'; readonly ms: number }
  /** Not there yet for a reason that was expected; try again with the queue's back-off. */
  | { readonly kind: 'retry'; readonly reason: string }

export const done: Outcome = Object.freeze({ kind: 'done' })

/** Milliseconds, or a duration such as `15s`. */
export function requeueAfter(delay: number | string): Outcome {
  const ms = typeof delay === 'string' ? parseDuration(delay) : delay
  if (!(ms >= 0 && ms < Number.POSITIVE_INFINITY)) throw new RangeError(`requeueAfter needs a delay of 0 or more, not ${delay}`)
  return { kind: 'requeueAfter', ms }
}

export function retry(reason: string): Outcome {
  return { kind: 'retry', reason }
}
