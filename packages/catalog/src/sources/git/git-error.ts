import { ThvError } from '@thv/kernel/errors'

/** The repository or its server is not what it should be. */
export function failed(message: string, cause?: unknown): ThvError {
  return new ThvError('source_failed', message, cause === undefined ? {} : { cause })
}

/** More, larger, deeper or slower than the limits allow. */
export function overLimit(message: string): ThvError {
  return new ThvError('source_limit', message)
}

/** Words of a stranger, for a message: one short line without control characters. */
export function serverWords(bytes: Buffer): string {
  const text = bytes.subarray(0, 600).toString('utf8')
  // Also what only looks like words of our own in a terminal: line separators and direction marks.
  const line = text.replace(/[\p{C}\p{Zl}\p{Zp}\s]+/gu, ' ').trim()
  return line.length > 200 ? `${line.slice(0, 200)}…` : line
}
