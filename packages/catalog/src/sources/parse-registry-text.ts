import { setImmediate as nextTurn } from 'node:timers/promises'
import { isThvError, ThvError } from '@thv/kernel/errors'
import type { DocumentProblem, Json, JsonObject } from '../catalog-entry.ts'
import { guardJson } from '../json-guard.ts'
import { createProblems } from '../problems.ts'
import { runAtOnce, runInTurns, type Steps } from '../snapshot/steps.ts'
import { readToolhiveRegistry } from '../toolhive-registry.ts'
import { readUpstreamRegistry } from '../upstream-registry.ts'
import { createEntryCollector, type EntryCollector } from './entry-collector.ts'
import { isListAt, isObjectAt, itemsAt, type MemberSpan, membersAt, type Span, wholeValue } from './json-scan.ts'
import { type EntryReading, readToolhiveEntry, readUpstreamEntry, shapeOf, type ToolhivePlace } from './read-entry.ts'
import { DEFAULT_FETCH_LIMITS, type FetchedEntry, type FetchProblem } from './registry-handler.ts'
import type { SourceFormat } from './source-config.ts'

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
  return runAtOnce(parseInSteps(typeof text === 'string' ? Buffer.from(text) : text, options))
}

/** The same, letting others run in between. */
export function parseRegistryInTurns(bytes: Uint8Array, options: ParseOptions, signal: AbortSignal): Promise<ParsedRegistry> {
  return runInTurns(parseInSteps(bytes, options), { pause: () => nextTurn(), signal })
}

const STEP_BYTES = 512 * 1024

function* parseInSteps(bytes: Uint8Array, options: ParseOptions): Steps<ParsedRegistry> {
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

function readElement(bytes: Uint8Array, { span, toolhive, upstream }: Element, { strict = false }: ParseOptions): EntryReading {
  try {
    if (toolhive !== undefined && !upstream) return readToolhiveEntry(bytes, { ...span, ...toolhive }, { strict })
    const shape = shapeOf(bytes, span)
    if (shape.kind !== 'toolhive' || upstream) return readUpstreamEntry(bytes, { ...span, shape }, { strict })
    return readToolhiveEntry(bytes, { ...span, field: 'servers', key: undefined }, { strict })
  } catch (error) {
    // Broken inside, with its brackets in order: the others are found all the same.
    if (isThvError(error, 'source_failed')) return { problems: [{ pointer: '', message: 'is not JSON' }] }
    throw error
  }
}

function* elementsOf(bytes: Uint8Array, options: ParseOptions, into: EntryCollector): Generator<Element, void, void> {
  const root = rootOf(bytes)
  const format = options.format ?? 'auto'
  if (isListAt(bytes, root.start)) {
    yield* listed(bytes, root, { format, place: 'servers/' })
    return
  }
  if (!isObjectAt(bytes, root.start)) throw noRegistry('it is neither an object nor a list')
  const top = namedMembers(bytes, root)
  const data = top.get('data')
  const inner = data !== undefined && isObjectAt(bytes, data.start) ? namedMembers(bytes, data) : new Map<string, MemberSpan>()
  const wrapped = inner.get('servers')
  if (wrapped !== undefined) {
    if (format === 'toolhive') throw noRegistry('it is in upstream format, and the configuration says toolhive')
    if (!isListAt(bytes, wrapped.start)) throw noRegistry('data.servers is not a list')
    checkHead(bytes, top, { into, options, kind: 'upstream' })
    tellLeftOut(inner, { into, options, place: 'data/' })
    yield* listed(bytes, wrapped, { format: 'upstream', place: 'data/servers/' })
    return
  }
  yield* topLevel(bytes, { root, top, format, into, options })
}

interface TopLevel {
  readonly root: Span
  readonly top: ReadonlyMap<string, MemberSpan>
  readonly format: SourceFormat
  readonly into: EntryCollector
  readonly options: ParseOptions
}

function* topLevel(bytes: Uint8Array, { root, top, format, into, options }: TopLevel): Generator<Element, void, void> {
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
    if (isListAt(bytes, span.start)) yield* listed(bytes, span, { format, place: `${field}/`, field })
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

function* listed(bytes: Uint8Array, list: Span, { format, place, field = 'servers' }: Listing): Generator<Element, void, void> {
  let index = 0
  const toolhive = format === 'toolhive' || field === 'remote_servers' ? { field, key: undefined } : undefined
  for (const span of itemsAt(bytes, list.start)) {
    yield { span, place: `${place}${index}`, toolhive, upstream: format === 'upstream' }
    index += 1
  }
}

interface HeadCheck {
  readonly into: EntryCollector
  readonly options: ParseOptions
  readonly kind: 'toolhive' | 'upstream' | 'list'
}

/** The members that say something about the file. What is wrong with them drops nothing. */
function checkHead(bytes: Uint8Array, top: ReadonlyMap<string, MemberSpan>, { into, options, kind }: HeadCheck): void {
  const head: Record<string, Json> = {}
  for (const name of ['version', 'last_updated', 'meta']) {
    const span = top.get(name)
    const value = span === undefined ? undefined : smallValue(bytes, span)
    if (value !== undefined) head[name] = value
  }
  const found = kind === 'list' ? [] : headProblems(head, kind, options.strict ?? false)
  if (found.length > 0) into.warn(placeOf(options, 'file'), found)
}

function headProblems(head: JsonObject, kind: 'toolhive' | 'upstream', strict: boolean): readonly DocumentProblem[] {
  const { problems } =
    kind === 'upstream'
      ? readUpstreamRegistry({ ...head, data: { servers: [] } }, { strict })
      : readToolhiveRegistry({ ...head, servers: {} }, { strict })
  return problems.flatMap((problem) => problem.problems)
}

/** Null for what is too large or broken: no check takes that. */
function smallValue(bytes: Uint8Array, { start, end }: Span): Json {
  if (end - start > 65_536) return null
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8'))
    return guardJson(value, createProblems()) ? value : null
  } catch {
    return null
  }
}

const LEFT_OUT: Readonly<Record<string, string>> = {
  groups: 'servers of groups are not listed by themselves, and groups are not served',
  skills: 'skills are not served',
  plugins: 'plugins are not served',
}

interface LeftOut {
  readonly into: EntryCollector
  readonly options: ParseOptions
  readonly place: string
}

function tellLeftOut(members: ReadonlyMap<string, MemberSpan>, { into, options, place }: LeftOut): void {
  for (const [name, message] of Object.entries(LEFT_OUT)) {
    const span = members.get(name)
    // Two characters are an empty list or object.
    if (span !== undefined && span.end - span.start > 2) into.warn(placeOf(options, `${place}${name}`), [{ pointer: '', message }])
  }
}

function placeOf({ file }: ParseOptions, place: string): string {
  return file === undefined ? place : `${file}: ${place}`
}

function namedMembers(bytes: Uint8Array, span: Span): Map<string, MemberSpan> {
  const members = new Map<string, MemberSpan>()
  for (const found of membersAt(bytes, span.start)) {
    if (members.has(found.name)) throw noRegistry(`it has the member ${JSON.stringify(found.name.slice(0, 60))} twice`)
    members.set(found.name, found)
    if (members.size > MAX_MEMBERS)
      throw new ThvError('source_limit', `the document has more than ${MAX_MEMBERS} members beside its servers`)
  }
  return members
}

const MAX_MEMBERS = 10_000

function rootOf(bytes: Uint8Array): Span {
  if ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff))
    throw new ThvError('source_failed', 'the document is UTF-16; JSON is UTF-8')
  if (bytes.length === 0) throw new ThvError('source_failed', 'the document is empty')
  return wholeValue(bytes)
}

function noRegistry(reason: string): ThvError {
  return new ThvError('source_failed', `the document is no registry: ${reason}`)
}
