/**
 * Seconds of a `Retry-After` header (RFC 9110 §10.2.3: delay-seconds or an HTTP date), never negative. Undefined when the header
 * is absent or makes no sense; a date that has passed means now.
 */
export function parseRetryAfter(value: string | string[] | undefined, nowMs: number): number | undefined {
  const text = (Array.isArray(value) ? value[0] : value)?.trim()
  if (text === undefined || text === '') return undefined
  if (/^\d+$/.test(text)) {
    const seconds = Number(text)
    return Number.isSafeInteger(seconds) ? seconds : undefined
  }
  // Date.parse takes "-5" or "1.5" for dates too; an HTTP date begins with the name of a day.
  const at = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - nowMs) / 1000))
}
