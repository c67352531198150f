import { errorMessage, isThvError } from '@thv/kernel/errors'
import type { Json } from '../catalog-entry.ts'
import { isJsonObject, member } from '../json-guard.ts'
import { quote } from '../problems.ts'
import { type DocumentNode, type Reading, topLevel } from './document-node.ts'
import { plainTopLevel } from './plain-document.ts'
import { type EntryReading, readToolhiveEntry, readUpstreamEntry } from './read-document-entry.ts'
import type { DocumentEntry, DocumentFormat, DocumentGroup, RegistryDocument } from './registry-document.ts'

type Members = ReadonlyMap<string, DocumentNode>

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
  if (text.length === 0) return invalid('the document is empty')
  try {
    const top = typeof text === 'string' ? (plainTopLevel(text) ?? topLevel(Buffer.from(text))) : topLevel(bufferOf(text))
    return format === 'upstream' ? readUpstream(top) : readToolhive(top)
  } catch (error) {
    if (isThvError(error, 'source_failed') || isThvError(error, 'source_limit')) return invalid(errorMessage(error))
    throw error
  }
}

function bufferOf({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length)
}

function readToolhive(top: Members): DocumentReading {
  const builder = createBuilder()
  const fields = (['servers', 'remote_servers'] as const).filter((field) => top.has(field))
  if (fields.length === 0 && !top.has('groups'))
    return invalid(top.has('data') ? 'it is in upstream format, and the registry says toolhive' : 'it has no servers')
  for (const field of fields) {
    const node = top.get(field)
    if (node === undefined) continue
    if (!node.isList && !node.isObject) return invalid(`${field} is neither an object nor a list`)
    for (const element of node.elements(field)) {
      const problem = builder.add(readToolhiveEntry(element, field), element.place)
      if (problem !== undefined) return invalid(problem)
    }
  }
  const groups = readGroups(top.get('groups'))
  if ('problem' in groups) return invalid(groups.problem)
  return builder.finish('toolhive', { groups: groups.value, lastUpdated: timeOf(top.get('last_updated')) })
}

function readUpstream(top: Members): DocumentReading {
  const data = top.get('data')
  const inner: Members = data?.isObject ? data.members() : top
  const servers = inner.get('servers')
  if (servers === undefined) return invalid('it has no data.servers')
  if (!servers.isList) return invalid('data.servers is not a list')
  const builder = createBuilder()
  for (const element of servers.elements('data/servers')) {
    const problem = builder.add(readUpstreamEntry(element), element.place)
    if (problem !== undefined) return invalid(problem)
  }
  const meta = top.get('meta')
  const head = meta?.isObject ? meta.members() : undefined
  return builder.finish('upstream', { groups: [], lastUpdated: timeOf(head?.get('last_updated')) })
}

function readGroups(node: DocumentNode | undefined): Reading<DocumentGroup[]> {
  if (node === undefined) return { value: [] }
  if (!node.isList) return { problem: 'groups is not a list' }
  const groups: DocumentGroup[] = []
  const seen = new Set<string>()
  for (const { place, node: item } of node.elements('groups')) {
    const cut = item.cut()
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

/** A time, if it is one. */
function timeOf(node: DocumentNode | undefined): string | undefined {
  if (node === undefined || node.isList || node.isObject) return undefined
  const cut = node.cut()
  const value: Json = 'problem' in cut ? null : cut.value.value
  return typeof value === 'string' && value.length <= MAX_TIME && !Number.isNaN(Date.parse(value)) ? value : undefined
}

const MAX_TIME = 198

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
