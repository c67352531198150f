import { ThvError } from '@thv/kernel/errors'
import type { Json } from '../catalog-entry.ts'
import { isJsonObject } from '../json-guard.ts'
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
    return JSON.stringify(value) === end || JSON.stringify(value, undefined, 2) === end ? value : undefined
  } catch {
    return undefined // no JSON, or too deep to be written
  }
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
  return isJsonObject(value) ? (Object.entries(value) as [string, Json][]) : []
}
