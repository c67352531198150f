import { isObjectAt, type MemberSpan, membersAt } from '../sources/format/json-scan.ts'
import type { DocumentEntry } from './registry-document.ts'

/** The entry under another name. Only the bytes of its `name` change; a ToolHive entry without that member keeps its text. */
export function renameEntry<T extends Pick<DocumentEntry, 'name' | 'text'>>(entry: T, name: string): T {
  const bytes = Buffer.from(entry.text)
  const found = nameSpan(bytes, 0)
  if (found === undefined) return { ...entry, name }
  const text = Buffer.concat([bytes.subarray(0, found.start), Buffer.from(JSON.stringify(name)), bytes.subarray(found.end)])
  return { ...entry, name, text: text.toString('utf8') }
}

/** Of the entry itself, else of the document in its envelope. */
function nameSpan(bytes: Buffer, at: number): MemberSpan | undefined {
  let server: MemberSpan | undefined
  for (const found of membersAt(bytes, at)) {
    if (found.name === 'name') return found
    if (found.name === 'server') server = found
  }
  return server !== undefined && at === 0 && isObjectAt(bytes, server.start) ? nameSpan(bytes, server.start) : undefined
}
