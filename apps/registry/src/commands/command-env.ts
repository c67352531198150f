import type { Clock } from '@thv/kernel/clock'
import type { Lifecycle } from '@thv/kernel/lifecycle'
import type { Logger } from '@thv/telemetry/log'
import type { Env } from '../config/env-values.ts'
import type { ServeParts } from '../serve/serve.ts'

/** The outside world of commands. */
export interface CommandEnv {
  readonly out: (text: string) => void
  readonly env: Env
  readonly lifecycle: Lifecycle
  /** People read what is printed: it is worth some words. */
  readonly terminal: boolean
  readonly clock: Clock
  /** For tests; else JSON lines on standard error. */
  readonly log?: Logger
  /** Calls back when the process is asked to read its configuration again (SIGHUP). */
  readonly onHangup?: (listener: () => void) => () => void
  /** One line of an answer to a question; undefined without a terminal. */
  readonly ask?: (question: string) => Promise<string | undefined>
  readonly parts: (context: PartsContext) => ServeParts
}

export interface PartsContext {
  readonly log: Logger
  readonly clock: Clock
  readonly env: Env
}
