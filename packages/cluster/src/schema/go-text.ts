import type { Json } from '../apiserver/kind-schema.ts'

/* The real server is written in Go; its messages show values the way Go prints them. */

/** `strconv.Quote`. */
export function goQuote(text: string): string {
  let out = '"'
  for (const char of text) out += NAMED_ESCAPES[char] ?? escapedIfUnprintable(char)
  return `${out}"`
}

/** `json.Marshal`: keys sorted, and `<`, `>`, `&` escaped. */
export function goJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(goJson).join(',')}]`
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
    return `{${members.map(([name, member]) => `${jsonText(name)}:${goJson(member)}`).join(',')}}`
  }
  return typeof value === 'string' ? jsonText(value) : JSON.stringify(value)
}

/** `%v` of a number. */
export function goNumber(value: number): string {
  const text = String(value)
  if (!Number.isInteger(value) && Math.abs(value) < 1e-4 && !text.includes('e')) return withTwoDigitExponent(value.toExponential())
  return text.includes('e') ? withTwoDigitExponent(text) : text
}

function withTwoDigitExponent(text: string): string {
  return text.replace(/e([+-])(\d)$/, 'e$10$2')
}

function jsonText(text: string): string {
  return JSON.stringify(text).replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

const NAMED_ESCAPES: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
}

function escapedIfUnprintable(char: string): string {
  const code = char.codePointAt(0) ?? 0
  if (code < 0x20 || code === 0x7f) return `\\x${code.toString(16).padStart(2, '0')}`
  if (code < 0x7f || !/[\p{C}\p{Z}]/u.test(char)) return char
  return code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
}
