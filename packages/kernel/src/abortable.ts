/**
 * Resolves to the result of the work, or rejects with the signal's reason as soon as it aborts; the work then goes on alone. Leaves no listener behind: one on a
 * signal made of others would keep that signal, and everything it can reach, for as long as one of those lives.
 */
export async function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(signal.reason)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
