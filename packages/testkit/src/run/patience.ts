/**
 * The least limit of a wait in a test. A limit is for something that never happens, not for a busy machine: a wait that comes true ends
 * at once, however long it was given.
 */
export const PATIENCE_MS = 60_000

/** Options of `vi.waitFor`, `vi.waitUntil` and `expect.poll`; a number is the limit alone. */
export type WaitOptions = number | { readonly timeout?: number | undefined; readonly interval?: number | undefined } | undefined

/** The same options, with a limit that a busy machine does not reach. */
export function patientOptions(options: WaitOptions): WaitOptions {
  if (typeof options === 'number') return Math.max(options, PATIENCE_MS)
  return { ...options, timeout: Math.max(options?.timeout ?? 0, PATIENCE_MS) }
}
