import { isObject, type Json, type JsonObject } from '@thv/kernel/json'
import type { Budget } from './limits.ts'
import { TemplateError } from './template-error.ts'

/** A JSON value, or undefined for nothing: a member that does not exist. */
export type Value = Json | undefined

export function isNothing(value: Value): value is null | undefined {
  return value === undefined || value === null
}

export function isList(value: Value): value is readonly Json[] {
  return Array.isArray(value)
}

export function isJsonObject(value: Value): value is JsonObject {
  return isObject(value)
}

/** Own members only: `constructor` of an empty object is nothing. */
export function memberOf(object: JsonObject, name: string): Value {
  return Object.hasOwn(object, name) ? object[name] : undefined
}

/** As in Go: false, zero, nothing and everything empty are false. */
export function isTrue(value: Value): boolean {
  if (isList(value)) return value.length > 0
  if (isJsonObject(value)) return Object.keys(value).length > 0
  return Boolean(value)
}

/** For messages, in the words of JSON. */
export function kindOf(value: Value): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (isList(value)) return 'a list'
  if (typeof value === 'object') return 'an object'
  return typeof value === 'boolean' ? 'a boolean' : `a ${typeof value}`
}

/** The order of UTF-8 bytes, which is that of code points. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let index = 0; index < length; index++) {
    const x = a.charCodeAt(index)
    const y = b.charCodeAt(index)
    // Surrogates stand for code points above all other units.
    if (x !== y) return isSurrogate(x) === isSurrogate(y) ? x - y : isSurrogate(x) ? 1 : -1
  }
  return a.length - b.length
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff
}

export function sortedKeys(object: JsonObject): string[] {
  return Object.keys(object).sort(compareText)
}

/** JSON with sorted members. U+2028 and U+2029 are escaped, as Go does; `<`, `>` and `&` are not. */
export function jsonText(value: Value, budget: Budget, at: number): string {
  const parts: string[] = []
  write(value, 0)
  return parts.join('')

  function write(item: Value, level: number): void {
    budget.step(at)
    budget.depth(level, at)
    if (isList(item)) writeAll('[', ']', item, (each) => write(each, level + 1))
    else if (isJsonObject(item)) {
      const object = item
      writeAll('{', '}', sortedKeys(object), (key) => {
        put(`${scalarText(key)}:`)
        write(object[key], level + 1)
      })
    } else put(scalarText(item ?? null))
  }

  function writeAll<T>(open: string, close: string, items: readonly T[], each: (item: T) => void): void {
    put(open)
    for (const [index, item] of items.entries()) {
      if (index > 0) put(',')
      each(item)
    }
    put(close)
  }

  function put(text: string): void {
    parts.push(budget.make(text, at))
  }
}

const SEPARATORS = /[\u2028\u2029]/g

function scalarText(value: null | boolean | number | string): string {
  const text = JSON.stringify(value)
  return typeof value === 'string' ? text.replace(SEPARATORS, (separator) => (separator === '\u2028' ? '\\u2028' : '\\u2029')) : text
}

/** A value inside text: texts as they are, everything else as JSON. Nothing cannot be shown. */
export function textOf(value: Value, budget: Budget, at: number): string {
  if (typeof value === 'string') return value
  if (isNothing(value)) throw new TemplateError('no_value', value === null ? 'the value is null' : 'there is no value', at)
  return typeof value === 'object' ? jsonText(value, budget, at) : String(value)
}
