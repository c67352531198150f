/** A moment of RFC 3339 without loss: some writers give nanoseconds, and "strictly newer" has to see them. */
export interface Instant {
  /** Epoch milliseconds, rounded down. */
  readonly ms: number
  /** The rest, in nanoseconds: 0..999999. */
  readonly ns: number
}

const RFC_3339 = /^(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}):(\d{2})(?:\.(\d{1,32}))?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/

const MAX_REMEMBERED = 256

/** For many texts of which few are different, as the entries of one write have them. */
export function createInstantParser(): (text: string) => Instant | undefined {
  const known = new Map<string, Instant | undefined>()
  return (text) => {
    const found = known.get(text)
    if (found !== undefined) return found
    if (known.size >= MAX_REMEMBERED) known.clear()
    const instant = parseInstant(text)
    known.set(text, instant)
    return instant
  }
}

export function parseInstant(text: string): Instant | undefined {
  const found = RFC_3339.exec(text)
  if (!found) return undefined
  const [, day, minute, second = '', fraction = '', sign, offsetHours = '0', offsetMinutes = '0'] = found
  const leap = second === '60'
  const plain = `${day}T${minute}:${leap ? '59' : second}`
  const base = Date.parse(`${plain}Z`)
  // A day such as 30 February is moved on instead of refused: what comes back must be what was given.
  if (Number.isNaN(base) || new Date(base).toISOString().slice(0, 19) !== plain) return undefined
  if (Number(offsetHours) > 23 || Number(offsetMinutes) > 59) return undefined
  const offset = (Number(offsetHours) * 60 + Number(offsetMinutes)) * 60_000 * (sign === '-' ? -1 : 1)
  const digits = fraction.slice(0, 9).padEnd(9, '0')
  return { ms: base + (leap ? 1000 : 0) - offset + Number(digits.slice(0, 3)), ns: Number(digits.slice(3)) }
}
