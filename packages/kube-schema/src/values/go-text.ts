import type { Json, JsonObject } from '../kind-schema.ts'

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

/** `%T`. */
export function goType(value: Json): string {
  if (Array.isArray(value)) return '[]interface {}'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'number') return Number.isInteger(value) ? 'int64' : 'float64'
  if (value === null) return '<nil>'
  return typeof value === 'object' ? 'map[string]interface {}' : typeof value
}

/** `%v`. */
export function goText(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(goText).join(' ')}]`
  if (typeof value !== 'object' || value === null) return value === null ? '<nil>' : String(value)
  return `map[${sortedMembers(value as JsonObject)
    .map(([name, member]) => `${name}:${goText(member)}`)
    .join(' ')}]`
}

/** `%#v`. */
export function goSyntax(value: Json): string {
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(', ')}}`
  if (typeof value !== 'object' || value === null) return value === null ? 'interface {}(nil)' : JSON.stringify(value)
  return `map[string]interface {}{${sortedMembers(value as JsonObject)
    .map(([name, member]) => `${JSON.stringify(name)}:${goSyntax(member)}`)
    .join(', ')}}`
}

/** As Go prints maps. */
export function sortedMembers(value: JsonObject): [string, Json][] {
  return Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
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
