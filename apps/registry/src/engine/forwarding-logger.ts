import type { LogFields, Logger, LogLevel } from '@thv/telemetry/log'
import { createRedactor } from '@thv/telemetry/redact'

export interface ForwardedLine {
  readonly level: LogLevel
  readonly message: string
  readonly fields: Record<string, unknown>
}

export interface ForwardingOptions {
  readonly level: LogLevel
  readonly send: (line: ForwardedLine) => void
  readonly fields?: Record<string, unknown>
}

const levels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']

/** Lines go to the thread that owns standard error; a worker's own would come out of order, and not at all when it dies. */
export function createForwardingLogger({ level, send, fields = {} }: ForwardingOptions): Logger {
  const redact = createRedactor()
  const enabled = (wanted: LogLevel): boolean => levels.indexOf(wanted) >= levels.indexOf(level)
  const plain = (given: LogFields | undefined): Record<string, unknown> =>
    Object.fromEntries(Object.entries(given ?? {}).map(([name, value]) => [name, redact(value, name)]))
  const line = (wanted: LogLevel) => (message: string, given?: LogFields) => {
    if (enabled(wanted)) send({ level: wanted, message, fields: { ...fields, ...plain(given) } })
  }
  return {
    debug: line('debug'),
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
    enabled,
    child: (more) => createForwardingLogger({ level, send, fields: { ...fields, ...plain(more) } }),
    failures: 0,
  }
}

export function levelOf(log: Logger): LogLevel {
  return levels.find((level) => log.enabled(level)) ?? 'error'
}
