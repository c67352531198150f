import { open } from 'node:fs/promises'
import { isHeaderValue, isToken } from '@thv/http/header-map'
import { ThvError } from '@thv/kernel/errors'

const MAX_BYTES = 65_536

/** Those that belong to the connection or to whoever reads the answer. */
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
  const text = await contentOf(path)
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

async function contentOf(path: string): Promise<string> {
  try {
    await using file = await open(path)
    if (!(await file.stat()).isFile()) throw new ThvError('source_failed', `${path} is not a regular file`)
    const buffer = Buffer.alloc(MAX_BYTES + 1)
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0)
    if (bytesRead > MAX_BYTES) throw new ThvError('source_limit', `${path} is larger than ${MAX_BYTES} bytes`)
    return buffer.toString('latin1', 0, bytesRead)
  } catch (error) {
    if (error instanceof ThvError) throw error
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    throw new ThvError('source_failed', `the headers in ${path} cannot be read (${code})`)
  }
}
