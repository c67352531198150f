import { appendFileSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createLogger, type Logger } from '@thv/telemetry/log'

export const LOG_FILE = 'platform.log'
const MAX_BYTES = 10 << 20

/** The platform's own log, one JSON object a line. At each start a large one is put aside. */
export function openPlatformLog(folder: string): Logger {
  const path = join(folder, LOG_FILE)
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > MAX_BYTES) renameSync(path, `${path}.1`)
  return createLogger({ format: 'json', write: (line) => appendFileSync(path, line, { mode: 0o600 }) })
}
