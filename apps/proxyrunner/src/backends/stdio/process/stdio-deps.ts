import type { Clock } from '@thv/kernel/clock'
import type { Log } from '@thv/telemetry/log'
import type { Runtime } from '../../../runtime/runtime.ts'
import type { StdioConfig } from './stdio-config.ts'
import type { StdioMetrics } from './stdio-metrics.ts'

/** Shared by everything in this folder. */
export interface StdioDeps {
  readonly runtime: Runtime
  readonly config: StdioConfig
  readonly clock: Clock
  readonly log: Log
  readonly metrics: StdioMetrics
  /** A process has announced another list of tools. */
  onToolsChanged(): void
  random?(): number
}
