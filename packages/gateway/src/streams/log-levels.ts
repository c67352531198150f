import { isLogLevel, LOG_LEVELS, type LogLevel } from '@thv/mcp/envelope'

/** The level that satisfies all sessions; undefined if none asked for one. */
export function mostVerbose(levels: Iterable<LogLevel | undefined>): LogLevel | undefined {
  let lowest: number = LOG_LEVELS.length
  for (const level of levels) if (level !== undefined) lowest = Math.min(lowest, LOG_LEVELS.indexOf(level))
  return LOG_LEVELS[lowest]
}

/**
 * Whether a session gets a message of that level. One that never set a level gets what the server sends by itself; but when another
 * session on the same process has asked for more, it gets what servers usually send, not what the other wanted. Unknown levels pass.
 */
export function wantsLevel(level: unknown, own: LogLevel | undefined, upstream: LogLevel | undefined): boolean {
  if (!isLogLevel(level)) return true
  const threshold = own ?? (upstream === undefined ? undefined : USUAL_LEVEL)
  return threshold === undefined || LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(threshold)
}

const USUAL_LEVEL: LogLevel = 'info'
