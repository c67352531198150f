import type { Json } from '@thv/kube-schema/kind-schema'
import { jsonShape } from './json-bounds.ts'

/** A member of a JSON document, in the order of the document. */
export interface DocumentMember {
  /** As in field errors: `spec.containers[0].name`. */
  readonly path: string
  /** The same object has had a member of this name before. */
  readonly again: boolean
}

/** Beside the parsed values, because JSON.parse keeps only the last of several members with one name. */
const documents = new WeakMap<object, readonly DocumentMember[]>()

/** Parses JSON of a usual shape, and remembers its members when some of them come twice. Throws SyntaxError, or a text that says what is unusual. */
export function parseMembers(bytes: Buffer): Json {
  const shape = jsonShape(bytes)
  if (typeof shape === 'string') throw shape
  const text = bytes.toString()
  const value = JSON.parse(text) as Json
  if (typeof value === 'object' && value !== null && countMembers(value) < shape.members) documents.set(value, membersOf(text))
  return value
}

/** Every member of the document that a value was parsed from; undefined when no member came twice. */
export function duplicatedDocument(value: Json): readonly DocumentMember[] | undefined {
  return typeof value === 'object' && value !== null ? documents.get(value) : undefined
}

/** The paths of members that came twice, each once, in the order of the document. */
export function duplicatePaths(value: Json): string[] {
  return [...new Set((duplicatedDocument(value) ?? []).filter(({ again }) => again).map(({ path }) => path))]
}

function countMembers(value: Json): number {
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  if (Array.isArray(value)) for (const item of value as readonly Json[]) count += countMembers(item)
  else for (const member of Object.values(value)) count += 1 + countMembers(member)
  return count
}

interface Level {
  readonly path: string
  /** Names seen so far; undefined for a list. */
  readonly names: Set<string> | undefined
  index: number
}

const TEXT = /"(?:[^"\\]|\\.)*"/y

/** Only for a text that JSON.parse has taken. */
function membersOf(text: string): DocumentMember[] {
  const found: DocumentMember[] = []
  const levels: Level[] = []
  let below = ''
  for (let at = 0; at < text.length; at++) {
    const level = levels.at(-1)
    switch (text[at]) {
      case '{':
      case '[':
        levels.push({
          path: level?.names === undefined && level ? `${level.path}[${level.index}]` : below,
          names: text[at] === '{' ? new Set() : undefined,
          index: 0,
        })
        break
      case '}':
      case ']':
        levels.pop()
        break
      case ',':
        if (level) level.index++
        break
      case '"': {
        TEXT.lastIndex = at
        const quoted = TEXT.exec(text)?.[0] ?? '""'
        at += quoted.length - 1
        if (level?.names === undefined || !isName(text, at + 1)) break
        const name = JSON.parse(quoted) as string
        below = level.path === '' ? name : `${level.path}.${name}`
        found.push({ path: below, again: level.names.has(name) })
        level.names.add(name)
      }
    }
  }
  return found
}

/** A colon follows. */
function isName(text: string, from: number): boolean {
  for (let at = from; at < text.length; at++) if (!/\s/.test(text[at] ?? '')) return text[at] === ':'
  return false
}
