import type { LogEntry, LogLevel } from './log.ts'
import type { LogValue } from './redact.ts'

/** For machines: one object per line. */
export function jsonLine({ time, level, message, fields }: LogEntry): string {
  return `${JSON.stringify({ time: new Date(time).toISOString(), level, msg: message, ...fields })}\n`
}

const COLOURS: Readonly<Record<LogLevel, string>> = { debug: '\x1b[2m', info: '\x1b[32m', warn: '\x1b[33m', error: '\x1b[31m' }
const RESET = '\x1b[0m'
const DIM = '\x1b[2m'

/** For people at a terminal. Nothing that came from outside can move their cursor or colour their screen. */
export function humanLine({ time, level, message, fields }: LogEntry): string {
  const clock = new Date(time).toISOString().slice(11, 23)
  const pairs = Object.entries(fields).map(([name, value]) => ` ${DIM}${printable(name)}=${RESET}${humanValue(value)}`)
  return `${DIM}${clock}${RESET} ${COLOURS[level]}${level.toUpperCase().padEnd(5)}${RESET} ${printable(message)}${pairs.join('')}\n`
}

function humanValue(value: LogValue): string {
  if (typeof value === 'string' && /^[\w./:@+-]+$/.test(value)) return value
  return printable(JSON.stringify(value))
}

/** Control characters of both sets, and those that turn the direction of the text. */
function printable(text: string): string {
  return text.replace(
    /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
