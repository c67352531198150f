import type { DocumentEntry, RegistryDocument } from './registry-document.ts'

/** The file, one entry per line, in the format of the document. */
export function writeDocument(document: RegistryDocument): string {
  return document.format === 'upstream' ? upstreamFile(document) : toolhiveFile(document)
}

const BEGINNING = '1970-01-01T00:00:00Z'

function toolhiveFile({ entries, groups, lastUpdated }: RegistryDocument): string {
  const field = (name: DocumentEntry['field']): string => {
    const own = entries.filter((entry) => entry.field === name)
    return `"${name}":{${lines(own.map((entry) => `${JSON.stringify(entry.name)}:${entry.text}`))}}`
  }
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
