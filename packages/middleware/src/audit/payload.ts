import type { LogValue } from '@thv/telemetry/redact'
import { createRedactor, REDACTED } from '@thv/telemetry/redact'

const redact = createRedactor()

/** A payload with secrets removed: by the names of members, by what looks like a credential, and in texts that name one. */
export function redactPayload(value: unknown): LogValue {
  return withoutNamed(redact(value))
}

/** Results are often JSON or settings inside a text: `"token": "…"`, `password=…`. */
const NAMED =
  /((?:token|secret|passwd|password|passphrase|api[_-]?key|private[_-]?key|authorization|cookie|credentials?)["']?\s{0,9}[:=]\s{0,9})("(?:[^"\\]|\\.)*"|'[^']*'|[^\s"',;&}]+)/gi

function withoutNamed(value: LogValue): LogValue {
  if (typeof value === 'string') return value.replace(NAMED, (_whole, name: string, text: string) => name + hidden(text))
  if (Array.isArray(value)) return value.map(withoutNamed)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withoutNamed(member)]))
}

function hidden(text: string): string {
  const quote = text.startsWith('"') || text.startsWith("'") ? text.charAt(0) : ''
  return `${quote}${REDACTED}${quote}`
}
