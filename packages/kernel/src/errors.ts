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
 * One line for a log or a condition: the message and its chain of causes, joined by ": ". Never throws, whatever was
 * thrown, and never longer than 2,000 characters. Plain objects are not printed: they may hold secrets.
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

/** Many wrappers repeat the text of their cause at the end of their own message: it is not said twice. */
function join(head: string, tail: string): string {
  if (head === '' || tail === '') return head || tail
  return head === tail || head.endsWith(`: ${tail}`) ? head : `${head}: ${tail}`
}

function oneLine(text: string): string {
  return text
    .slice(0, MAX_LENGTH * 2)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
}

/** By characters, not in the middle of one. */
function cut(text: string, limit: number): string {
  if (text.length <= limit) return text.toWellFormed()
  const kept = text.slice(0, limit - 1)
  return `${/[\ud800-\udbff]$/.test(kept) ? kept.slice(0, -1) : kept}…`.toWellFormed()
}
