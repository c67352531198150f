import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ThvError } from '@thv/kernel/errors'
import { suggestion } from './closest.ts'

export interface ResolveOptions {
  /** Where to look for the file of running servers; unless given, `.thv` here or in a folder above. */
  readonly dataDir?: string | undefined
  readonly cwd: string
}

const FILE = 'servers.json'
const FOLDER = '.thv'

/** The URL behind what the user typed: a URL, or the name of a server that runs on this machine. */
export function resolveServer(nameOrUrl: string, options: ResolveOptions): string {
  if (nameOrUrl.includes('://')) return checkedUrl(nameOrUrl)
  const servers = readServers(options)
  const url = servers && Object.hasOwn(servers, nameOrUrl) ? servers[nameOrUrl] : undefined
  if (url !== undefined) return url
  if (/^[\w.-]+:\d+(\/|$)/.test(nameOrUrl))
    throw usage(`${JSON.stringify(nameOrUrl)} is no name; if it is a URL, write http://${nameOrUrl}`)
  const names = Object.keys(servers ?? {})
  if (names.length === 0)
    throw usage(`no server runs here under the name ${JSON.stringify(nameOrUrl)}: start one with "npm start", or give a URL`)
  throw usage(`there is no server ${JSON.stringify(nameOrUrl)}.${suggestion(nameOrUrl, names)} Running: ${names.join(', ')}`)
}

/** Names and URLs as whoever starts servers has written them; undefined where nobody has. */
function readServers({ dataDir, cwd }: ResolveOptions): Record<string, string> | undefined {
  if (dataDir !== undefined) return readFile(join(dataDir, FILE))
  for (let folder = cwd; ; folder = dirname(folder)) {
    const found = readFile(join(folder, FOLDER, FILE))
    if (found || folder === dirname(folder)) return found
  }
}

function readFile(path: string): Record<string, string> | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (typeof value === 'object' && value !== null && Object.values(value).every((url) => typeof url === 'string'))
      return value as Record<string, string>
    throw usage(`${path} is not a JSON object of names and URLs: remove it and start the server again`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' || (error as NodeJS.ErrnoException).code === 'ENOTDIR') return undefined
    if (error instanceof SyntaxError) throw usage(`${path} is not JSON: remove it and start the server again`)
    throw error
  }
}

function checkedUrl(text: string): string {
  const url = URL.parse(text)
  if (url === null) throw usage(`${JSON.stringify(text)} is not a URL`)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw usage(`only http and https URLs can be called, not ${url.protocol}`)
  if (url.username !== '' || url.password !== '') throw usage('a URL must not carry a user name or password: use --header')
  return text
}

function usage(message: string): ThvError {
  return new ThvError('usage', message)
}
