import { trimOws } from './header-names.ts'

const PREFIX = '=?base64?'
const SUFFIX = '?='
const PLAIN = /^[\t\x20-\x7e]*$/
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * A text as the value of `Mcp-Name` or `Mcp-Param-*`: as it is where HTTP would carry it unchanged, else as UTF-8 in base64
 * between markers. Also wrapped: what looks wrapped already, and the empty text, which some intermediaries drop with its header.
 */
export function encodeHeaderValue(text: string): string {
  return isPlain(text) ? text : `${PREFIX}${Buffer.from(text, 'utf8').toString('base64')}${SUFFIX}`
}

/** The text behind a header value. Undefined if it is malformed: bad base64, bad UTF-8, or characters that should have been wrapped. */
export function decodeHeaderValue(value: string): string | undefined {
  const trimmed = trimOws(value)
  if (!isWrapped(trimmed)) return PLAIN.test(trimmed) ? trimmed : undefined
  const base64 = trimmed.slice(PREFIX.length, -SUFFIX.length)
  const bytes = Buffer.from(base64, 'base64')
  if (bytes.toString('base64') !== base64) return undefined // Buffer skips what it does not know; only one spelling is right
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

function isPlain(text: string): boolean {
  if (text === '' || !PLAIN.test(text) || trimOws(text) !== text) return false
  return !(text.startsWith(PREFIX) && text.endsWith(SUFFIX))
}

/** Both markers, not overlapping; with only one of them the value is meant literally. */
function isWrapped(value: string): boolean {
  return value.length >= PREFIX.length + SUFFIX.length && value.startsWith(PREFIX) && value.endsWith(SUFFIX)
}
