import { isObject, type JsonObject } from '@thv/mcp/json-rpc'

/** The problem of a typed value, for people. */
export class ValueProblem extends Error {}

/** The schema of one property, with local references resolved. Anything that is no schema allows everything. */
export function propertySchema(root: JsonObject, property: unknown): JsonObject {
  let schema = property
  for (let hops = 0; hops < MAX_HOPS && isObject(schema) && typeof schema['$ref'] === 'string'; hops++)
    schema = referenced(root, schema['$ref'])
  return isObject(schema) ? schema : {}
}

/** The JSON types that a schema allows; empty where it does not say. */
export function typesOf(root: JsonObject, schema: JsonObject): string[] {
  const { type } = schema
  if (typeof type === 'string') return [type]
  if (Array.isArray(type)) return type.filter((each) => typeof each === 'string')
  const choices = [schema['anyOf'], schema['oneOf']].find((each) => Array.isArray(each)) as unknown[] | undefined
  if (choices) return [...new Set(choices.flatMap((choice) => typesOf(root, withoutChoices(propertySchema(root, choice)))))]
  const values = 'const' in schema ? [schema['const']] : Array.isArray(schema['enum']) ? schema['enum'] : []
  return [...new Set(values.map(typeOfValue))]
}

/** A typed text as the value that the schema wants. Throws ValueProblem, which names what was expected. */
export function valueFor(root: JsonObject, schema: JsonObject, text: string): unknown {
  const types = typesOf(root, schema)
  const value = types.length === 0 ? jsonOrText(text) : firstFit(types, text)
  const { enum: allowed } = schema
  if (Array.isArray(allowed) && !allowed.includes(value))
    throw new ValueProblem(`must be one of ${allowed.map((each) => JSON.stringify(each)).join(', ')}`)
  return value
}

/** As people read it: `string`, `integer or null`, `"a" | "b"`. */
export function typeText(root: JsonObject, schema: JsonObject): string {
  const { enum: allowed } = schema
  if (Array.isArray(allowed) && allowed.length > 0 && allowed.length <= MAX_SHOWN)
    return allowed.map((each) => JSON.stringify(each)).join('|')
  const types = typesOf(root, schema)
  if (types.length === 1 && types[0] === 'array') return `${typeText(root, propertySchema(root, schema['items']))}[]`
  return types.length === 0 ? 'any' : types.join('|')
}

function firstFit(types: readonly string[], text: string): unknown {
  for (const type of ORDER) {
    if (!types.includes(type)) continue
    const value = READERS[type]?.(text)
    if (value !== undefined) return value
  }
  throw new ValueProblem(`must be ${types.map((type) => EXPECTED[type] ?? type).join(' or ')}`)
}

/** From the strictest to the one that takes everything. */
const ORDER = ['null', 'boolean', 'integer', 'number', 'array', 'object', 'string']

const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  null: (text) => (text === 'null' ? null : undefined),
  boolean: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
  integer: (text) => (/^-?\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined),
  number: (text) => (/^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) && Number.isFinite(Number(text)) ? Number(text) : undefined),
  array: (text) => json(text, Array.isArray),
  object: (text) => json(text, isObject),
  string: (text) => text,
}

const EXPECTED: Readonly<Record<string, string>> = {
  boolean: 'true or false',
  integer: 'an integer',
  number: 'a number',
  array: 'a JSON array',
  object: 'a JSON object',
}

function json(text: string, isWanted: (value: unknown) => boolean): unknown {
  const value = parsed(text)
  return isWanted(value) ? value : undefined
}

function jsonOrText(text: string): unknown {
  const value = parsed(text)
  return value === undefined ? text : value
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function referenced(root: JsonObject, reference: string): unknown {
  if (!reference.startsWith('#/')) return undefined
  const steps = reference
    .slice(2)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
  return steps.reduce<unknown>((at, step) => (isObject(at) && Object.hasOwn(at, step) ? at[step] : undefined), root)
}

function withoutChoices({ anyOf, oneOf, ...rest }: JsonObject): JsonObject {
  return rest
}

function typeOfValue(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return Number.isInteger(value) ? 'integer' : typeof value
}

const MAX_HOPS = 16
const MAX_SHOWN = 6
