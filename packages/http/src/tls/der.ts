/** The few forms of ASN.1 DER (X.690) that a certificate is made of. */

export const sequence = (...parts: Buffer[]): Buffer => element(0x30, Buffer.concat(parts))
export const set = (...parts: Buffer[]): Buffer => element(0x31, Buffer.concat(parts))
export const boolean = (value: boolean): Buffer => element(0x01, Buffer.of(value ? 0xff : 0))
export const octetString = (bytes: Buffer): Buffer => element(0x04, bytes)
export const utf8String = (text: string): Buffer => element(0x0c, Buffer.from(text, 'utf8'))

/** A buffer is taken as the two's complement bytes it is: its first bit must be 0. */
export function integer(value: number | Buffer): Buffer {
  if (Buffer.isBuffer(value)) return element(0x02, value)
  if (!Number.isInteger(value) || value < 0 || value > 0x7f) throw new RangeError(`small integers only, not ${value}`)
  return element(0x02, Buffer.of(value))
}

export function bitString(bytes: Buffer, unusedBits = 0): Buffer {
  return element(0x03, Buffer.concat([Buffer.of(unusedBits), bytes]))
}

/** A tagged element [n]; primitive when it replaces a plain string instead of wrapping another element. */
export function context(tag: number, content: Buffer, { primitive = false } = {}): Buffer {
  return element((primitive ? 0x80 : 0xa0) | tag, content)
}

export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  return element(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]))
}

/** RFC 5280 §4.1.2.5: UTCTime until 2049, GeneralizedTime from 2050 on; whole seconds, Zulu. */
export function derTime(date: Date): Buffer {
  const digits = date.toISOString().replace(/[-:T]|\.\d+/g, '')
  return date.getUTCFullYear() < 2050 ? element(0x17, Buffer.from(digits.slice(2))) : element(0x18, Buffer.from(digits))
}

function base128(value: number): number[] {
  const bytes = [value & 0x7f]
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) bytes.unshift((rest & 0x7f) | 0x80)
  return bytes
}

function element(tag: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.of(tag), lengthBytes(content.length), content])
}

function lengthBytes(length: number): Buffer {
  if (length < 0x80) return Buffer.of(length)
  const bytes = []
  for (let rest = length; rest > 0; rest >>>= 8) bytes.unshift(rest & 0xff)
  return Buffer.from([0x80 | bytes.length, ...bytes])
}
