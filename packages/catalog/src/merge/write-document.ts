import type { DocumentEntry, RegistryDocument } from './registry-document.ts'

/** The file, one entry per line, in the format of the document. */
export function writeDocument(document: RegistryDocument): string {
  return document.format === 'upstream' ? upstreamFile(document) : toolhiveFile(document)
}

const BEGINNING = '1970-01-01T00:00:00Z'

function toolhiveFile({ entries, groups, lastUpdated }: RegistryDocument): string {
  // One text that grows is put together once, at its end; a list of texts would be copied twice.
  const fields = { servers: '', remote_servers: '' }
  for (const entry of entries) fields[entry.field] += `${fields[entry.field] === '' ? '\n' : ',\n'}${memberOf(entry)}`
  const field = (name: DocumentEntry['field']): string => `"${name}":{${fields[name]}${fields[name] === '' ? '' : '\n'}}`
  const parts = [
    `"version":"1.0.0"`,
    `"last_updated":${JSON.stringify(lastUpdated ?? BEGINNING)}`,
    field('servers'),
    field('remote_servers'),
  ]
  if (groups.length > 0) parts.push(`"groups":[${lines(groups.map(({ text }) => text))}]`)
  return `{${parts.join(',\n')}}\n`
}

function upstreamFile({ entries, lastUpdated }: RegistryDocument): string {
  const meta = `"meta":{"last_updated":${JSON.stringify(lastUpdated ?? BEGINNING)}}`
  return `{"version":"1.0.0",\n${meta},\n"data":{"servers":[${lines(entries.map(({ text }) => text))}]}}\n`
}

function lines(items: readonly string[]): string {
  return items.length === 0 ? '' : `\n${items.join(',\n')}\n`
}

function memberOf({ name, text }: DocumentEntry): string {
  return `${JSON.stringify(name)}:${text}`
}

/** How many bytes the entries of a document have, so that its size is known without writing it. */
export interface EntryBytes {
  readonly servers: { readonly count: number; readonly bytes: number }
  readonly remoteServers: { readonly count: number; readonly bytes: number }
}

/** Bytes of one entry in the file. */
export function entryBytes(entry: DocumentEntry, format: RegistryDocument['format']): number {
  return Buffer.byteLength(format === 'upstream' ? entry.text : memberOf(entry))
}

/** Bytes of the file that `writeDocument` would write. */
export function documentBytes(document: Omit<RegistryDocument, 'entries'>, { servers, remoteServers }: EntryBytes): number {
  const empty = Buffer.byteLength(writeDocument({ ...document, entries: [] }))
  return empty + linesBytes(servers) + linesBytes(remoteServers)
}

/** As `lines` writes them. */
function linesBytes({ count, bytes }: EntryBytes['servers']): number {
  return count === 0 ? 0 : bytes + 2 * count
}
