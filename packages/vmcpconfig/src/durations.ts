import { tryParseDuration } from '@thv/kernel/duration'
import { type TextRules, text } from '@thv/runconfig/value-readers'

const POSITIVE: TextRules = {
  like: { test: (value) => (tryParseDuration(value) ?? 0) > 0, words: 'a duration above zero, such as 30s' },
}

/** A duration above zero, kept as text. */
export const duration = text(POSITIVE)

/** Milliseconds of a duration that the reader has accepted. */
export function durationMs(value: string): number {
  return tryParseDuration(value) ?? 0
}
