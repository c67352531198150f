/** Length in code points, as JSON Schema counts; exact only up to a little above `enough`. */
export function lengthOf(text: string, enough: number): number {
  if (text.length > enough * 2) return enough + 1
  let count = 0
  for (const _ of text) count += 1
  return count
}

/** The first `max` code points at most, cut where a word ends and marked with an ellipsis. */
export function cutAtWord(text: string, max: number): string {
  if (lengthOf(text, max) <= max) return text
  const points: string[] = []
  for (const point of text) {
    points.push(point)
    if (points.length === max) break
  }
  const next = points.pop() ?? '' // its place is the ellipsis's
  const room = points.join('')
  const boundary = /\s/u.test(next) ? room : room.replace(/\s+\S*$/u, '')
  // A first word longer than half the room is cut inside: better than a description of two letters.
  const stem = (boundary.length * 2 >= room.length ? boundary : room).trimEnd().replace(/[,;:.–-]+$/u, '')
  return `${stem === '' ? room : stem}…`
}

/** RFC 3986, absolute, ASCII. */
export function uriProblem(text: string): string | undefined {
  const wellFormed = /^[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+$/.test(text)
  return wellFormed && URL.canParse(text) ? undefined : 'must be an absolute URI'
}

/** For addresses that people follow: a browser would run a `javascript:` one. */
export function webUrlProblem(text: string): string | undefined {
  return uriProblem(text) ?? (/^https?:\/\//i.test(text) ? undefined : 'must be an http or https URL')
}

/** Control characters act on terminals; bidirectional ones show a text in another order than it has (Unicode Technical Report 36). */
export function unseenProblem(text: string): string | undefined {
  const unseen = /[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/u
  return unseen.test(text) ? 'must not contain control or bidirectional characters' : undefined
}

/** RFC 3339 date-time, and a day and time that exist. */
export function timestampProblem(text: string): string | undefined {
  const parts = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(?:[Zz]|[+-](\d\d):(\d\d))$/.exec(text)
  if (parts === null) return 'must be an RFC 3339 timestamp'
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, offsetHour = 0, offsetMinute = 0] = parts
    .slice(1)
    .map((part) => Number(part ?? 0))
  const daysInMonth = new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate()
  const exists = month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth && hour < 24 && minute < 60 && second < 60
  return exists && offsetHour < 24 && offsetMinute < 60 ? undefined : 'must be an RFC 3339 timestamp of a time that exists'
}

/** By code point; `<` on strings would compare UTF-16 units, which places astral characters wrongly. */
export function compareCodePoints(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length)
  for (let i = 0; i < shorter; i += 1) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(i)
    if (x !== y) return surrogateLast(x) - surrogateLast(y)
  }
  return a.length - b.length
}

/** Moves surrogates above every other unit: then the order of units is the order of code points. */
function surrogateLast(unit: number): number {
  if (unit < 0xd800) return unit
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800
}
