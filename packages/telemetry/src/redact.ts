import { errorMessage } from '@thv/kernel/errors'
import { withoutJwts } from './jwt-pattern.ts'

/** A value as a log line may hold it: bounded in every direction, without secrets, and safe to write as JSON. */
export type LogValue = string | number | boolean | null | LogValue[] | { [name: string]: LogValue }

export const REDACTED = '[redacted]'

const SECRET_KEYS = [
  'apikey',
  'authorization',
  'clientsecret',
  'cookie',
  'credential',
  'credentials',
  'passphrase',
  'passwd',
  'password',
  'privatekey',
  'secret',
  'setcookie',
  'token',
]
/** Of longer names: backendToken, x-api-key, db_password. */
const SECRET_ENDINGS = ['apikey', 'authorization', 'cookie', 'credentials', 'password', 'privatekey', 'secret', 'token']

const MAX_STRING = 8_192
const MAX_DEPTH = 6
const MAX_ITEMS = 50

export type Redact = (value: unknown, key?: string) => LogValue

/** Keys are compared without regard to case, dashes and underscores. */
export function createRedactor(extraKeys: readonly string[] = []): Redact {
  const secret = new Set([...SECRET_KEYS, ...extraKeys.map(plainKey)])
  const isSecret = (key: string) => {
    const plain = plainKey(key)
    return secret.has(plain) || SECRET_ENDINGS.some((ending) => plain.endsWith(ending))
  }

  function walk(value: unknown, depth: number): LogValue {
    switch (typeof value) {
      case 'string':
        return scrub(value)
      case 'number':
        return Number.isFinite(value) ? value : String(value)
      case 'boolean':
        return value
      case 'object':
        return value === null ? null : walkObject(value, depth)
      case 'undefined':
        return null
      default:
        return scrub(String(value)) // bigint, symbol, function
    }
  }

  function walkObject(value: object, depth: number): LogValue {
    if (value instanceof Error) return scrub(errorMessage(value))
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString()
    if (ArrayBuffer.isView(value)) return `(${value.byteLength} bytes)`
    if (depth >= MAX_DEPTH) return '…'
    if (Array.isArray(value)) return walkArray(value, depth)
    if (value instanceof Map || value instanceof Set) return walkArray([...value], depth)
    if ('toJSON' in value && typeof value.toJSON === 'function') return walk(value.toJSON(), depth + 1)
    const copy: Record<string, LogValue> = {}
    let left = MAX_ITEMS
    for (const [name, member] of Object.entries(value)) {
      if (member === undefined) continue
      if (left-- === 0) {
        copy['…'] = 'more'
        break
      }
      copy[name] = isSecret(name) ? REDACTED : walk(member, depth + 1)
    }
    return copy
  }

  function walkArray(values: readonly unknown[], depth: number): LogValue[] {
    const items = values.slice(0, MAX_ITEMS).map((item) => walk(item, depth + 1))
    if (values.length > MAX_ITEMS) items.push(`… ${values.length - MAX_ITEMS} more`)
    return items
  }

  return (value, key) => {
    if (key !== undefined && isSecret(key)) return REDACTED
    try {
      return walk(value, 0)
    } catch {
      return '(cannot be printed)' // a getter or a proxy threw
    }
  }
}

const SCHEME = /\b(bearer|basic|dpop|negotiate|token)(\s+)([\w.~+/=-]{4,})/gi
const URL_CREDENTIALS = /:\/\/[^\s/@]+@/g
const QUERY_SECRET = /([?&](?:access_token|api_?key|client_secret|code|id_token|password|refresh_token|token)=)[^&\s"'#]+/gi
const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g

/** Patterns of credentials inside a text, wherever it came from. */
export function scrub(text: string): string {
  const bounded = text.length > MAX_STRING ? `${text.slice(0, MAX_STRING)}… ${text.length - MAX_STRING} more` : text
  return withoutJwts(bounded.replace(PRIVATE_KEY, REDACTED), REDACTED)
    .replace(SCHEME, (whole, scheme: string, space: string, rest: string) => (isWord(rest) ? whole : `${scheme}${space}${REDACTED}`))
    .replace(URL_CREDENTIALS, `://${REDACTED}@`)
    .replace(QUERY_SECRET, `$1${REDACTED}`)
    .toWellFormed()
}

const LINK = /[a-z][a-z0-9+.-]{0,30}:(?:\\?\/){2}\S+/gi
/** In place of a link. */
export const LEFT_OUT_LINK = '[link]'

/** A text of a backend or a client without links: any part of one that a user is to open may be a one-time secret. */
export function withoutLinks(text: string): string {
  return text.replace(LINK, LEFT_OUT_LINK)
}

/** "Bearer token missing" is a sentence, not a credential. */
function isWord(text: string): boolean {
  return /^[a-z]+(-[a-z]+)*[.]?$/.test(text)
}

function plainKey(key: string): string {
  return key.toLowerCase().replace(/[^a-z0-9]/g, '')
}
