import { errorMessage, isThvError } from '@thv/kernel/errors'
import { isJsonObject, member } from '../json-guard.ts'
import { quote } from '../problems.ts'
import { endOfDocument, isListAt, isObjectAt } from '../sources/format/json-scan.ts'
import { keyed, listed, type Members, named, timeAt, topLevel } from './document-members.ts'
import { cutEntry, type EntryReading, type Reading, readToolhiveEntry, readUpstreamEntry } from './read-document-entry.ts'
import type { DocumentEntry, DocumentFormat, DocumentGroup, RegistryDocument } from './registry-document.ts'

export type DocumentReading =
  | { readonly ok: true; readonly document: RegistryDocument; readonly problems: readonly DocumentEntryProblem[] }
  | { readonly ok: false; readonly problem: string }

/** An entry that was left out; the others stay. */
export interface DocumentEntryProblem {
  readonly entry: string
  readonly message: string
}

/**
 * Takes a registry file apart. A file of another shape, a repeated name or a list element without a name makes the whole file invalid;
 * an entry that the registry server would drop is left out alone. Messages never quote entries.
 */
export function readDocument(text: string | Uint8Array, format: DocumentFormat): DocumentReading {
  const bytes = typeof text === 'string' ? Buffer.from(text) : Buffer.from(text.buffer, text.byteOffset, text.length)
  try {
    if (bytes.length === 0) return invalid('the document is empty')
    const { members, end } = topLevel(bytes)
    endOfDocument(bytes, end)
    return format === 'upstream' ? readUpstream(bytes, members) : readToolhive(bytes, members)
  } catch (error) {
    if (isThvError(error, 'source_failed') || isThvError(error, 'source_limit')) return invalid(errorMessage(error))
    throw error
  }
}

function readToolhive(bytes: Buffer, top: Members): DocumentReading {
  const builder = createBuilder()
  const fields = (['servers', 'remote_servers'] as const).filter((field) => top.has(field))
  if (fields.length === 0 && !top.has('groups'))
    return invalid(top.has('data') ? 'it is in upstream format, and the registry says toolhive' : 'it has no servers')
  for (const field of fields) {
    const span = top.get(field)
    if (span === undefined) continue
    if (!isListAt(bytes, span.start) && !isObjectAt(bytes, span.start)) return invalid(`${field} is neither an object nor a list`)
    const elements = isListAt(bytes, span.start) ? listed(bytes, span.start, field) : keyed(bytes, span.start)
    for (const element of elements) {
      const problem = builder.add(readToolhiveEntry(bytes, element, field), element.place)
      if (problem !== undefined) return invalid(problem)
    }
  }
  const groups = readGroups(bytes, top)
  if ('problem' in groups) return invalid(groups.problem)
  return builder.finish('toolhive', { groups: groups.value, lastUpdated: timeAt(bytes, top.get('last_updated')) })
}

function readUpstream(bytes: Buffer, top: Members): DocumentReading {
  const data = top.get('data')
  const inner: Members = data !== undefined && isObjectAt(bytes, data.start) ? named(bytes, data.start).members : top
  const servers = inner.get('servers')
  if (servers === undefined) return invalid('it has no data.servers')
  if (!isListAt(bytes, servers.start)) return invalid('data.servers is not a list')
  const builder = createBuilder()
  for (const element of listed(bytes, servers.start, 'data/servers')) {
    const problem = builder.add(readUpstreamEntry(bytes, element), element.place)
    if (problem !== undefined) return invalid(problem)
  }
  const meta = top.get('meta')
  const head = meta !== undefined && isObjectAt(bytes, meta.start) ? named(bytes, meta.start).members : NONE
  return builder.finish('upstream', { groups: [], lastUpdated: timeAt(bytes, head.get('last_updated')) })
}

const NONE: Members = new Map()

function readGroups(bytes: Buffer, top: Members): Reading<DocumentGroup[]> {
  const span = top.get('groups')
  if (span === undefined) return { value: [] }
  if (!isListAt(bytes, span.start)) return { problem: 'groups is not a list' }
  const groups: DocumentGroup[] = []
  const seen = new Set<string>()
  for (const { place, ...item } of listed(bytes, span.start, 'groups')) {
    const cut = cutEntry(bytes, item)
    if ('problem' in cut) return { problem: `${place} ${cut.problem}` }
    const { text, value } = cut.value
    const name = isJsonObject(value) ? member(value, 'name') : undefined
    if (typeof name !== 'string' || name === '') return { problem: `${place} has no name` }
    if (seen.has(name)) return { problem: `it has the group ${quote(name)} twice` }
    seen.add(name)
    groups.push({ name, text })
  }
  return { value: groups }
}

function createBuilder() {
  const entries: DocumentEntry[] = []
  const problems: DocumentEntryProblem[] = []
  const seen = new Set<string>()
  return {
    /** A problem makes the whole file invalid. */
    add(reading: EntryReading, place: string): string | undefined {
      if ('fatal' in reading) return reading.fatal
      if ('problem' in reading) {
        problems.push({ entry: place, message: reading.problem })
        return undefined
      }
      const { entry } = reading
      const identity = `${entry.name}\n${entry.version ?? ''}`
      const version = entry.version === undefined ? '' : ` version ${quote(entry.version)}`
      if (seen.has(identity)) return `it has ${quote(entry.name)}${version} twice`
      seen.add(identity)
      entries.push(entry)
      return undefined
    },
    finish(format: DocumentFormat, rest: { groups: readonly DocumentGroup[]; lastUpdated: string | undefined }): DocumentReading {
      const { groups, lastUpdated } = rest
      return { ok: true, document: { format, entries, groups, ...(lastUpdated === undefined ? {} : { lastUpdated }) }, problems }
    },
  }
}

function invalid(problem: string): DocumentReading {
  return { ok: false, problem }
}
