import type { Json, JsonObject } from '../kind-schema.ts'

/**
 * A set of field paths, as managedFields has them. Steps are spelt as on the wire: `f:name` a field or key, `k:{…}` an
 * item of a list map, `v:…` an item of a set, `i:0` an index.
 */
export interface FieldSet {
  readonly members: ReadonlySet<string>
  readonly children: ReadonlyMap<string, FieldSet>
}

export const EMPTY_SET: FieldSet = { members: new Set(), children: new Map() }

export function isEmptySet(set: FieldSet): boolean {
  return set.members.size === 0 && [...set.children.values()].every(isEmptySet)
}

export function union(a: FieldSet, b: FieldSet): FieldSet {
  const children = new Map(a.children)
  for (const [step, inner] of b.children) children.set(step, union(children.get(step) ?? EMPTY_SET, inner))
  return { members: both(a.members, b.members), children }
}

export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  return {
    members: new Set([...a.members].filter((step) => b.members.has(step))),
    children: childrenWith(a, (step, inner) => intersection(inner, b.children.get(step) ?? EMPTY_SET)),
  }
}

/** Takes paths out, not what lies below them. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  const left = (step: string, inner: FieldSet) => difference(inner, b.children.get(step) ?? EMPTY_SET)
  return { members: without(a.members, b.members), children: childrenWith(a, left) }
}

/** Takes paths out and all that lies below them. */
export function recursiveDifference(a: FieldSet, b: FieldSet): FieldSet {
  const left = (step: string, inner: FieldSet) =>
    b.members.has(step) ? EMPTY_SET : recursiveDifference(inner, b.children.get(step) ?? EMPTY_SET)
  return { members: without(a.members, b.members), children: childrenWith(a, left) }
}

function both(a: Iterable<string>, b: Iterable<string>): ReadonlySet<string> {
  return new Set([...a, ...b])
}

function without(a: ReadonlySet<string>, b: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...a].filter((step) => !b.has(step)))
}

function childrenWith(set: FieldSet, change: (step: string, inner: FieldSet) => FieldSet): ReadonlyMap<string, FieldSet> {
  const children = new Map<string, FieldSet>()
  for (const [step, inner] of set.children) {
    const changed = change(step, inner)
    if (!isEmptySet(changed)) children.set(step, changed)
  }
  return children
}

export function setOf(...paths: readonly (readonly string[])[]): FieldSet {
  const builder = new FieldSetBuilder()
  for (const path of paths) builder.insert(path)
  return builder.set
}

export class FieldSetBuilder {
  readonly #members = new Set<string>()
  readonly #children = new Map<string, FieldSetBuilder>()

  insert(path: readonly string[], at = 0): void {
    const step = path[at]
    if (step === undefined) return
    if (at === path.length - 1) {
      this.#members.add(step)
      return
    }
    const child = this.#children.get(step) ?? new FieldSetBuilder()
    this.#children.set(step, child)
    child.insert(path, at + 1)
  }

  get set(): FieldSet {
    return { members: this.#members, children: new Map([...this.#children].map(([step, child]) => [step, child.set])) }
  }
}

/** In the order in which the real server lists them: members of a level first. */
export function* pathsOf(set: FieldSet, before: readonly string[] = []): Generator<readonly string[]> {
  for (const step of [...set.members].sort()) yield [...before, step]
  for (const step of [...set.children.keys()].sort()) yield* pathsOf(set.children.get(step) ?? EMPTY_SET, [...before, step])
}

export function toFieldsV1(set: FieldSet): JsonObject {
  const steps = [...both(set.members, set.children.keys())].sort()
  return Object.fromEntries(
    steps.map((step): [string, Json] => {
      const inner = set.children.get(step)
      const below = inner ? toFieldsV1(inner) : {}
      return [step, set.members.has(step) && inner ? { '.': {}, ...below } : below]
    }),
  )
}

export function fromFieldsV1(fields: JsonObject): FieldSet {
  const members = new Set<string>()
  const children = new Map<string, FieldSet>()
  for (const [step, below] of Object.entries(fields)) {
    if (step === '.' || typeof below !== 'object' || below === null || Array.isArray(below)) continue
    const inside = below as JsonObject
    const names = Object.keys(inside)
    if (names.length === 0 || names.includes('.')) members.add(step)
    if (names.some((name) => name !== '.')) children.set(step, fromFieldsV1(inside))
  }
  return { members, children }
}

/** For messages: `.spec.ports[port=80,protocol="TCP"].name`. */
export function pathText(path: readonly string[]): string {
  return path.map(stepText).join('')
}

function stepText(step: string): string {
  const rest = step.slice(2)
  if (step.startsWith('f:')) return `.${rest}`
  if (step.startsWith('v:')) return `[=${rest}]`
  if (step.startsWith('i:')) return `[${rest}]`
  const keys = Object.entries(JSON.parse(rest) as JsonObject)
  return `[${keys.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(',')}]`
}
