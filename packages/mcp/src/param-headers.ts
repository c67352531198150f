import { HEADER_TITLES, HEADERS, type HeaderBag, headerValue } from './header-names.ts'
import { decodeHeaderValue, encodeHeaderValue } from './header-value.ts'
import { isObject, type JsonObject } from './json-rpc.ts'
import { headerMismatch, type Rejection } from './wire-errors.ts'

/** An argument of a tool that is repeated in a header: `x-mcp-header` of its schema, and the way to it through `arguments`. */
export interface ParamAnnotation {
  /** As annotated; the header is `Mcp-Param-` and this, in any case of letters. */
  readonly name: string
  readonly path: readonly string[]
}

/** `problem` says why the tool must not be listed to HTTP clients; the reason is for the log. */
export type ParamAnnotations = { readonly annotations: readonly ParamAnnotation[] } | { readonly problem: string }

/** Reads the annotations of a tool's `inputSchema`. One invalid annotation spoils the tool. To be done once per tool, not per call. */
export function collectAnnotations(inputSchema: unknown): ParamAnnotations {
  const annotations: ParamAnnotation[] = []
  const problem = visit(inputSchema, { path: [], depth: 0, isReachable: true, annotations })
  return problem === undefined ? { annotations } : { problem }
}

/** The headers for a call. Null and absent arguments have none; neither have values that no header can say. */
export function paramHeaders(annotations: readonly ParamAnnotation[], args: unknown): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const { name, path } of annotations) {
    const text = textOf(valueAt(args, path))
    if (text !== undefined) headers[HEADERS.paramPrefix + name.toLowerCase()] = encodeHeaderValue(text)
  }
  return headers
}

/** Compares the `Mcp-Param-*` headers with the arguments: a header exactly where there is a value, and the same one. Unknown ones are ignored. */
export function checkParamHeaders(annotations: readonly ParamAnnotation[], args: unknown, headers: HeaderBag): Rejection | undefined {
  for (const { name, path } of annotations) {
    const header = headerValue(headers, HEADERS.paramPrefix + name.toLowerCase())
    const fault = faultOf(header, valueAt(args, path))
    if (fault !== undefined) return headerMismatch(HEADER_TITLES.paramPrefix + name, fault)
  }
  return undefined
}

function faultOf(header: string | undefined, value: unknown): string | undefined {
  const text = textOf(value)
  if (text === undefined) return header === undefined ? undefined : 'has no such value in the body'
  if (header === undefined) return 'is missing'
  const decoded = decodeHeaderValue(header)
  if (decoded === undefined) return 'is malformed'
  const isSame = typeof value === 'number' ? /^-?\d+$/.test(decoded) && Number(decoded) === value : decoded === text
  return isSame ? undefined : 'differs from the body'
}

/** The conversions of M22. Undefined for null, absent and whatever has no such form: fractions, unsafe integers, objects, arrays. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return value ? 'true' : 'false'
  return Number.isSafeInteger(value) ? String(value) : undefined
}

function valueAt(args: unknown, path: readonly string[]): unknown {
  let value = args
  for (const name of path) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined
    value = value[name]
  }
  return value
}

interface Visit {
  readonly path: readonly string[]
  readonly depth: number
  /** Only `properties` lie on the way from the root: then the argument has one fixed place. */
  readonly isReachable: boolean
  readonly annotations: ParamAnnotation[]
}

/** More than any honest schema needs, less than the stack holds. */
const MAX_DEPTH = 128

function visit(schema: unknown, at: Visit): string | undefined {
  if (!isObject(schema)) return undefined
  if (at.depth > MAX_DEPTH) return `${placeOf(at)}: the schema is nested deeper than ${MAX_DEPTH} levels`
  const problem = ANNOTATION in schema ? annotate(schema, at) : undefined
  return problem ?? visitProperties(schema, at) ?? visitOthers(schema, at)
}

const ANNOTATION = 'x-mcp-header'
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const TYPES: readonly unknown[] = ['string', 'integer', 'boolean']

function annotate(schema: JsonObject, at: Visit): string | undefined {
  const name = schema[ANNOTATION]
  if (!at.isReachable || at.path.length === 0) return `${placeOf(at)}: ${ANNOTATION} stands where no single argument is meant`
  if (typeof name !== 'string' || !TOKEN.test(name)) return `${placeOf(at)}: ${ANNOTATION} is not a header token`
  if (!TYPES.includes(schema['type'])) return `${placeOf(at)}: ${ANNOTATION} needs type string, integer or boolean`
  const isTaken = at.annotations.some((other) => other.name.toLowerCase() === name.toLowerCase())
  if (isTaken) return `${placeOf(at)}: ${ANNOTATION} ${name} is used twice`
  at.annotations.push({ name, path: at.path })
  return undefined
}

function visitProperties(schema: JsonObject, at: Visit): string | undefined {
  const properties = schema['properties']
  if (!isObject(properties)) return undefined
  for (const [name, child] of Object.entries(properties)) {
    const problem = visit(child, { ...at, path: [...at.path, name], depth: at.depth + 1 })
    if (problem !== undefined) return problem
  }
  return undefined
}

/** Keywords of JSON Schema that hold one schema or a list of them. Data, as in `default` or `examples`, is not looked into. */
const SCHEMA_KEYWORDS = [
  ...['items', 'prefixItems', 'additionalItems', 'contains', 'unevaluatedItems'],
  ...['additionalProperties', 'unevaluatedProperties', 'propertyNames', 'contentSchema'],
  ...['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else'],
]

/** Keywords that hold schemas by name. What a `$ref` may point to is among them. */
const SCHEMA_MAP_KEYWORDS = ['patternProperties', 'dependentSchemas', 'dependencies', '$defs', 'definitions']

function visitOthers(schema: JsonObject, at: Visit): string | undefined {
  const below = { path: at.path, depth: at.depth + 1, isReachable: false, annotations: at.annotations }
  for (const keyword of SCHEMA_KEYWORDS) {
    const value = schema[keyword]
    const problem = Array.isArray(value) ? visitAll(value, below) : visit(value, below)
    if (problem !== undefined) return problem
  }
  for (const keyword of SCHEMA_MAP_KEYWORDS) {
    const value = schema[keyword]
    const problem = isObject(value) ? visitAll(Object.values(value), below) : undefined
    if (problem !== undefined) return problem
  }
  return undefined
}

function visitAll(schemas: readonly unknown[], below: Visit): string | undefined {
  for (const schema of schemas) {
    const problem = visit(schema, below)
    if (problem !== undefined) return problem
  }
  return undefined
}

function placeOf(at: Visit): string {
  return at.path.length === 0 ? 'the root' : at.path.join('.')
}
