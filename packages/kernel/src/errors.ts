import type { ErrorCode } from './error-registry.ts'

export type { ErrorCode } from './error-registry.ts'

/**
 * The one error class of the project. Callers decide by `code`, people read `message`, logs take `details`.
 * Neither message nor details may hold a secret: both are logged as they are.
 */
export class ThvError extends Error {
  static {
    ThvError.prototype.name = 'ThvError' // on the prototype, so that the stack begins with it
  }

  readonly code: ErrorCode
  readonly details: Readonly<Record<string, unknown>>

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; details?: Record<string, unknown> } = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.details = Object.freeze({ ...options.details })
  }
}

export function isThvError(e: unknown, code?: ErrorCode): e is ThvError {
  return e instanceof ThvError && (code === undefined || e.code === code)
}

const MAX_LENGTH = 2_000
const MAX_DEPTH = 16
const MAX_MEMBERS = 5
const MAX_ERRORS = 64

/**
 * One line for a log or a condition: the message and its chain of causes, joined by ": ", each said once. Never throws, whatever was
 * thrown, and never longer than 2,000 characters. Plain objects are not printed: they may hold secrets. Causes come from libraries, so
 * credentials in addresses and the pieces of a document that `JSON.parse` quotes are left out.
 */
export function errorMessage(e: unknown): string {
  return cut(describe(e, { path: [], left: { count: MAX_ERRORS } }), MAX_LENGTH)
}

/** `path` leads from the outermost error to this one, to end cycles; `left` bounds the whole tree. */
interface Place {
  readonly path: readonly unknown[]
  readonly left: { count: number }
}

function describe(e: unknown, place: Place): string {
  try {
    if (typeof e !== 'object' || e === null) return oneLine(typeof e === 'function' ? 'a function' : String(e)) || '(empty)'
    if (place.path.includes(e)) return ''
    if (place.path.length >= MAX_DEPTH || place.left.count-- <= 0) return '…'
    const below: Place = { path: [...place.path, e], left: place.left }
    const members = 'errors' in e && Array.isArray(e.errors) ? describeMembers(e.errors, below) : ''
    const cause = 'cause' in e && e.cause !== undefined && e.cause !== null ? describe(e.cause, below) : ''
    return join(join(ownText(e), members), cause) || nameOf(e)
  } catch {
    return '(an error that cannot be printed)' // a getter or proxy trap threw, while the caller is already handling an error
  }
}

function describeMembers(errors: readonly unknown[], place: Place): string {
  const shown = new Set(errors.slice(0, MAX_MEMBERS).map((member) => describe(member, place)))
  shown.delete('')
  if (errors.length > MAX_MEMBERS) shown.add(`and ${errors.length - MAX_MEMBERS} more`)
  return shown.size === 0 ? '' : `[${[...shown].join('; ')}]`
}

/** Node leaves the message of some network errors empty and says all in `code`. */
function ownText(e: object): string {
  const message = 'message' in e && typeof e.message === 'string' ? oneLine(e.message) : ''
  if (message !== '') return message
  return 'code' in e && typeof e.code === 'string' ? oneLine(e.code) : ''
}

function nameOf(e: object): string {
  return (e instanceof Error && oneLine(e.name)) || Object.prototype.toString.call(e)
}

/** Many wrappers repeat the text of their cause in their own message, and some causes that of their wrapper: it is not said twice. */
function join(head: string, tail: string): string {
  if (head === '' || tail === '') return head || tail
  if (says(head, tail)) return head
  return tail.startsWith(`${head}: `) ? tail : `${head}: ${tail}`
}

/** Whether it is there as whole words: "no" is not said by "nothing". */
function says(text: string, part: string): boolean {
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + 1))
    if (!(isInWord(text, at) || isInWord(text, at + part.length))) return true
  return false
}

/** Whether no word begins or ends at this place. */
function isInWord(text: string, at: number): boolean {
  return /^[\p{L}\p{N}_]{2}$/u.test(text.slice(Math.max(0, at - 1), at + 1))
}

function oneLine(text: string): string {
  return withoutSecrets(text.slice(0, MAX_LENGTH * 2).replace(/[\s\p{Cc}]+/gu, ' ')).trim()
}

/** `JSON.parse` quotes the document where it fails. An address may hold a user and a password, as `redis://user:password@host`. */
function withoutSecrets(text: string): string {
  return text
    .replace(/(?: '.{1,2}')?, (?:\.\.\.)?".*"(?:\.\.\.)? is not valid JSON/u, ' in JSON')
    .replace(/^"[^"]*"? is not valid JSON$/, 'not valid JSON')
    .replace(/\b([a-z][a-z0-9+.-]{0,30}:\/\/)[^\s/?#@]{0,2000}@/gi, '$1[redacted]@')
}

/** By characters, not in the middle of one. */
function cut(text: string, limit: number): string {
  if (text.length <= limit) return text.toWellFormed()
  const kept = text.slice(0, limit - 1)
  return `${/[\ud800-\udbff]$/.test(kept) ? kept.slice(0, -1) : kept}…`.toWellFormed()
}
