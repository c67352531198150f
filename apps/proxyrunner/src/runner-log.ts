import type { Logger } from '@thv/telemetry/log'

/** What the parts of the runner need of a logger. Fields never hold payloads or secrets. */
export type RunnerLog = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>
