import { ThvError } from '@thv/kernel/errors'
import type { Json } from '../catalog-entry.ts'
import { guardJson } from '../json-guard.ts'
import { createProblems, quote } from '../problems.ts'
import {
  compactValue,
  endOfDocument,
  isListAt,
  isObjectAt,
  itemsAt,
  membersAt,
  repeatedMember,
  type Span,
  startOfDocument,
} from '../sources/format/json-scan.ts'

export type Reading<T> = { readonly value: T } | { readonly problem: string }

/** A part of a registry file: its shape, and what is in it. Methods throw `source_failed` or `source_limit` for a file that is invalid. */
export interface DocumentNode {
  readonly isList: boolean
  readonly isObject: boolean
  /** Of an object. */
  members(): ReadonlyMap<string, DocumentNode>
  /** Servers or groups; `place`: what messages call the node. */
  elements(place: string): Iterable<DocumentElement>
  cut(): Reading<CutEntry>
}

/** One server or group, and where it stands. */
export interface DocumentElement {
  readonly place: string
  /** Undefined in a list. */
  readonly key: string | undefined
  readonly node: DocumentNode
}

export interface CutEntry {
  /** JSON of one line: members, order and numbers as in the file. */
  readonly text: string
  readonly value: Json
}

export const MAX_MEMBERS = 10_000

/** The members of the document; a bare list of servers counts as the member that holds it. */
export function topLevel(bytes: Buffer): ReadonlyMap<string, DocumentNode> {
  const start = startOfDocument(bytes)
  if (isObjectAt(bytes, start)) {
    const { members, end } = named(bytes, start)
    endOfDocument(bytes, end)
    return members
  }
  if (!isListAt(bytes, start)) throw new ThvError('source_failed', 'it is neither an object nor a list')
  const items = itemsAt(bytes, start)
  let last = items.next()
  while (!last.done) last = items.next()
  endOfDocument(bytes, last.value)
  return new Map([['servers', spanNode(bytes, { start, end: last.value })]])
}

function spanNode(bytes: Buffer, span: Span): DocumentNode {
  const { start } = span
  const isList = isListAt(bytes, start)
  return {
    isList,
    isObject: isObjectAt(bytes, start),
    members: () => named(bytes, start).members,
    elements: (place) => (isList ? listed(bytes, start, place) : keyed(bytes, start)),
    cut: () => cutSpan(bytes, span),
  }
}

function named(bytes: Buffer, at: number): { members: Map<string, DocumentNode>; end: number } {
  const members = new Map<string, DocumentNode>()
  const found = membersAt(bytes, at)
  for (;;) {
    const next = found.next()
    if (next.done) return { members, end: next.value }
    const { name } = next.value
    if (members.has(name)) throw new ThvError('source_failed', `it has the member ${quote(name)} twice`)
    members.set(name, spanNode(bytes, next.value))
    if (members.size > MAX_MEMBERS) throw new ThvError('source_limit', `it has more than ${MAX_MEMBERS} members`)
  }
}

function* listed(bytes: Buffer, at: number, place: string): Generator<DocumentElement, void, void> {
  let index = 0
  for (const span of itemsAt(bytes, at)) {
    yield { node: spanNode(bytes, span), place: `${place}/${index}`, key: undefined }
    index += 1
  }
}

function* keyed(bytes: Buffer, at: number): Generator<DocumentElement, void, void> {
  const seen = new Set<string>()
  for (const { name, ...span } of membersAt(bytes, at)) {
    if (seen.has(name)) throw new ThvError('source_failed', `it has ${quote(name)} twice`)
    seen.add(name)
    yield { node: spanNode(bytes, span), place: name.slice(0, 200), key: name }
  }
}

function cutSpan(bytes: Buffer, span: Span): Reading<CutEntry> {
  const compact = compactValue(bytes, span)
  const text = compact.toString('utf8')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { problem: 'is not JSON' } // the parser's message would quote it
  }
  const guarded = guardedValue(value)
  if ('problem' in guarded) return guarded
  const twice = JSON.stringify(value) === text ? undefined : repeatedMember(compact)
  if (twice !== undefined) return { problem: `has the member ${quote(twice)} twice in one object` }
  return { value: { text, value: guarded.value } }
}

export function guardedValue(value: unknown): Reading<Json> {
  const problems = createProblems()
  if (guardJson(value, problems)) return { value }
  return { problem: problems.list.map(({ pointer, message }) => `${pointer} ${message}`.trim())[0] ?? '' }
}
