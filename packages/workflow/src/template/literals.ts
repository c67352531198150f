import { TemplateError } from './template-error.ts'

/** A number of Go's syntax as a double. Complex numbers and integers that a double cannot hold are refused. */
export function numberLiteral(text: string, at: number): number {
  const value = numberOf(text)
  if (value === undefined || !Number.isFinite(value)) throw new TemplateError('syntax', `bad number ${JSON.stringify(text)}`, at)
  if (Number.isInteger(value) && !Number.isSafeInteger(value) && !/[.eEpP]/.test(text)) {
    throw new TemplateError('syntax', `the number ${text} is too large`, at)
  }
  return value
}

const DIGITS = '[0-9](?:_?[0-9])*'
const DECIMAL = new RegExp(`^(?:${DIGITS}(?:\\.(?:${DIGITS})?)?|\\.${DIGITS})(?:[eE][+-]?${DIGITS})?$`)
const HEX_FLOAT = /^0[xX]_?([0-9a-fA-F](?:_?[0-9a-fA-F])*)?(?:\.([0-9a-fA-F](?:_?[0-9a-fA-F])*)?)?[pP]([+-]?[0-9](?:_?[0-9])*)$/
const BASED = /^0(?:[xX](?:_?[0-9a-fA-F])+|[oO](?:_?[0-7])+|[bB](?:_?[01])+)$/
/** A leading zero means octal to an integer. */
const OCTAL = /^0(?:_?[0-7])+$/
const LEADING_ZERO = /^0[0-9_]+$/

function numberOf(text: string): number | undefined {
  const sign = text.startsWith('-') ? -1 : 1
  const body = text.replace(/^[+-]/, '')
  const plain = body.replaceAll('_', '')
  if (BASED.test(body)) return sign * Number(plain.toLowerCase())
  const hex = HEX_FLOAT.exec(body)
  if (hex) return hex[1] === undefined && hex[2] === undefined ? undefined : sign * hexFloat(hex[1] ?? '', hex[2] ?? '', hex[3] ?? '0')
  if (OCTAL.test(body)) return sign * Number.parseInt(plain, 8)
  return DECIMAL.test(body) && !LEADING_ZERO.test(body) ? sign * Number(plain) : undefined
}

function hexFloat(whole: string, fraction: string, exponent: string): number {
  const digits = `${whole}${fraction}`.replaceAll('_', '')
  return Number(`0x${digits || '0'}`) * 2 ** (Number(exponent.replaceAll('_', '')) - 4 * fraction.replaceAll('_', '').length)
}

const SIMPLE: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
}
const ESCAPE = /\\(?:([abfnrtv\\'"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|[\s\S])/g

/** The text of a literal with its quotes. */
export function stringLiteral(literal: string, at: number): string {
  if (literal.startsWith('`')) return literal.slice(1, -1).replaceAll('\r', '')
  return unescaped(literal.slice(1, -1), '"', at)
}

/** A character constant is the number of its code point. */
export function runeLiteral(literal: string, at: number): number {
  const text = unescaped(literal.slice(1, -1), "'", at)
  const point = text.codePointAt(0)
  if (point === undefined || String.fromCodePoint(point) !== text) throw bad(literal, at)
  return point
}

/** Escapes of bytes (`\xff`) are joined as UTF-8, as Go does it. */
function unescaped(body: string, quote: string, at: number): string {
  if (!body.includes('\\')) return body
  const parts: Buffer[] = []
  let last = 0
  for (const found of body.matchAll(ESCAPE)) {
    const [whole, simple, byte, short, long, octal] = found
    parts.push(Buffer.from(body.slice(last, found.index)))
    last = found.index + whole.length
    if (simple !== undefined && simple !== '"' && simple !== "'") parts.push(Buffer.from(SIMPLE[simple] ?? ''))
    else if (simple === quote) parts.push(Buffer.from(quote))
    else if (byte !== undefined) parts.push(Buffer.from([Number.parseInt(byte, 16)]))
    else if (octal !== undefined && Number.parseInt(octal, 8) < 256) parts.push(Buffer.from([Number.parseInt(octal, 8)]))
    else parts.push(Buffer.from(codePoint(short ?? long ?? '', whole, at)))
  }
  parts.push(Buffer.from(body.slice(last)))
  return Buffer.concat(parts).toString()
}

function codePoint(hex: string, literal: string, at: number): string {
  const point = hex === '' ? Number.NaN : Number.parseInt(hex, 16)
  if (!(point <= 0x10ffff) || (point >= 0xd800 && point <= 0xdfff)) throw bad(literal, at)
  return String.fromCodePoint(point)
}

function bad(literal: string, at: number): TemplateError {
  return new TemplateError('syntax', `bad literal ${literal}`, at)
}
