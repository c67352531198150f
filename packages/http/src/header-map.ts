/** Names in lower case; a header that came more than once is an array or joined by ", ", as the parser chose. */
export type HeaderMap = Readonly<Record<string, string | string[] | undefined>>

/** As HeaderMap, to be edited before it is sent on. */
export type MutableHeaderMap = Record<string, string | string[] | undefined>

/** Headers that end at each connection (RFC 9110 §7.6.1); what `Connection` names joins them. */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const FORBIDDEN_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]/

/** A token of RFC 9110 §5.6.2: a header name, or a method. */
export function isToken(text: string): boolean {
  return TOKEN.test(text)
}

/** A line break in a value would begin a header of its own; spaces at the ends would be lost. */
export function isHeaderValue(text: string): boolean {
  return !FORBIDDEN_IN_VALUE.test(text) && text.trim() === text
}

/** The headers that `Connection` declares to be of this connection only; undefined for the usual values, which name none. */
export function connectionTokens(value: string | string[] | undefined): ReadonlySet<string> | undefined {
  if (value === undefined || value === 'keep-alive' || value === 'close') return undefined
  const text = typeof value === 'string' ? value : value.join(',')
  return new Set(text.split(',').map((token) => token.trim().toLowerCase()))
}

/** How often a header came, whatever the parser made of it. `name` in lower case. */
export function countHeader(rawHeaders: readonly string[], name: string): number {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const candidate = rawHeaders[i]
    if (candidate !== undefined && candidate.length === name.length && candidate.toLowerCase() === name) count++
  }
  return count
}

/** Flat name-value pairs as one map: the values of a repeated name are joined by ", ", those of set-cookie kept apart. */
export function combineRawHeaders(rawHeaders: readonly string[]): MutableHeaderMap {
  const map: MutableHeaderMap = Object.create(null)
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? '').toLowerCase()
    const value = rawHeaders[i + 1] ?? ''
    const before = map[name]
    if (name === 'set-cookie') map[name] = before === undefined ? [value] : [...(before as string[]), value]
    else map[name] = before === undefined ? value : `${before}, ${value}`
  }
  return map
}

/** The first value, for headers that must be one. */
export function headerText(value: string | string[] | undefined): string | undefined {
  return typeof value === 'object' ? value[0] : value
}
