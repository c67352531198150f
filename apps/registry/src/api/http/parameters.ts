import { serverNameProblem } from '@thv/catalog/server-name'
import type { TObject, TSchema } from 'typebox'
import { ApiError } from './api-error.ts'
import type { PathParameters } from './route.ts'
import type { Match } from './router.ts'

const NO_PARAMETERS: Readonly<PathParameters> = { registryName: '', serverName: '', version: '', name: '', type: '' }

export function readPathParameters({ node, values }: Match): Readonly<PathParameters> {
  if (values.length === 0) return NO_PARAMETERS
  const params: PathParameters = { registryName: '', serverName: '', version: '', name: '', type: '' }
  for (let i = 0; i < values.length; i++) {
    const name = node.parameters[i]
    if (name !== undefined) params[name] = decodeParameter(values[i] ?? '', name)
  }
  return params
}

/** The common case: nothing to decode, nothing to reject. */
const PLAIN = /^[\w.-]+$/

function decodeParameter(raw: string, name: string): string {
  if (PLAIN.test(raw) && name !== 'serverName') return raw
  const text = raw.includes('%') ? decode(raw, name) : raw
  if (text.trim() === '') throw new ApiError(400, `${name} cannot be empty`)
  if (/[\s\0]/.test(text)) throw new ApiError(400, `${name} cannot contain whitespace`)
  const problem = name === 'serverName' ? serverNameProblem(text) : undefined
  if (problem !== undefined) throw new ApiError(400, `invalid server name format: ${problem}`)
  return text
}

function decode(raw: string, name: string): string {
  try {
    return decodeURIComponent(raw)
  } catch (cause) {
    throw new ApiError(400, `invalid URL encoding in ${name}`, { cause })
  }
}

export type QueryValues = Record<string, string | number | boolean | readonly string[]>

/** An empty value is the same as none. What is not in the schema is refused: a misspelt filter must not show everything. */
export function readQuery(raw: string, schema: TObject | undefined): QueryValues {
  const values: QueryValues = {}
  if (raw === '') return values
  for (const part of raw.split('&')) {
    if (part === '') continue
    const at = part.indexOf('=')
    const name = decodeQuery(at < 0 ? part : part.slice(0, at), 'the query')
    const value = at < 0 ? '' : decodeQuery(part.slice(at + 1), name)
    const type = schema !== undefined && Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined
    if (type === undefined) throw new ApiError(400, unknownParameter(name, schema))
    if (value === '') continue
    const list = values[name]
    if (isArray(type)) values[name] = longer(Array.isArray(list) ? list : [], value, { name, type })
    else if (list !== undefined) throw new ApiError(400, `${name} is given more than once`)
    else values[name] = convert(value, name, type)
  }
  return values
}

function convert(value: string, name: string, type: TSchema): string | number | boolean {
  const kind = (type as { type?: unknown }).type
  if (kind === 'integer') {
    if (!/^-?\d{1,15}$/.test(value)) throw new ApiError(400, `Invalid ${name} parameter: must be an integer`)
    return Number(value)
  }
  if (kind === 'boolean') {
    if (value !== 'true' && value !== 'false') throw new ApiError(400, `Invalid ${name} parameter: must be true or false`)
    return value === 'true'
  }
  return value
}

interface ArrayType {
  readonly type: 'array'
  readonly items?: { readonly enum?: readonly string[]; readonly maxLength?: number }
  readonly maxItems?: number
}

function isArray(type: TSchema): type is ArrayType {
  return (type as { type?: unknown }).type === 'array'
}

function longer(list: readonly string[], value: string, { name, type }: { name: string; type: ArrayType }): readonly string[] {
  const { items = {}, maxItems = Number.POSITIVE_INFINITY } = type
  if (list.length >= maxItems) throw new ApiError(400, `${name} is given more than ${maxItems} times`)
  if (items.enum && !items.enum.includes(value)) throw new ApiError(400, `${name} must be one of ${items.enum.join(', ')}`)
  if (items.maxLength !== undefined && value.length > items.maxLength)
    throw new ApiError(400, `${name} must not be longer than ${items.maxLength} characters`)
  return [...list, value]
}

function decodeQuery(raw: string, name: string): string {
  if (!raw.includes('%') && !raw.includes('+')) return raw
  return decode(raw.replaceAll('+', ' '), name)
}

function unknownParameter(name: string, schema: TObject | undefined): string {
  const known = Object.keys(schema?.properties ?? {})
  const shown = JSON.stringify(name.slice(0, 60))
  return known.length === 0
    ? `unknown query parameter ${shown}: there are none here`
    : `unknown query parameter ${shown}; known are ${known.join(', ')}`
}
