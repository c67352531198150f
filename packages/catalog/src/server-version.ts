import { quote } from './problems.ts'
import { lengthOf } from './text.ts'

const MAX_VERSION = 255

/** The problem of the version of a server or package, or undefined. Any text that names one version is right. */
export function versionProblem(version: string): string | undefined {
  if (version === '') return 'must not be empty'
  if (lengthOf(version, MAX_VERSION) > MAX_VERSION) return `must be at most ${MAX_VERSION} characters long`
  // A version is a key: stores and paths must give it back as it came, and neither keeps these.
  if (/[\p{Cc}\p{Cs}]/u.test(version)) return 'must not contain control characters or halves of a character'
  if (version === 'latest') return 'must be a specific version, not "latest"'
  if (isRange(version)) return `must be a specific version, not the range ${quote(version)}`
  return undefined
}

function isRange(version: string): boolean {
  if (version.includes('||')) return true
  const tokens = version.split(/\s+/)
  if (tokens.includes('-') && tokens.length > 2) return true
  return tokens.some((token) => /^(?:[\^~=]|[<>]=?)/.test(token) || isWildcard(token))
}

/** `1.x`, `1.2.*`, `*`; a lone `x` is text like any other. */
function isWildcard(token: string): boolean {
  if (token === '*') return true
  return /^v?(?:\d+|[xX*])(?:\.(?:\d+|[xX*])){1,2}$/.test(token) && /[xX*]/.test(token)
}
