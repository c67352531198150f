import type { CatalogEntry, DocumentProblem, EntryStatus, Json, JsonObject } from './catalog-entry.ts'
import { isJsonObject, member } from './json-guard.ts'
import { readObject } from './object-reader.ts'
import { createProblems } from './problems.ts'
import { checkServerDocument, type DocumentOptions } from './server-document.ts'
import { timestampProblem } from './text.ts'

export const officialKey = 'io.modelcontextprotocol.registry/official'

/** Our own facts about an entry; the official block takes no member that the standard does not name. */
export const ownKey = 'dev.toolhive/registry'

const MAX_STATUS_MESSAGE = 500

/** Facts that the registry adds to the document. */
export function responseMeta(entry: CatalogEntry, isLatest: boolean, own?: JsonObject): JsonObject {
  const official = {
    status: entry.status,
    statusChangedAt: entry.statusChangedAt,
    ...(entry.statusMessage === undefined || entry.statusMessage === '' ? {} : { statusMessage: entry.statusMessage }),
    publishedAt: entry.publishedAt,
    updatedAt: entry.updatedAt,
    isLatest,
  }
  return { [officialKey]: official, ...(own === undefined ? {} : { [ownKey]: own }) }
}

/** Around the document's own text: whatever its numbers and member order are, they stay. */
export function wrapDocumentText(documentText: string, meta: JsonObject): string {
  return `{"server":${documentText},"_meta":${JSON.stringify(meta)}}`
}

export interface EnvelopeDefaults {
  readonly source: string
  /** RFC 3339: for what the other registry does not tell. */
  readonly now: string
  readonly document?: DocumentOptions
}

export type EnvelopeRead =
  | { readonly ok: true; readonly entry: CatalogEntry }
  | { readonly ok: false; readonly problems: readonly DocumentProblem[] }

/** An entry of another registry, as its API sends it: its status and times are kept, `isLatest` is ours to find out. */
export function readServerResponse(value: unknown, defaults: EnvelopeDefaults): EnvelopeRead {
  if (!isJsonObject(value as Json)) return { ok: false, problems: [{ pointer: '', message: 'must be an object' }] }
  const envelope = value as JsonObject
  const check = checkServerDocument(member(envelope, 'server'), { level: 'schema', ...defaults.document })
  const problems = createProblems()
  const meta = readOfficial(envelope, problems)
  if (!check.ok) {
    const moved = check.problems.map(({ pointer, message }) => ({ pointer: `/server${pointer}`, message }))
    return { ok: false, problems: [...moved, ...problems.list] }
  }
  if (problems.list.length > 0) return { ok: false, problems: problems.list }
  const { document } = check
  const publishedAt = meta.publishedAt ?? defaults.now
  const updatedAt = meta.updatedAt ?? publishedAt
  const entry: CatalogEntry = {
    name: String(document['name']),
    version: String(document['version']),
    document,
    status: meta.status ?? 'active',
    ...(meta.statusMessage === undefined ? {} : { statusMessage: meta.statusMessage }),
    publishedAt,
    updatedAt,
    statusChangedAt: meta.statusChangedAt ?? publishedAt,
    source: defaults.source,
  }
  return { ok: true, entry }
}

interface Official {
  status?: EntryStatus
  statusMessage?: string
  statusChangedAt?: string
  publishedAt?: string
  updatedAt?: string
}

function readOfficial(envelope: JsonObject, problems: ReturnType<typeof createProblems>): Official {
  const read: Official = {}
  const meta = member(envelope, '_meta')
  if (meta === undefined || meta === null) return read
  if (!isJsonObject(meta)) {
    problems.add('/_meta', 'must be an object')
    return read
  }
  readObject(meta, '/_meta', problems).child(officialKey, {}, (official) => {
    const status = official.text('status', { oneOf: ['active', 'deprecated', 'deleted'] })
    if (status === 'active' || status === 'deprecated' || status === 'deleted') read.status = status
    const message = official.text('statusMessage', { max: MAX_STATUS_MESSAGE })
    if (message !== undefined && message !== '') read.statusMessage = message
    for (const name of ['statusChangedAt', 'publishedAt', 'updatedAt'] as const) {
      const time = official.text(name, { check: timestampProblem })
      if (time !== undefined) read[name] = time
    }
  })
  return read
}
