import type { Json, JsonObject } from './catalog-entry.ts'
import { isJsonObject, member } from './json-guard.ts'
import { type Problems, pointerTo, quote } from './problems.ts'
import { lengthOf } from './text.ts'

export interface TextRule {
  readonly required?: boolean
  /** In code points, as JSON Schema counts. */
  readonly min?: number
  readonly max?: number
  readonly oneOf?: readonly string[]
  /** Says what is wrong with the text, or nothing. */
  readonly check?: ((text: string) => string | undefined) | undefined
}

export interface ListRule {
  readonly required?: boolean
  readonly min?: number
  readonly unique?: boolean
}

/**
 * Reads members of one object and reports what breaks a rule. Each method returns the member when it has the right type, even if
 * it breaks a finer rule, so that checks across members still run; it returns undefined when it is absent or of a wrong type.
 */
export interface ObjectReader {
  readonly object: JsonObject
  readonly pointer: string
  problem(name: string, message: string): void
  text(name: string, rule?: TextRule): string | undefined
  flag(name: string, rule?: { readonly required?: boolean }): boolean | undefined
  number(name: string, rule?: { readonly min?: number; readonly max?: number; readonly integer?: boolean }): number | undefined
  texts(name: string, rule?: ListRule & TextRule): readonly string[] | undefined
  list(name: string, rule: ListRule, each: (item: ObjectReader) => void): readonly Json[] | undefined
  child(name: string, rule: { readonly required?: boolean }, inside: (child: ObjectReader) => void): JsonObject | undefined
  map(name: string, rule: { readonly required?: boolean }, each: (item: ObjectReader, key: string) => void): JsonObject | undefined
}

export function readObject(object: JsonObject, pointer: string, problems: Problems): ObjectReader {
  const at = (name: string): string => pointerTo(pointer, name)

  function present(name: string, required: boolean | undefined): Json | undefined {
    const value = member(object, name)
    if (value === undefined && required) problems.add(at(name), 'is required')
    return value
  }

  function array(name: string, rule: ListRule): readonly Json[] | undefined {
    const value = present(name, rule.required)
    if (value === undefined) return undefined
    if (!Array.isArray(value)) {
      problems.add(at(name), 'must be an array')
      return undefined
    }
    if (rule.min !== undefined && value.length < rule.min) problems.add(at(name), `must have at least ${rule.min} items`)
    return value
  }

  function objectMember(name: string, required: boolean | undefined): JsonObject | undefined {
    const value = present(name, required)
    if (value === undefined) return undefined
    if (isJsonObject(value)) return value
    problems.add(at(name), 'must be an object')
    return undefined
  }

  function each(value: Json, place: string, visit: (reader: ObjectReader) => void): void {
    if (isJsonObject(value)) visit(readObject(value, place, problems))
    else problems.add(place, 'must be an object')
  }

  return {
    object,
    pointer,
    problem: (name, message) => problems.add(name === '' ? pointer : at(name), message),
    text(name, rule = {}) {
      const value = present(name, rule.required)
      if (value === undefined) return undefined
      if (typeof value !== 'string') {
        problems.add(at(name), 'must be a string')
        return undefined
      }
      checkText(value, rule, (message) => problems.add(at(name), message))
      return value
    },
    flag(name, rule = {}) {
      const value = present(name, rule.required)
      if (value === undefined || typeof value === 'boolean') return value
      problems.add(at(name), 'must be true or false')
      return undefined
    },
    number(name, rule = {}) {
      const value = present(name, false)
      if (value === undefined) return undefined
      const whole = rule.integer === true
      if (typeof value !== 'number' || (whole && !Number.isInteger(value))) {
        problems.add(at(name), whole ? 'must be a whole number' : 'must be a number')
        return undefined
      }
      if (rule.min !== undefined && value < rule.min) problems.add(at(name), `must be at least ${rule.min}`)
      if (rule.max !== undefined && value > rule.max) problems.add(at(name), `must be at most ${rule.max}`)
      return value
    },
    texts(name, rule = {}) {
      const items = array(name, rule)
      if (items === undefined) return undefined
      const seen = rule.unique ? new Set<string>() : undefined
      const texts: string[] = []
      for (let i = 0; i < items.length; i += 1) {
        const item = items[i]
        // Made only for reported problems: texts are many, and nearly all of them are right.
        const tell = (message: string) => problems.add(pointerTo(at(name), i), message)
        if (typeof item !== 'string') {
          tell('must be a string')
          continue
        }
        checkText(item, rule, tell)
        if (seen?.has(item)) tell(`repeats ${quote(item)}`)
        seen?.add(item)
        texts.push(item)
      }
      return texts
    },
    list(name, rule, visit) {
      const items = array(name, rule)
      if (items === undefined) return undefined
      for (let i = 0; i < items.length; i += 1) each(items[i] ?? null, pointerTo(at(name), i), visit)
      return items
    },
    child(name, rule, inside) {
      const value = objectMember(name, rule.required)
      if (value !== undefined) inside(readObject(value, at(name), problems))
      return value
    },
    map(name, rule, visit) {
      const value = objectMember(name, rule.required)
      for (const [key, item] of Object.entries(value ?? {})) each(item, pointerTo(at(name), key), (reader) => visit(reader, key))
      return value
    },
  }
}

function checkText(text: string, rule: TextRule, report: (message: string) => void): void {
  if (rule.min !== undefined && lengthOf(text, rule.min) < rule.min) {
    report(text === '' ? 'must not be empty' : `must be at least ${rule.min} characters long`)
  }
  if (rule.max !== undefined && lengthOf(text, rule.max) > rule.max) report(`must be at most ${rule.max} characters long`)
  if (rule.oneOf !== undefined && !rule.oneOf.includes(text)) report(`must be one of ${rule.oneOf.join(', ')}, not ${quote(text)}`)
  const wrong = rule.check?.(text)
  if (wrong !== undefined) report(wrong)
}
