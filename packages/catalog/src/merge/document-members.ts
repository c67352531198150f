import { ThvError } from '@thv/kernel/errors'
import { quote } from '../problems.ts'
import { isListAt, isObjectAt, itemsAt, type MemberSpan, membersAt, type Span, startOfDocument } from '../sources/format/json-scan.ts'

export type Members = ReadonlyMap<string, MemberSpan>

/** One server or group, and where it stands. */
export interface Element extends Span {
  readonly place: string
  /** Undefined in a list. */
  readonly key: string | undefined
}

export function* listed(bytes: Buffer, at: number, place: string): Generator<Element, void, void> {
  let index = 0
  for (const span of itemsAt(bytes, at)) {
    yield { ...span, place: `${place}/${index}`, key: undefined }
    index += 1
  }
}

export function* keyed(bytes: Buffer, at: number): Generator<Element, void, void> {
  const seen = new Set<string>()
  for (const { name, start, end } of membersAt(bytes, at)) {
    if (seen.has(name)) throw new ThvError('source_failed', `it has ${quote(name)} twice`)
    seen.add(name)
    yield { start, end, place: name.slice(0, 200), key: name }
  }
}

/** The members of the document; a bare list of servers counts as the member that holds it. */
export function topLevel(bytes: Buffer): { members: Members; end: number } {
  const start = startOfDocument(bytes)
  if (isObjectAt(bytes, start)) return named(bytes, start)
  if (!isListAt(bytes, start)) throw new ThvError('source_failed', 'it is neither an object nor a list')
  const items = itemsAt(bytes, start)
  let last = items.next()
  while (!last.done) last = items.next()
  return { members: new Map([['servers', { name: 'servers', start, end: last.value }]]), end: last.value }
}

const MAX_MEMBERS = 10_000

export function named(bytes: Buffer, at: number): { members: Members; end: number } {
  const members = new Map<string, MemberSpan>()
  const found = membersAt(bytes, at)
  for (;;) {
    const next = found.next()
    if (next.done) return { members, end: next.value }
    if (members.has(next.value.name)) throw new ThvError('source_failed', `it has the member ${quote(next.value.name)} twice`)
    members.set(next.value.name, next.value)
    if (members.size > MAX_MEMBERS) throw new ThvError('source_limit', `it has more than ${MAX_MEMBERS} members`)
  }
}

/** A time, if it is one. */
export function timeAt(bytes: Buffer, span: Span | undefined): string | undefined {
  if (span === undefined || span.end - span.start > 200) return undefined
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8', span.start, span.end))
    return typeof value === 'string' && !Number.isNaN(Date.parse(value)) ? value : undefined
  } catch {
    return undefined
  }
}
