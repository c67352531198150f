import { isAbsolute, relative, resolve, sep } from 'node:path'

/** Rules of places: each says what is wrong with a text, or nothing. Messages never repeat an address, which may hold a password. */

export interface AddressRule {
  /** `https://user:password@host`. */
  readonly userinfo?: boolean
  readonly query?: boolean
}

export function addressProblem(text: string, rule: AddressRule): string | undefined {
  const url = URL.parse(text)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:') || !/^https?:\/\//i.test(text))
    return 'must be an absolute http or https URL'
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the parser drops them silently, and another reader would not
  if (/[\u0000-\u0020\u007f]/.test(text)) return 'must not contain spaces or control characters'
  if (!rule.userinfo && (url.username !== '' || url.password !== '')) return 'must not carry a user name or password'
  if (!rule.query && url.search !== '') return 'must not have a query'
  return text.includes('#') ? 'must not have a fragment' : undefined
}

export function serverPathProblem(path: string): string | undefined {
  if (path.includes('\0')) return 'must not contain a NUL'
  return isAbsolute(path) ? undefined : 'must be an absolute path'
}

/** By the text alone: links are followed when the file is read. */
export function outsideProblem(path: string, folders: readonly string[]): string | undefined {
  if (folders.some((folder) => isBelow(path, folder))) return undefined
  return folders.length === 0
    ? 'cannot be given through the admin API: sync.allowedFolders of the configuration names no folder'
    : 'must lie below one of the folders that sync.allowedFolders of the configuration names'
}

/** The folder itself counts. */
export function isBelow(path: string, folder: string): boolean {
  const way = relative(resolve(folder), resolve(path))
  return way === '' || !(way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way))
}

/** Names of a branch or tag that git itself accepts. */
export function refNameProblem(name: string): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: git refuses them
  const forbidden = /[\u0000-\u0020\u007f~^:?*[\\]|\.\.|@\{|\/\/|^[-/.]|[/.]$|\/\.|\.lock(?:\/|$)|^@$|^$/
  return forbidden.test(name) || name.length > 255 ? 'must be the name of a branch or tag' : undefined
}

export function commitProblem(commit: string): string | undefined {
  return /^[0-9a-f]{40}$/i.test(commit) ? undefined : 'must be the full hash of a commit: 40 hexadecimal digits'
}

export function pathInTreeProblem(path: string): string | undefined {
  const parts = path.replace(/\/$/, '').split('/')
  const clean = path === '.' || parts.every((part) => part !== '' && part !== '.' && part !== '..')
  return clean && !/[\0\\]/.test(path) ? undefined : 'must be a path inside the repository, without . and ..'
}
