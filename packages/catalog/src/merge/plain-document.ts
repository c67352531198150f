import { ThvError } from '@thv/kernel/errors'
import type { Json, JsonObject } from '../catalog-entry.ts'
import { isJsonObject } from '../json-guard.ts'
import { MAX_NAME } from '../sources/format/json-bytes.ts'
import { type DocumentNode, guardedValue, MAX_MEMBERS } from './document-node.ts'

/**
 * The members of a file that is exactly what `JSON.stringify` writes for its value, plain or with two spaces. Then the value says all that the
 * text says: no member stands twice, and its order and numbers come out again. Undefined for other texts, which must be taken apart byte by
 * byte at several times the cost.
 */
export function plainTopLevel(text: string): ReadonlyMap<string, DocumentNode> | undefined {
  const value = plainValue(text)
  if (Array.isArray(value)) return new Map([['servers', valueNode(value)]])
  return value !== undefined && isJsonObject(value) ? named(value) : undefined
}

function plainValue(text: string): Json | undefined {
  try {
    const value = JSON.parse(text) as Json
    const end = text.trimEnd()
    const compact = JSON.stringify(value)
    if (compact === end) return value
    // Indented, a deep value may be a thousand times as long: it is written only where it has the length of the text.
    const spaces = end.length - compact.length
    return indentation(value, spaces) === spaces && JSON.stringify(value, undefined, INDENT) === end ? value : undefined
  } catch {
    return undefined // no JSON, or too deep to be written
  }
}

const INDENT = 2

/** White space that `JSON.stringify` adds to a value with `INDENT`; counted no further than above `limit`. */
function indentation(value: Json, limit: number): number {
  const open: { readonly value: Json; readonly depth: number }[] = [{ value, depth: 0 }]
  let spaces = 0
  for (let next = open.pop(); next !== undefined && spaces <= limit; next = open.pop()) {
    const { value: found, depth } = next
    if (typeof found !== 'object' || found === null) continue
    const items: readonly Json[] = Array.isArray(found) ? found : Object.values(found as JsonObject)
    if (items.length === 0) continue
    const afterName = Array.isArray(found) ? 0 : 1
    spaces += items.length * (1 + INDENT * (depth + 1) + afterName) + 1 + INDENT * depth
    for (const item of items) if (typeof item === 'object') open.push({ value: item, depth: depth + 1 })
  }
  return spaces
}

function valueNode(value: Json): DocumentNode {
  const isList = Array.isArray(value)
  return {
    isList,
    isObject: isJsonObject(value),
    members: () => named(value),
    elements: (place) =>
      isList
        ? value.map((item: Json, index: number) => ({ node: valueNode(item), place: `${place}/${index}`, key: undefined }))
        : entriesOf(value).map(([key, item]) => ({ node: valueNode(item), place: key.slice(0, 200), key })),
    cut() {
      const guarded = guardedValue(value)
      return 'problem' in guarded ? guarded : { value: { text: JSON.stringify(value), value } }
    },
  }
}

function named(value: Json): ReadonlyMap<string, DocumentNode> {
  const entries = entriesOf(value)
  if (entries.length > MAX_MEMBERS) throw new ThvError('source_limit', `it has more than ${MAX_MEMBERS} members`)
  return new Map(entries.map(([name, item]) => [name, valueNode(item)]))
}

function entriesOf(value: Json): [string, Json][] {
  const entries = isJsonObject(value) ? (Object.entries(value) as [string, Json][]) : []
  if (entries.some(([name]) => isTooLong(name))) throw new ThvError('source_failed', `it has a member name longer than ${MAX_NAME} bytes`)
  return entries
}

/** A character takes six bytes at most. */
function isTooLong(name: string): boolean {
  return name.length * 6 + 2 > MAX_NAME && Buffer.byteLength(JSON.stringify(name)) > MAX_NAME
}
