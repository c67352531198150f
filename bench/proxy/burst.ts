import type { LoadGenerator } from './load-generator.ts'
import type { Era, LoadTarget, Tool } from './load-plan.ts'
import type { MeasuredProcess } from './measured-process.ts'

/** The measured subject and its server. */
export interface BurstPlan {
  readonly target: LoadTarget
  /** The process whose CPU is counted; absent where none stands between. */
  readonly counted?: MeasuredProcess
  readonly era: Era
  readonly sessions: number
  readonly tool: Tool
  readonly durationMs: number
  /** It goes on until there are so many: on a busy machine few come in a short time. */
  readonly minCalls?: number
}

export interface Sample {
  readonly callsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** CPU of the counted process; NaN where there is none. */
  readonly cpuUsPerCall: number
}

/** Opens sessions, calls for a while, closes them; only the calls are measured. */
export async function burst(load: LoadGenerator, plan: BurstPlan): Promise<Sample> {
  const { target, counted, era, sessions, tool, durationMs, minCalls = 0 } = plan
  await load.order({ order: 'open', target, era, sessions, tool })
  const before = await counted?.usage()
  const report = await load.order({ order: 'run', durationMs, minCalls })
  const after = await counted?.usage()
  await load.order({ order: 'close' })
  if (report === undefined) throw new Error('the load generator did not report')
  const { calls, ms, p50Ms, p99Ms } = report
  const cpuUs = before === undefined || after === undefined ? Number.NaN : after.cpuUs - before.cpuUs
  return { callsPerSecond: (calls * 1000) / ms, p50Ms, p99Ms, cpuUsPerCall: cpuUs / calls }
}
