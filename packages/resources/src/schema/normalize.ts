import { jsonEqual } from '@thv/kernel/json'

/*
 * Several spellings of one resource are accepted at the edge. `normalise` of a kind turns each into one canonical shape, so that
 * nothing else in the system knows the old spellings. It is pure, never throws on what the API server may have stored, and
 * normalising a canonical object again changes nothing.
 */

/** Something that the schema cannot refuse but that makes the resource unusable as written. Shown as a condition. */
export interface Problem {
  /** Path of the field, such as `spec.groupRef`. */
  field: string
  code: 'conflicting_spellings' | 'wrong_type' | 'missing' | 'forbidden' | 'duplicate'
  message: string
}

export interface Normalised<Canonical> {
  spec: Canonical
  problems: readonly Problem[]
}

/** Collects problems while a spec is normalised. */
export interface ProblemList {
  readonly all: Problem[]
  add(field: string, code: Problem['code'], message: string): void
}

export function problemList(): ProblemList {
  const all: Problem[] = []
  return { all, add: (field, code, message) => void all.push({ field, code, message }) }
}

/** One value out of its spellings in order of precedence: the first that is set wins, one that differs is a problem. */
export function unify<T>(problems: ProblemList, spellings: Readonly<Record<string, T | undefined>>): T | undefined {
  const given = Object.entries(spellings).filter((entry): entry is [string, T] => entry[1] !== undefined && entry[1] !== null)
  const [first, ...others] = given
  if (!first) return undefined
  for (const [field, value] of others) {
    if (!jsonEqual(value, first[1])) {
      problems.add(
        first[0],
        'conflicting_spellings',
        `${first[0]} and ${field} are two spellings of one field and differ: keep only ${first[0]}`,
      )
    }
  }
  return first[1]
}

/** Reads `name` or `{name}`. Anything else is a problem and counts as absent. */
export function readNameRef(problems: ProblemList, field: string, value: unknown): { name: string } | undefined {
  if (value === undefined || value === null) return undefined
  const name = typeof value === 'string' ? value : isRecord(value) ? value['name'] : undefined
  if (typeof name === 'string' && name !== '') return { name }
  problems.add(field, 'wrong_type', `${field} must be the name of an object or {name: NAME}`)
  return undefined
}

/** Drops members that are undefined, so that an absent field and one set to undefined are the same object. */
export function compact<T extends object>(object: T): Compacted<T> {
  const entries = Object.entries(object).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as Compacted<T>
}

/** `{a: T | undefined}` becomes `{a?: T}`: what `compact` does, for the compiler. */
export type Compacted<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
