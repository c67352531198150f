import { celEqual } from './cel-equality.ts'
import { type Library, RuleError } from './define.ts'

type Sortable = bigint | number | string | boolean

/** The namespace of `sets.contains` and its like. */
class CelSets {}

export const lists: Library = {
  types: { 'kubernetes.Sets': CelSets },
  constants: { sets: ['kubernetes.Sets', new CelSets()] },
  functions: {
    'list.isSorted(): bool': (list: Sortable[]) => list.every((item, index) => index === 0 || (list[index - 1] as Sortable) <= item),
    'list.sum(): dyn': (list: (bigint | number)[]) =>
      list.every((item) => typeof item === 'bigint')
        ? list.reduce((sum, item) => sum + item, 0n)
        : list.map(Number).reduce((sum, item) => sum + item, 0),
    'list.min(): dyn': (list: Sortable[]) => extreme(list, 'min', (a, b) => a < b),
    'list.max(): dyn': (list: Sortable[]) => extreme(list, 'max', (a, b) => a > b),
    'list.indexOf(dyn): int': (list: unknown[], value: unknown) => BigInt(list.findIndex((item) => celEqual(item, value))),
    'list.lastIndexOf(dyn): int': (list: unknown[], value: unknown) => BigInt(list.findLastIndex((item) => celEqual(item, value))),
    'list.distinct(): list<dyn>': (list: unknown[]) =>
      list.filter((item, index) => list.findIndex((other) => celEqual(other, item)) === index),
    'list.reverse(): list<dyn>': (list: unknown[]) => list.toReversed(),
    'list.slice(int, int): list<dyn>': (list: unknown[], from: bigint, to: bigint) => {
      if (from < 0n || to > BigInt(list.length) || from > to)
        throw new RuleError(`cannot slice(${from}, ${to}), list is length ${list.length}`)
      return list.slice(Number(from), Number(to))
    },
    'list.sort(): list<dyn>': (list: Sortable[]) => list.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0)),
    'list.flatten(): list<dyn>': (list: unknown[]) => list.flat(1),
    'list.first(): dyn': (list: unknown[]) => list[0] ?? null,
    'list.last(): dyn': (list: unknown[]) => list.at(-1) ?? null,
    'kubernetes.Sets.contains(list, list): bool': (_sets: CelSets, list: unknown[], part: unknown[]) =>
      part.every((item) => has(list, item)),
    'kubernetes.Sets.equivalent(list, list): bool': (_sets: CelSets, a: unknown[], b: unknown[]) =>
      a.every((item) => has(b, item)) && b.every((item) => has(a, item)),
    'kubernetes.Sets.intersects(list, list): bool': (_sets: CelSets, a: unknown[], b: unknown[]) => a.some((item) => has(b, item)),
  },
}

function extreme(list: Sortable[], name: string, better: (a: Sortable, b: Sortable) => boolean): Sortable {
  const [first, ...rest] = list
  if (first === undefined) throw new RuleError(`${name} called on empty list`)
  return rest.reduce((best, item) => (better(item, best) ? item : best), first)
}

function has(list: readonly unknown[], value: unknown): boolean {
  return list.some((item) => celEqual(item, value))
}
