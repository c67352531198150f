import { isUtf8 } from 'node:buffer'
import { isThvError } from '@thv/kernel/errors'
import type { DocumentProblem, EntryStatus, Json, JsonObject } from '../../catalog-entry.ts'
import { convertToolhiveRegistry } from '../../convert-toolhive.ts'
import { isJsonObject, member } from '../../json-guard.ts'
import { readServerResponse } from '../../official-envelope.ts'
import { createProblems, quote } from '../../problems.ts'
import { schemaVersionOf } from '../../schema-version.ts'
import { checkPublisherBlocks, documentTags } from '../../server-extensions.ts'
import { readToolhiveRegistry } from '../../toolhive-registry.ts'
import type { FetchedEntry } from '../fetch/registry-handler.ts'
import { compactValue, isObjectAt, type MemberSpan, membersAt, repeatedMember, type Span } from './json-scan.ts'

/** Result of one entry: taken, perhaps with warnings, or dropped. Pointers go from the entry. */
export interface EntryReading {
  readonly entry?: FetchedEntry
  /** As far as it is known, for messages. */
  readonly name?: string
  readonly problems: readonly DocumentProblem[]
}

export interface EntryRules {
  readonly strict: boolean
}

/** The parts of an element of a list of servers that say what it is. */
export interface ElementShape {
  readonly kind: 'toolhive' | 'document' | 'envelope'
  readonly server?: Span
  readonly meta?: Span
  /** The whole of it, where it had to be read to see what it is. */
  readonly cut?: CutJson
}

/** Looks at member names only. What is neither clearly one nor the other counts as a document: that one's problems say more. */
export function shapeOf(bytes: Buffer, span: Span): ElementShape {
  // Either way gives the same. What looks like an envelope is not read as a whole first, since its parts are read by themselves.
  const cut = looksEnveloped(bytes, span) ? undefined : cutJson(bytes, span)
  if (cut === undefined || 'problems' in cut) return scannedShape(bytes, span)
  const { value } = cut
  if (!isJsonObject(value)) return { kind: 'document', cut }
  // Its parts are cut out by themselves, so that their text stays as it is.
  const kind = kindOf((name) => Object.hasOwn(value, name))
  return kind === 'envelope' ? scannedShape(bytes, span) : { kind, cut }
}

const ENVELOPE_STARTS = ['"server"', '"_meta"']

function looksEnveloped(bytes: Buffer, { start, end }: Span): boolean {
  const quote = bytes.indexOf('"', start)
  if (quote === -1 || quote >= end) return false
  const first = bytes.toString('latin1', quote, Math.min(end, quote + 8))
  return ENVELOPE_STARTS.some((name) => first.startsWith(name))
}

/** Also of what is broken or too large as a whole: the parts that count may be neither. */
function scannedShape(bytes: Buffer, span: Span): ElementShape {
  const members = new Map<string, MemberSpan>()
  if (isObjectAt(bytes, span.start)) for (const found of membersAt(bytes, span.start)) members.set(found.name, found)
  const kind = kindOf((name) => members.has(name))
  const server = members.get('server')
  const meta = members.get('_meta')
  return { kind, ...(server !== undefined && { server }), ...(meta !== undefined && { meta }) }
}

function kindOf(has: (name: string) => boolean): ElementShape['kind'] {
  if (has('server') && !has('name')) return 'envelope'
  const toolhive = (has('image') || has('url')) && !(has('packages') || has('remotes') || has('$schema') || has('version'))
  return toolhive ? 'toolhive' : 'document'
}

/** An element of a list that may be broken inside, with its brackets in order: the others are found all the same. */
export function readAlone(read: () => EntryReading): EntryReading {
  try {
    return read()
  } catch (error) {
    if (isThvError(error, 'source_failed')) return { problems: [{ pointer: '', message: 'is not JSON' }] }
    throw error
  }
}

/** A `server.json`, bare or in the envelope of the API; its text stays as it is but for white space. */
export function readUpstreamEntry(bytes: Buffer, span: Span & { readonly shape: ElementShape }, rules: EntryRules): EntryReading {
  const { shape } = span
  const enveloped = shape.kind === 'envelope' && shape.server !== undefined
  const document = enveloped ? cutJson(bytes, shape.server) : (shape.cut ?? cutJson(bytes, span))
  if ('problems' in document) return document
  const meta = enveloped && shape.meta !== undefined ? cutJson(bytes, shape.meta) : undefined
  if (meta !== undefined && 'problems' in meta) return { ...nameOf(document.value), problems: meta.problems }
  const about = nameOf(document.value)
  // An empty time stands for one that the origin does not tell.
  const read = readServerResponse({ server: document.value, ...(meta && { _meta: meta.value }) }, { source: '', now: '' })
  if (!read.ok) return { ...about, problems: enveloped ? read.problems : read.problems.map(fromDocument) }
  const { entry } = read
  const blocks = createProblems()
  checkPublisherBlocks(entry.document, blocks)
  if (rules.strict && blocks.list.length > 0) return { ...about, problems: blocks.list }
  const twice = repeated(document)
  if (twice !== undefined) return { ...about, problems: [twice] }
  const status = meta === undefined ? legacyStatus(entry.document) : entry.status
  return {
    ...about,
    problems: blocks.list,
    entry: {
      name: entry.name,
      version: entry.version,
      text: document.text,
      tags: [...documentTags(entry.document)],
      ...(status === undefined ? {} : { status }),
      ...(entry.statusMessage === undefined ? {} : { statusMessage: entry.statusMessage }),
      ...times(entry),
    },
  }
}

export interface ToolhivePlace extends Span {
  readonly field: 'servers' | 'remote_servers'
  /** Undefined in a list. */
  readonly key: string | undefined
}

/** An entry of ToolHive's own format, converted. */
export function readToolhiveEntry(bytes: Buffer, place: ToolhivePlace, rules: EntryRules): EntryReading {
  const cut = cutJson(bytes, place)
  const key = place.key === undefined ? undefined : place.key.slice(0, 200)
  const about = key === undefined ? {} : { name: key }
  if ('problems' in cut) return { ...about, problems: cut.problems }
  const holder = place.key === undefined ? [cut.value] : Object.fromEntries([[place.key, cut.value]])
  const read = readToolhiveRegistry({ [place.field]: holder }, rules)
  const { documents, problems } = convertToolhiveRegistry({
    servers: read.servers,
    problems: read.problems.filter(({ entry }) => entry !== ''),
  })
  const [document] = documents
  const found = problems.flatMap((problem) => problem.problems)
  if (document === undefined) return { ...about, ...(key === undefined ? nameOf(cut.value) : {}), problems: found }
  const twice = repeated(cut)
  if (twice !== undefined) return { ...about, problems: [twice] }
  const name = String(document['name'])
  const entry = { name, version: String(document['version']), text: JSON.stringify(document), tags: [...documentTags(document)] }
  return { name, entry, problems: found }
}

/** Larger ones could not pass the limits of a document, however they are spelled. */
const MAX_ENTRY_BYTES = 4 * 1024 * 1024

/** Any depth, any size up to the maximum: what reads it begins with the guard. */
interface CutJson {
  readonly compact: Buffer
  readonly text: string
  readonly value: Json
}

function cutJson(bytes: Buffer, span: Span): CutJson | { readonly problems: readonly DocumentProblem[] } {
  const bad = (message: string) => ({ problems: [{ pointer: '', message }] })
  const compact = compactValue(bytes, span)
  if (compact.length > MAX_ENTRY_BYTES) return bad(`is larger than ${MAX_ENTRY_BYTES} bytes`)
  if (!isUtf8(compact)) return bad('is not UTF-8')
  const text = compact.toString('utf8')
  const value = parsed(text)
  if (value === undefined) return bad('is not JSON')
  return { compact, text, value }
}

/** Undefined for what is none. The parser's own message would quote the text, which the reader may not be allowed to see. */
function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

/** Only for what passed the limits: it recurses. What comes out the same has nothing twice, and that is nearly always so; only the rest is searched. */
function repeated({ compact, text, value }: CutJson): DocumentProblem | undefined {
  const name = JSON.stringify(value) === text ? undefined : repeatedMember(compact)
  return name === undefined ? undefined : { pointer: '', message: `has the member ${quote(name)} twice in one object` }
}

function nameOf(value: Json): { readonly name?: string } {
  const name = isJsonObject(value) ? member(value, 'name') : undefined
  return typeof name === 'string' && name !== '' ? { name: name.slice(0, 200) } : {}
}

function fromDocument({ pointer, message }: DocumentProblem): DocumentProblem {
  return { pointer: pointer.replace(/^\/server/, ''), message }
}

/** Old schemas had the status inside the document. */
function legacyStatus(document: JsonObject): EntryStatus | undefined {
  const status = document['status']
  const schema = document['$schema']
  if (status !== 'deprecated' && status !== 'deleted') return undefined
  return schemaVersionOf(typeof schema === 'string' ? schema : undefined).version.id < '2025-09-29' ? status : undefined
}

/** When its status changed there is not taken over: the registry reports when it changed here. */
function times({ publishedAt, updatedAt }: { publishedAt: string; updatedAt: string }): Partial<FetchedEntry> {
  return {
    ...(publishedAt === '' ? {} : { publishedAt }),
    ...(updatedAt === '' ? {} : { updatedAt }),
  }
}
