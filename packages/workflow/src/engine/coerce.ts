import { isObject, type Json, type JsonObject } from '@thv/kernel/json'

export type Coerced = { readonly value: Json } | { readonly problem: string }

/**
 * Gives a value the type that a schema asks for: the text `42` becomes a number where one is wanted, a number a text. What the schema does not
 * say stays as it is.
 *
 * @param mode `exact`: only says whether the type fits
 */
export function coerced(value: Json, schema: unknown, mode: 'convert' | 'exact' = 'convert'): Coerced {
  if (!isObject(schema)) return { value }
  const types = typesOf(schema)
  const direct = types.length === 0 || types.some((type) => hasType(value, type))
  if (direct) return mode === 'exact' ? { value } : inside(value, schema)
  if (mode === 'convert') {
    for (const type of types) {
      const converted = convert(value, type)
      if (converted !== undefined) return inside(converted, schema)
    }
  }
  return { problem: `must be ${types.join(' or ')}` }
}

function typesOf(schema: Readonly<Record<string, unknown>>): string[] {
  const { type } = schema
  return (Array.isArray(type) ? type : [type]).filter((each): each is string => typeof each === 'string')
}

function hasType(value: Json, type: string): boolean {
  switch (type) {
    case 'integer':
      return Number.isInteger(value)
    case 'object':
      return isObject(value)
    case 'array':
      return Array.isArray(value)
    case 'null':
      return value === null
    default:
      return typeof value === type
  }
}

function convert(value: Json, type: string): Json | undefined {
  if (type === 'string') return value === null ? undefined : typeof value === 'object' ? JSON.stringify(value) : String(value)
  if (typeof value !== 'string') return undefined
  const text = value.trim()
  if (type === 'boolean') return /^(?:true|True|TRUE)$/.test(text) ? true : /^(?:false|False|FALSE)$/.test(text) ? false : undefined
  if (type === 'null') return text === '' || text === 'null' ? null : undefined
  if (!['integer', 'number', 'object', 'array'].includes(type)) return undefined
  try {
    const parsed = JSON.parse(text) as Json
    return hasType(parsed, type) ? parsed : undefined
  } catch {
    return undefined
  }
}

/** Members and items by their own schemas. */
function inside(value: Json, schema: Readonly<Record<string, unknown>>): Coerced {
  if (Array.isArray(value)) return list(value, schema['items'])
  const { properties } = schema
  if (!isObject(value) || !isObject(properties)) return { value }
  const members: [string, Json][] = []
  for (const [name, member] of Object.entries(value as JsonObject)) {
    const result = coerced(member, Object.hasOwn(properties, name) ? properties[name] : undefined)
    if ('problem' in result) return { problem: `${name} ${result.problem}` }
    members.push([name, result.value])
  }
  return { value: Object.fromEntries(members) }
}

function list(items: readonly Json[], schema: unknown): Coerced {
  const converted: Json[] = []
  for (const [index, item] of items.entries()) {
    const result = coerced(item, schema)
    if ('problem' in result) return { problem: `[${index}] ${result.problem}` }
    converted.push(result.value)
  }
  return { value: converted }
}
