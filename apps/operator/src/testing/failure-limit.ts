/** Each of the dozen objects of a resource is marked, changed and gone, and each of that wakes the resource. */
const WAKES = 12 * 3
/** The controllers wait 100 ms after a first failure, of which half may be left out, and twice as long after each that follows. */
const FIRST_RETRY_MS = 50

/** Most failed reconciles of so many resources in a namespace that goes within that time: more of them are a storm. */
export function failureLimit(resources: number, withinMs: number): number {
  return resources * (WAKES + 1 + Math.ceil(Math.log2(1 + withinMs / FIRST_RETRY_MS)))
}
