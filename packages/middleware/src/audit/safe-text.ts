import { scrub } from '@thv/telemetry/redact'

const MAX_TEXTS = 1_000

/**
 * Text of clients and backends as an event may hold it: bounded, well-formed, without what looks like a credential. The same few texts
 * come again and again, so the last results are kept.
 */
export function createSafeText(maxLength: number): (text: string) => string {
  let known = new Map<string, string>()
  return (text) => {
    const found = known.get(text)
    if (found !== undefined) return found
    const safe = scrub(text.slice(0, maxLength))
    if (text.length > maxLength) return safe // not worth the memory
    if (known.size >= MAX_TEXTS) known = new Map()
    known.set(text, safe)
    return safe
  }
}
