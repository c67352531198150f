import { isObject, type JsonObject } from './json-rpc.ts'

const WRAPPED = /^=\?base64\?(.*)\?=$/s
const STRICT_BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** Decodes an `Mcp-Name` or `Mcp-Param-*` value; undefined when the base64 form is malformed. A half-open wrapper is a literal. */
export function decodeHeaderValue(raw: string): string | undefined {
  const value = raw.trim()
  const wrapped = WRAPPED.exec(value)?.[1]
  if (wrapped === undefined) return value
  if (!STRICT_BASE64.test(wrapped)) return undefined
  return Buffer.from(wrapped, 'base64').toString('utf8')
}

export interface AnnotatedParam {
  readonly header: string
  readonly type: string
  readonly path: readonly string[]
}

/** All `x-mcp-header` annotations that are reachable through chains of `properties`. */
export function annotatedParams(schema: JsonObject, path: readonly string[] = []): AnnotatedParam[] {
  if (!isObject(schema['properties'])) return []
  return Object.entries(schema['properties']).flatMap(([name, property]) => {
    if (!isObject(property)) return []
    const here = [...path, name]
    const header = property['x-mcp-header']
    const own = typeof header === 'string' ? [{ header, type: String(property['type']), path: here }] : []
    return [...own, ...annotatedParams(property, here)]
  })
}

export function valueAt(args: JsonObject, path: readonly string[]): unknown {
  let value: unknown = args
  for (const key of path) value = isObject(value) ? value[key] : undefined
  return value
}

/** Integers are compared as numbers, everything else as text. */
export function headerEquals(decoded: string, value: unknown): boolean {
  if (typeof value === 'number') return /^-?\d+$/.test(decoded) && Number.isSafeInteger(Number(decoded)) && Number(decoded) === value
  return decoded === String(value)
}
