import type { Json, JsonObject } from './catalog-entry.ts'
import { type Problems, pointerTo } from './problems.ts'

export interface JsonLimits {
  /** Characters of all strings and member names plus one per value: what a document may cost in memory. */
  readonly maxSize: number
  readonly maxDepth: number
  readonly maxValues: number
  readonly maxString: number
  readonly maxName: number
}

export const defaultJsonLimits: JsonLimits = {
  maxSize: 1_048_576,
  maxDepth: 64,
  maxValues: 50_000,
  maxString: 262_144,
  maxName: 1_024,
}

/**
 * Whether a value is JSON within limits. It runs first, without recursion and stops at the first breach, so that everything
 * after it may recurse, build pointers from member names and quote values without a thought about hostile input.
 */
export function guardJson(value: unknown, problems: Problems, limits: JsonLimits = defaultJsonLimits): value is Json {
  const stack: Visit[] = [{ value, parent: undefined, token: '', depth: 0 }]
  let size = 0
  let values = 0
  for (let visit = stack.pop(); visit !== undefined; visit = stack.pop()) {
    const found = visit.value
    values += 1
    size += 1
    if (visit.depth > limits.maxDepth) {
      // A pointer of 64 hostile names says less than this.
      problems.add('', `is nested deeper than ${limits.maxDepth} levels`)
      return false
    }
    if (typeof found === 'string') {
      if (found.length > limits.maxString) return refuse(visit, problems, `is longer than ${limits.maxString} characters`)
      size += found.length
    } else if (Array.isArray(found)) {
      if (values + stack.length + found.length > limits.maxValues)
        return refuse(visit, problems, `makes more than ${limits.maxValues} values`)
      for (let i = found.length - 1; i >= 0; i -= 1) {
        stack.push({ value: found[i], parent: visit, token: i, depth: visit.depth + 1 })
      }
    } else if (isPlainObject(found)) {
      const names = Object.keys(found)
      if (values + stack.length + names.length > limits.maxValues)
        return refuse(visit, problems, `makes more than ${limits.maxValues} values`)
      for (const name of names) {
        if (name.length > limits.maxName) return refuse(visit, problems, `has a member name longer than ${limits.maxName} characters`)
        size += name.length
        stack.push({ value: found[name], parent: visit, token: name, depth: visit.depth + 1 })
      }
    } else if (!isScalar(found)) {
      return refuse(visit, problems, 'is not JSON')
    }
    if (size > limits.maxSize) {
      problems.add('', `is larger than ${limits.maxSize} characters`)
      return false
    }
  }
  return true
}

function refuse(visit: Visit, problems: Problems, message: string): false {
  problems.add(pointerOf(visit), message)
  return false
}

/** A member that the object itself has: `constructor` and `__proto__` are names like any other. */
export function member(object: JsonObject, name: string): Json | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined
}

export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

interface Visit {
  readonly value: unknown
  readonly parent: Visit | undefined
  readonly token: string | number
  readonly depth: number
}

/** Made only for what is refused: nearly nothing is, and there is one visit for each value. */
function pointerOf({ parent, token }: Visit): string {
  return parent === undefined ? '' : pointerTo(pointerOf(parent), token)
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function isScalar(value: unknown): boolean {
  return value === null || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))
}
