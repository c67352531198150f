/** An exact quantity of Kubernetes and the family of suffixes that it was written in. */
export interface Quantity {
  /** Steps of 10^-9, the smallest that Kubernetes keeps. */
  readonly nanos: bigint
  readonly form: 'decimal' | 'binary' | 'exponent'
}

const NANO = 1_000_000_000n
const MILLI = 1_000_000n
const BINARY = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']
const DECIMAL = new Map([
  [-9, 'n'],
  [-6, 'u'],
  [-3, 'm'],
  [0, ''],
  [3, 'k'],
  [6, 'M'],
  [9, 'G'],
  [12, 'T'],
  [15, 'P'],
  [18, 'E'],
])
const POWERS = new Map([...DECIMAL].map(([power, suffix]) => [suffix, power]))
const LIMIT = (1n << 63n) - 1n

/** Why the text is none, in the server's words. */
export type QuantityProblem = { readonly problem: string }

const NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
const NO_SUFFIX = "unable to parse quantity's suffix"

export function parseQuantity(text: string): Quantity | QuantityProblem {
  const match = /^([+-]?)(\d*)(?:\.(\d*))?([eEinumkKMGTP]*[-+]?\d*)$/.exec(text)
  if (!match) return { problem: NO_QUANTITY }
  const [, sign, whole = '', fraction = '', suffix = ''] = match
  if (whole === '' && fraction === '') return { problem: NO_QUANTITY }
  const digits = BigInt(`${whole}${fraction}`)
  const exponent = /^[eE]([+-]?\d{1,3})$/.exec(suffix)?.[1]
  const binary = BINARY.indexOf(suffix)
  const power = exponent === undefined ? POWERS.get(suffix) : Number(exponent)
  if (binary <= 0 && power === undefined) return { problem: NO_SUFFIX }
  const base = digits * (binary > 0 ? 1n << BigInt(10 * binary) : 1n)
  const nanos = scaled(base, (binary > 0 ? 0 : (power ?? 0)) + 9 - fraction.length)
  const most = LIMIT * NANO
  const kept = nanos > most ? most : nanos
  return { nanos: sign === '-' ? -kept : kept, form: binary > 0 ? 'binary' : exponent === undefined ? 'decimal' : 'exponent' }
}

/** Numbers count as quantities too; undefined for anything that is none. */
export function readQuantity(value: unknown): Quantity | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined
  const parsed = parseQuantity(String(value))
  return 'problem' in parsed ? undefined : parsed
}

/** Of a value that was checked when it came in. */
export function quantityOf(value: unknown): Quantity {
  const parsed = parseQuantity(String(value ?? '0'))
  return 'problem' in parsed ? { nanos: 0n, form: 'decimal' } : parsed
}

/** Resources are counted in thousandths. */
export function roundedToMilli({ nanos, form }: Quantity): Quantity {
  return { nanos: dividedUp(nanos, MILLI) * MILLI, form }
}

/** As Kubernetes writes it: no fraction, and the largest suffix that leaves none. */
export function quantityText({ nanos, form }: Quantity): string {
  if (nanos === 0n) return '0'
  const large = nanos >= 1024n * NANO || nanos <= -1024n * NANO
  // A part of a byte cannot be written with these suffixes.
  if (form === 'binary' && large && nanos % NANO === 0n) {
    let value = nanos / NANO
    let step = 0
    for (; step < BINARY.length - 1 && value % 1024n === 0n; step++) value /= 1024n
    return `${value}${BINARY[step] ?? ''}`
  }
  let value = nanos
  let power = -9
  for (; value % 1000n === 0n && (form === 'exponent' || power < 18); power += 3) value /= 1000n
  if (form === 'exponent') return power === 0 ? String(value) : `${value}e${power}`
  return `${value}${DECIMAL.get(power) ?? ''}`
}

/** Away from zero. */
function dividedUp(value: bigint, by: bigint): bigint {
  if (value < 0n) return -dividedUp(-value, by)
  return (value + by - 1n) / by
}

function scaled(value: bigint, power: number): bigint {
  return power >= 0 ? value * 10n ** BigInt(power) : dividedUp(value, 10n ** BigInt(-power))
}
