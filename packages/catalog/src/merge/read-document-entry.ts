import { isJsonObject, member } from '../json-guard.ts'
import { checkServerDocument } from '../server-document.ts'
import { documentTags } from '../server-extensions.ts'
import { readGuardedServer } from '../toolhive-registry.ts'
import type { DocumentElement } from './document-node.ts'
import type { DocumentEntry } from './registry-document.ts'

/** `fatal`: the whole file is invalid. */
export type EntryReading = { readonly entry: DocumentEntry } | { readonly problem: string } | { readonly fatal: string }

export function readToolhiveEntry({ key, place, node }: DocumentElement, field: 'servers' | 'remote_servers'): EntryReading {
  const cut = node.cut()
  if ('problem' in cut) return cut
  const { text, value } = cut.value
  const inner = isJsonObject(value) ? member(value, 'name') : undefined
  const name = typeof inner === 'string' && inner !== '' ? inner : key
  if (name === undefined || name === '') return { fatal: `${place} has no name` }
  const read = readGuardedServer(value, { key, strict: false, remote: field === 'remote_servers' })
  if ('problems' in read) {
    const [first] = read.problems
    return { problem: first === undefined ? 'is no server' : `${first.pointer} ${first.message}`.trim() }
  }
  const tags = member(read.server, 'tags')
  return {
    entry: {
      name,
      field: read.kind === 'remote' ? 'remote_servers' : 'servers',
      text,
      tags: Array.isArray(tags) ? tags.filter((tag) => typeof tag === 'string') : [],
    },
  }
}

/** A bare document, or one in the envelope of the API. */
export function readUpstreamEntry({ place, node }: DocumentElement): EntryReading {
  const cut = node.cut()
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
