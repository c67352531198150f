import { setImmediate as nextTurn } from 'node:timers/promises'
import { ThvError } from '@thv/kernel/errors'
import { runAtOnce, runInTurns, type Steps } from '@thv/kernel/steps'
import { DEFAULT_FETCH_LIMITS, type FetchedEntry, type FetchProblem } from '../fetch/registry-handler.ts'
import type { SourceFormat } from '../fetch/source-config.ts'
import { createEntryCollector, type EntryCollector } from './entry-collector.ts'
import {
  endOfDocument,
  isListAt,
  isObjectAt,
  itemsAt,
  type MemberSpan,
  membersAt,
  type Span,
  startOfDocument,
  wholeValue,
} from './json-scan.ts'
import { type EntryReading, readAlone, readToolhiveEntry, readUpstreamEntry, shapeOf, type ToolhivePlace } from './read-entry.ts'
import { checkHead, placeOf, tellLeftOut } from './registry-head.ts'

export interface ParseOptions {
  readonly format?: SourceFormat | undefined
  readonly strict?: boolean | undefined
  /** Goes before the place of every entry in messages: the name of a file among several. */
  readonly file?: string | undefined
  readonly maxEntries?: number | undefined
  /** Takes the entries, of several files perhaps. */
  readonly into?: EntryCollector | undefined
}

export interface ParsedRegistry {
  readonly entries: readonly FetchedEntry[]
  readonly problems: readonly FetchProblem[]
  /** Entries that were not taken. */
  readonly dropped: number
}

/**
 * A registry file of either format, however it is dressed: ToolHive's object or list of servers, the upstream wrapper, a list of documents
 * or of the API's envelopes, a single document. A bad entry is dropped alone. Throws `source_failed` for what is no registry at all and
 * `source_limit`; messages never quote the file.
 */
export function parseRegistryText(text: string | Uint8Array, options: ParseOptions = {}): ParsedRegistry {
  return runAtOnce(parseInSteps(typeof text === 'string' ? Buffer.from(text) : asBuffer(text), options))
}

/** The same, letting others run in between. */
export function parseRegistryInTurns(bytes: Uint8Array, options: ParseOptions, signal: AbortSignal): Promise<ParsedRegistry> {
  return runInTurns(parseInSteps(asBuffer(bytes), options), { pause: () => nextTurn(), signal })
}

/** The same memory. */
function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}

const STEP_BYTES = 512 * 1024

function* parseInSteps(bytes: Buffer, options: ParseOptions): Steps<ParsedRegistry> {
  const into = options.into ?? createEntryCollector(options.maxEntries ?? DEFAULT_FETCH_LIMITS.maxEntries)
  let next = STEP_BYTES
  for (const element of elementsOf(bytes, options, into)) {
    const reading = readElement(bytes, element, options)
    take(into, reading, placeOf(options, reading.name ?? element.place))
    if (element.span.end < next) continue
    next = element.span.end + STEP_BYTES
    yield
  }
  return into
}

function take(into: EntryCollector, { entry, problems }: EntryReading, place: string): void {
  if (entry === undefined) {
    into.drop(place, problems)
    return
  }
  into.add(entry, place)
  if (problems.length > 0) into.warn(place, problems)
}

/** One entry, and how to read it. */
interface Element {
  readonly span: Span
  readonly place: string
  /** Undefined: its members tell. */
  readonly toolhive: Omit<ToolhivePlace, keyof Span> | undefined
  readonly upstream: boolean
}

function readElement(bytes: Buffer, { span, toolhive, upstream }: Element, { strict = false }: ParseOptions): EntryReading {
  return readAlone(() => {
    if (toolhive !== undefined && !upstream) return readToolhiveEntry(bytes, { ...span, ...toolhive }, { strict })
    const shape = shapeOf(bytes, span)
    if (shape.kind !== 'toolhive' || upstream) return readUpstreamEntry(bytes, { ...span, shape }, { strict })
    return readToolhiveEntry(bytes, { ...span, field: 'servers', key: undefined }, { strict })
  })
}

function* elementsOf(bytes: Buffer, options: ParseOptions, into: EntryCollector): Generator<Element, void, void> {
  const start = startOf(bytes)
  const format = options.format ?? 'auto'
  if (isListAt(bytes, start)) {
    endOfDocument(bytes, yield* listed(bytes, start, { format, place: 'servers/' }))
    return
  }
  if (!isObjectAt(bytes, start)) {
    wholeValue(bytes)
    throw noRegistry('it is neither an object nor a list')
  }
  const { members: top, end } = namedMembers(bytes, start)
  endOfDocument(bytes, end)
  const data = top.get('data')
  const inner = data !== undefined && isObjectAt(bytes, data.start) ? namedMembers(bytes, data.start).members : NONE
  const wrapped = inner.get('servers')
  if (wrapped !== undefined) {
    if (format === 'toolhive') throw noRegistry('it is in upstream format, and the configuration says toolhive')
    if (!isListAt(bytes, wrapped.start)) throw noRegistry('data.servers is not a list')
    checkHead(bytes, top, { into, options, kind: 'upstream' })
    tellLeftOut(inner, { into, options, place: 'data/' })
    yield* listed(bytes, wrapped.start, { format: 'upstream', place: 'data/servers/' })
    return
  }
  yield* topLevel(bytes, { root: { start, end }, top, format, into, options })
}

interface TopLevel {
  readonly root: Span
  readonly top: ReadonlyMap<string, MemberSpan>
  readonly format: SourceFormat
  readonly into: EntryCollector
  readonly options: ParseOptions
}

function* topLevel(bytes: Buffer, { root, top, format, into, options }: TopLevel): Generator<Element, void, void> {
  const fields = (['servers', 'remote_servers'] as const).flatMap((field) => {
    const span = top.get(field)
    return span === undefined ? [] : [{ field, span }]
  })
  if (fields.length === 0 && !top.has('groups')) {
    const single = (top.has('name') && !top.has('image')) || top.has('server')
    if (!single || format === 'toolhive') throw noRegistry('it has no servers')
    yield { span: root, place: 'document', toolhive: undefined, upstream: true }
    return
  }
  const keyed = fields.some(({ span }) => isObjectAt(bytes, span.start))
  if (keyed && format === 'upstream') throw noRegistry('it is in ToolHive format, and the configuration says upstream')
  checkHead(bytes, top, { into, options, kind: keyed || format === 'toolhive' ? 'toolhive' : 'list' })
  tellLeftOut(top, { into, options, place: '' })
  for (const { field, span } of fields) {
    if (isListAt(bytes, span.start)) yield* listed(bytes, span.start, { format, place: `${field}/`, field })
    else if (!isObjectAt(bytes, span.start)) throw noRegistry(`${field} is neither an object nor a list`)
    else
      for (const found of membersAt(bytes, span.start))
        yield { span: found, place: `${field}/${found.name.slice(0, 200)}`, toolhive: { field, key: found.name }, upstream: false }
  }
}

interface Listing {
  readonly format: SourceFormat
  readonly place: string
  readonly field?: 'servers' | 'remote_servers'
}

function* listed(bytes: Buffer, at: number, { format, place, field = 'servers' }: Listing): Generator<Element, number, void> {
  const toolhive = format === 'toolhive' || field === 'remote_servers' ? { field, key: undefined } : undefined
  const items = itemsAt(bytes, at)
  for (let index = 0; ; index += 1) {
    const item = items.next()
    if (item.done) return item.value
    yield { span: item.value, place: `${place}${index}`, toolhive, upstream: format === 'upstream' }
  }
}

interface NamedMembers {
  readonly members: ReadonlyMap<string, MemberSpan>
  readonly end: number
}

function namedMembers(bytes: Buffer, at: number): NamedMembers {
  const members = new Map<string, MemberSpan>()
  const found = membersAt(bytes, at)
  for (;;) {
    const next = found.next()
    if (next.done) return { members, end: next.value }
    const { name } = next.value
    if (members.has(name)) throw noRegistry(`it has the member ${JSON.stringify(name.slice(0, 60))} twice`)
    members.set(name, next.value)
    if (members.size > MAX_MEMBERS)
      throw new ThvError('source_limit', `the document has more than ${MAX_MEMBERS} members beside its servers`)
  }
}

const NONE: ReadonlyMap<string, MemberSpan> = new Map()
const MAX_MEMBERS = 10_000

function startOf(bytes: Buffer): number {
  if ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff))
    throw new ThvError('source_failed', 'the document is UTF-16; JSON is UTF-8')
  if (bytes.length === 0) throw new ThvError('source_failed', 'the document is empty')
  return startOfDocument(bytes)
}

function noRegistry(reason: string): ThvError {
  return new ThvError('source_failed', `the document is no registry: ${reason}`)
}
