import { parseQuantity } from '../../values/quantity.ts'
import { type Library, RuleError } from './define.ts'

/** An exact decimal: `units` × 10^-9, the smallest step that Kubernetes keeps. */
class CelQuantity {
  readonly nanos: bigint

  constructor(nanos: bigint) {
    this.nanos = nanos
  }
}

const NANO = 1_000_000_000n

export const quantities: Library = {
  types: { 'kubernetes.Quantity': CelQuantity },
  functions: {
    'quantity(string): kubernetes.Quantity': (text: string) => {
      const parsed = quantityIn(text)
      if (!parsed) throw new RuleError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
      return parsed
    },
    'isQuantity(string): bool': (text: string) => quantityIn(text) !== undefined,
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

function quantityIn(text: string): CelQuantity | undefined {
  const parsed = parseQuantity(text)
  return 'problem' in parsed ? undefined : new CelQuantity(parsed.nanos)
}

function compare(a: bigint, b: bigint): bigint {
  return a < b ? -1n : a > b ? 1n : 0n
}
