import type { Json } from '../catalog-entry.ts'
import { guardJson, isJsonObject, member } from '../json-guard.ts'
import { createProblems, quote } from '../problems.ts'
import { checkServerDocument } from '../server-document.ts'
import { documentTags } from '../server-extensions.ts'
import { compactValue, repeatedMember, type Span } from '../sources/format/json-scan.ts'
import { readToolhiveRegistry } from '../toolhive-registry.ts'
import type { Element } from './document-members.ts'
import type { DocumentEntry } from './registry-document.ts'

export type Reading<T> = { readonly value: T } | { readonly problem: string }

/** `fatal`: the whole file is invalid. */
export type EntryReading = { readonly entry: DocumentEntry } | { readonly problem: string } | { readonly fatal: string }

export function readToolhiveEntry(bytes: Buffer, { key, place, ...span }: Element, field: 'servers' | 'remote_servers'): EntryReading {
  const cut = cutEntry(bytes, span)
  if ('problem' in cut) return cut
  const { text, value } = cut.value
  const inner = isJsonObject(value) ? member(value, 'name') : undefined
  const name = typeof inner === 'string' && inner !== '' ? inner : key
  if (name === undefined || name === '') return { fatal: `${place} has no name` }
  const holder: Json = key === undefined ? [value] : Object.fromEntries([[key, value]])
  const read = readToolhiveRegistry({ [field]: holder })
  const [server] = read.servers
  if (server === undefined) {
    const found = read.problems.filter(({ entry }) => entry !== '').flatMap(({ problems }) => problems)
    return { problem: found[0] === undefined ? 'is no server' : `${found[0].pointer} ${found[0].message}`.trim() }
  }
  const tags = member(server.server, 'tags')
  return {
    entry: {
      name,
      field: server.kind === 'remote' ? 'remote_servers' : 'servers',
      text,
      tags: Array.isArray(tags) ? tags.filter((tag) => typeof tag === 'string') : [],
    },
  }
}

/** A bare document, or one in the envelope of the API. */
export function readUpstreamEntry(bytes: Buffer, { place, ...span }: Element): EntryReading {
  const cut = cutEntry(bytes, span)
  if ('problem' in cut) return cut
  const { text, value } = cut.value
  const document = isJsonObject(value) && member(value, 'name') === undefined ? (member(value, 'server') ?? value) : value
  const name = isJsonObject(document) ? member(document, 'name') : undefined
  if (typeof name !== 'string' || name === '') return { fatal: `${place} has no name` }
  const check = checkServerDocument(document, { level: 'schema' })
  if (!check.ok) return { problem: check.problems.map(({ pointer, message }) => `${pointer} ${message}`.trim())[0] ?? 'is no server' }
  const version = String(check.document['version'])
  return { entry: { name, version, field: 'servers', text, tags: [...documentTags(check.document)] } }
}

export interface CutEntry {
  readonly text: string
  readonly value: Json
}

export function cutEntry(bytes: Buffer, span: Span): Reading<CutEntry> {
  const compact = compactValue(bytes, span)
  const text = compact.toString('utf8')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { problem: 'is not JSON' } // the parser's message would quote it
  }
  const problems = createProblems()
  if (!guardJson(value, problems)) return { problem: problems.list.map(({ pointer, message }) => `${pointer} ${message}`.trim())[0] ?? '' }
  const twice = JSON.stringify(value) === text ? undefined : repeatedMember(compact)
  if (twice !== undefined) return { problem: `has the member ${quote(twice)} twice in one object` }
  return { value: { text, value } }
}
