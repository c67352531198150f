import { isHeaderValue, isToken } from '@thv/http/header-map'
import { ThvError } from '@thv/kernel/errors'
import { readSmallFile } from '../fetch/small-file.ts'

/** Those that belong to the connection or to the reader of the response. */
const RESERVED: ReadonlySet<string> = new Set([
  'accept-encoding',
  'connection',
  'content-length',
  'expect',
  'host',
  'if-modified-since',
  'if-none-match',
  'keep-alive',
  'range',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** One `Name: value` per line → flat pairs. Empty lines and those with `#` are left out. Messages tell lines, never values. */
export async function readHeadersFile(path: string): Promise<readonly string[]> {
  const text = (await readSmallFile({ path, label: 'api.headersFile' })).toString('latin1')
  return text.split(/\r?\n/).flatMap((line, index) => {
    if (line.trim() === '' || line.startsWith('#')) return []
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(colon, 0)).trim().toLowerCase()
    const value = line.slice(colon + 1).trim()
    const refuse = (problem: string) => new ThvError('source_failed', `line ${index + 1} of ${path} ${problem}`)
    if (!isToken(name)) throw refuse('does not begin with the name of a header and a colon')
    if (RESERVED.has(name)) throw refuse(`sets ${name}, which is not for a file to set`)
    if (value === '' || !isHeaderValue(value)) throw refuse('has no value that could be sent')
    return [name, value]
  })
}
