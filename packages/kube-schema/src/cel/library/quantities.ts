import { type Library, RuleError } from './define.ts'

/** An exact decimal: `units` × 10^-9, the smallest step that Kubernetes keeps. */
export class CelQuantity {
  readonly nanos: bigint

  constructor(nanos: bigint) {
    this.nanos = nanos
  }
}

const NANO = 1_000_000_000n
const BINARY: Readonly<Record<string, bigint>> = {
  Ki: 1n << 10n,
  Mi: 1n << 20n,
  Gi: 1n << 30n,
  Ti: 1n << 40n,
  Pi: 1n << 50n,
  Ei: 1n << 60n,
}
const DECIMAL: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }

export const quantities: Library = {
  types: { 'kubernetes.Quantity': CelQuantity },
  functions: {
    'quantity(string): kubernetes.Quantity': (text: string) => {
      const parsed = parseQuantity(text)
      if (!parsed) throw new RuleError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
      return parsed
    },
    'isQuantity(string): bool': (text: string) => parseQuantity(text) !== undefined,
    'kubernetes.Quantity.isInteger(): bool': (it: CelQuantity) => it.nanos % NANO === 0n,
    'kubernetes.Quantity.asInteger(): int': (it: CelQuantity) => {
      if (it.nanos % NANO !== 0n) throw new RuleError('cannot convert value to integer')
      return it.nanos / NANO
    },
    'kubernetes.Quantity.asApproximateFloat(): double': (it: CelQuantity) => Number(it.nanos) / 1e9,
    'kubernetes.Quantity.sign(): int': (it: CelQuantity) => compare(it.nanos, 0n),
    'kubernetes.Quantity.add(kubernetes.Quantity): kubernetes.Quantity': (a: CelQuantity, b: CelQuantity) =>
      new CelQuantity(a.nanos + b.nanos),
    'kubernetes.Quantity.add(int): kubernetes.Quantity': (a: CelQuantity, b: bigint) => new CelQuantity(a.nanos + b * NANO),
    'kubernetes.Quantity.sub(kubernetes.Quantity): kubernetes.Quantity': (a: CelQuantity, b: CelQuantity) =>
      new CelQuantity(a.nanos - b.nanos),
    'kubernetes.Quantity.sub(int): kubernetes.Quantity': (a: CelQuantity, b: bigint) => new CelQuantity(a.nanos - b * NANO),
    'kubernetes.Quantity.isGreaterThan(kubernetes.Quantity): bool': (a: CelQuantity, b: CelQuantity) => a.nanos > b.nanos,
    'kubernetes.Quantity.isLessThan(kubernetes.Quantity): bool': (a: CelQuantity, b: CelQuantity) => a.nanos < b.nanos,
    'kubernetes.Quantity.compareTo(kubernetes.Quantity): int': (a: CelQuantity, b: CelQuantity) => compare(a.nanos, b.nanos),
  },
}

export function parseQuantity(text: string): CelQuantity | undefined {
  const match = /^([+-]?)(\d*)(?:\.(\d*))?(?:([KMGTPE]i)|([numkMGTPE]?)|[eE]([+-]?\d{1,3}))$/.exec(text)
  if (!match) return undefined
  const [, sign, whole = '', fraction = '', binary, decimal = '', exponent] = match
  if (whole === '' && fraction === '') return undefined
  const digits = BigInt(`${whole}${fraction}` || '0')
  const power = binary ? 0 : exponent ? Number(exponent) : (DECIMAL[decimal] ?? 0)
  const scaled = scale(digits * (binary ? (BINARY[binary] ?? 1n) : 1n), power + 9 - fraction.length)
  return new CelQuantity(sign === '-' ? -scaled : scaled)
}

/** Rounds away from zero, as Kubernetes does below its smallest step. */
function scale(value: bigint, power: number): bigint {
  if (power >= 0) return value * 10n ** BigInt(power)
  const divisor = 10n ** BigInt(-power)
  return (value + divisor - 1n) / divisor
}

function compare(a: bigint, b: bigint): bigint {
  return a < b ? -1n : a > b ? 1n : 0n
}
