/** Digits `0.d₁d₂…` and the power of ten they are multiplied with. Zero has no digits. */
interface Decimal {
  readonly digits: string
  readonly point: number
}

/** `%e`: one digit, `precision` digits, and an exponent of at least two. Without precision: as many digits as are needed. */
export function exponentText(value: number, precision: number | undefined): string {
  const { digits, point } = precision === undefined ? shortest(value) : rounded(exact(value), precision + 1)
  const places = precision ?? Math.max(0, digits.length - 1)
  const padded = digits.padEnd(places + 1, '0')
  const exponent = digits === '' ? 0 : point - 1
  const fraction = places > 0 ? `.${padded.slice(1, places + 1)}` : ''
  return `${padded[0]}${fraction}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`
}

/** `%f`: `precision` digits after the point. */
export function fixedText(value: number, precision: number): string {
  const decimal = exact(value)
  const { digits, point } = rounded(decimal, decimal.point + precision)
  const whole = point > 0 ? digits.slice(0, point).padEnd(point, '0') : '0'
  if (precision === 0) return whole
  const fraction = point > 0 ? digits.slice(point) : '0'.repeat(Math.min(precision, -point)) + digits
  return `${whole}.${fraction.padEnd(precision, '0').slice(0, precision)}`
}

/** `%g`: `%e` for very large and very small numbers, `%f` otherwise, without zeros at the end. */
export function generalText(value: number, precision: number | undefined): string {
  const decimal = precision === undefined ? shortest(value) : rounded(exact(value), precision || 1)
  const digits = decimal.digits.replace(/0+$/, '')
  const { point } = decimal
  let limit = precision === undefined ? 6 : precision || 1
  if (precision !== undefined && limit > digits.length && digits.length >= point) limit = digits.length
  const exponent = digits === '' ? 0 : point - 1
  if (exponent < -4 || exponent >= limit) {
    const fraction = digits.length > 1 ? `.${digits.slice(1)}` : ''
    return `${digits[0] ?? '0'}${fraction}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`
  }
  if (digits === '') return '0'
  if (point <= 0) return `0.${'0'.repeat(-point)}${digits}`
  return digits.length <= point ? digits.padEnd(point, '0') : `${digits.slice(0, point)}.${digits.slice(point)}`
}

/** The fewest digits that give the same double. */
function shortest(value: number): Decimal {
  if (value === 0) return { digits: '', point: 0 }
  const [mantissa = '', exponent = '0'] = Math.abs(value).toExponential().split('e')
  return { digits: mantissa.replace('.', ''), point: Number(exponent) + 1 }
}

/** All digits of the double. */
function exact(value: number): Decimal {
  if (value === 0) return { digits: '', point: 0 }
  const bits = new DataView(new ArrayBuffer(8))
  bits.setFloat64(0, Math.abs(value))
  const raw = bits.getBigUint64(0)
  const exponentBits = Number(raw >> 52n)
  const mantissa = (raw & ((1n << 52n) - 1n)) | (exponentBits === 0 ? 0n : 1n << 52n)
  const shift = Math.max(exponentBits, 1) - 1075
  if (shift >= 0) {
    const digits = (mantissa << BigInt(shift)).toString()
    return { digits: digits.replace(/0+$/, ''), point: digits.length }
  }
  // m / 2^k is m × 5^k / 10^k
  const digits = (mantissa * 5n ** BigInt(-shift)).toString()
  return { digits: digits.replace(/0+$/, ''), point: digits.length + shift }
}

/** Keeps `count` digits; exactly half rounds to even. */
function rounded({ digits, point }: Decimal, count: number): Decimal {
  if (count < 0) return { digits: '', point: 0 }
  if (count >= digits.length) return { digits, point }
  const kept = digits.slice(0, count)
  const rest = digits.slice(count)
  const half = rest[0] === '5' && rest.length === 1
  const isUp = half ? Number(kept.at(-1) ?? '0') % 2 === 1 : (rest[0] ?? '0') >= '5'
  if (!isUp) return { digits: kept, point: kept === '' ? 0 : point }
  const next = (BigInt(kept === '' ? 0 : kept) + 1n).toString()
  return next.length > kept.length ? { digits: next, point: point + 1 } : { digits: next.padStart(kept.length, '0'), point }
}
