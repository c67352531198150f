import { type Clock, systemClock } from '@thv/kernel/clock'
import { humanLine, jsonLine } from './log-line.ts'
import { createRedactor, type LogValue, type Redact } from './redact.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export type LogFields = Readonly<Record<string, unknown>>

/** One line per call, to standard error. Calls never throw. */
export interface Logger {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
  /** Every line of the child carries these fields. */
  child(fields: LogFields): Logger
  /** Whether it is worth preparing fields that cost something. */
  enabled(level: LogLevel): boolean
  /** Lines that could not be written, of this logger and all its relatives. */
  readonly failures: number
}

/** The part of a logger that libraries need. Fields never hold payloads or secrets. */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>

export interface LoggerOptions {
  readonly level?: LogLevel
  /** `auto`: for people when standard error is a terminal, JSON otherwise. */
  readonly format?: 'json' | 'human' | 'auto'
  readonly clock?: Clock
  /** Takes a whole line with its line feed. Standard error unless given. */
  readonly write?: (line: string) => void
  /** Further names of fields whose values are not shown. */
  readonly redactKeys?: readonly string[]
  readonly fields?: LogFields
}

const LEVELS: Readonly<Record<LogLevel, number>> = { debug: 10, info: 20, warn: 30, error: 40 }

export function createLogger(options: LoggerOptions = {}): Logger {
  const { level = 'info', format = 'auto', clock = systemClock, write = stderrWriter(), redactKeys, fields = {} } = options
  const human = format === 'human' || (format === 'auto' && process.stderr.isTTY === true)
  const redact = createRedactor(redactKeys)
  const output: Output = { threshold: LEVELS[level], clock, write, redact, line: human ? humanLine : jsonLine, failures: 0 }
  return new LineLogger(output, redactFields(fields, redact))
}

/** Undefined when the text is no level. */
export function parseLogLevel(text: string): LogLevel | undefined {
  const level = text.trim().toLowerCase()
  if (level === 'warning') return 'warn'
  return Object.hasOwn(LEVELS, level) ? (level as LogLevel) : undefined
}

interface Output {
  readonly threshold: number
  readonly clock: Clock
  readonly write: (line: string) => void
  readonly redact: Redact
  readonly line: (entry: LogEntry) => string
  failures: number
}

export interface LogEntry {
  readonly time: number
  readonly level: LogLevel
  readonly message: string
  readonly fields: Readonly<Record<string, LogValue>>
}

class LineLogger implements Logger {
  readonly #output: Output
  /** Redacted already, once for all lines. */
  readonly #fields: Readonly<Record<string, LogValue>>

  constructor(output: Output, fields: Readonly<Record<string, LogValue>>) {
    this.#output = output
    this.#fields = fields
  }

  get failures(): number {
    return this.#output.failures
  }

  debug(message: string, fields?: LogFields): void {
    this.#log('debug', message, fields)
  }

  info(message: string, fields?: LogFields): void {
    this.#log('info', message, fields)
  }

  warn(message: string, fields?: LogFields): void {
    this.#log('warn', message, fields)
  }

  error(message: string, fields?: LogFields): void {
    this.#log('error', message, fields)
  }

  child(fields: LogFields): Logger {
    return new LineLogger(this.#output, { ...this.#fields, ...redactFields(fields, this.#output.redact) })
  }

  enabled(level: LogLevel): boolean {
    return LEVELS[level] >= this.#output.threshold
  }

  #log(level: LogLevel, message: string, given: LogFields | undefined): void {
    if (!this.enabled(level)) return
    const { clock, redact, line, write } = this.#output
    try {
      const fields = given === undefined ? this.#fields : { ...this.#fields, ...redactFields(given, redact) }
      write(line({ time: clock.now(), level, message: String(redact(message)), fields }))
    } catch {
      this.#output.failures++
    }
  }
}

/** The names of the line's own members get an underscore, so that no field can pose as one. */
function redactFields(fields: LogFields, redact: Redact): Record<string, LogValue> {
  const safe: Record<string, LogValue> = {}
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue
    safe[name === 'time' || name === 'level' || name === 'msg' ? `${name}_` : name] = redact(value, name)
  }
  return safe
}

let guarded = false

/** A reader of our output that goes away must not end the process. */
function stderrWriter(): (line: string) => void {
  if (!guarded) {
    guarded = true
    process.stderr.on('error', () => {})
  }
  return (line) => void process.stderr.write(line)
}
