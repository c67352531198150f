import { setTimeout as sleep } from 'node:timers/promises'
import { type Figure, median } from '../figure.ts'
import { burst, type Sample } from '../proxy/burst.ts'
import type { LoadGenerator } from '../proxy/load-generator.ts'
import { httpConfig, startRunner, stdioConfig } from '../proxy/subjects.ts'
import { memoryOf } from './process-memory.ts'
import { type RssSeries, recordRss } from './rss-series.ts'
import type { State } from './states.ts'

export interface LoadOptions {
  readonly states: readonly State[]
  readonly load: LoadGenerator
  readonly backend: string
  /** Of the stdio server. */
  readonly command: readonly string[]
  readonly rounds: number
  readonly burstMs: number
  readonly log: (line: string) => void
}

export interface LoadFigures {
  readonly figures: readonly Figure[]
  /** The last round of the HTTP proxy: load, quiet, load, quiet. */
  readonly series: readonly RssSeries[]
}

const SESSIONS = 64
const QUIET_MS = 10_000
const TRANSPORTS = ['http', 'stdio'] as const

interface LoadSample extends Sample {
  readonly atWorkMb: number
  readonly afterMb: number
}

/** RSS of a proxy while 64 sessions call as fast as they get answers, and ten seconds after; CPU and latency of the calls. */
export async function measureLoad(options: LoadOptions): Promise<LoadFigures> {
  const { states, rounds, log } = options
  const samples = new Map<string, LoadSample[]>()
  const series = new Map<string, RssSeries>()
  for (let round = 0; round < rounds; round++) {
    for (const transport of TRANSPORTS) {
      for (const state of states) {
        log(`${SESSIONS} sessions, ${transport}, round ${round + 1}, ${state.name} …`)
        const { sample, recorded } = await measureOne(state, transport, options)
        const key = `${transport} ${state.name}`
        samples.set(key, [...(samples.get(key) ?? []), sample])
        if (transport === 'http') series.set(state.name, recorded)
      }
    }
  }
  const of = (key: string, what: keyof LoadSample) => median((samples.get(key) ?? []).map((sample) => sample[what]))
  const figures = TRANSPORTS.flatMap((transport): Figure[] => {
    const figure = (name: string, unit: string, { what, limit }: { what: keyof LoadSample; limit: number }): Figure => ({
      ...{ name: `${transport}: ${name}`, unit, value: of(`${transport} now`, what), baseline: of(`${transport} before`, what) },
      aim: { of: 'ratio', limit },
    })
    return [
      figure(`RSS at ${SESSIONS} sessions`, 'MB', { what: 'atWorkMb', limit: transport === 'http' ? 0.72 : 0.75 }),
      figure('RSS ten seconds after', 'MB', { what: 'afterMb', limit: 0.65 }),
      figure('CPU per call', 'µs', { what: 'cpuUsPerCall', limit: 1.05 }),
      figure('p99 of a call', 'ms', { what: 'p99Ms', limit: 1.1 }),
    ]
  })
  return { figures, series: [...series.values()] }
}

async function measureOne(state: State, transport: (typeof TRANSPORTS)[number], options: LoadOptions) {
  const { load, backend, command, burstMs } = options
  const config = transport === 'http' ? httpConfig(backend) : stdioConfig(command)
  await using subject = await startRunner(config, { bundle: await state.bundle('proxyrunner'), env: state.env })
  const { process: counted, url } = subject
  const recording = recordRss(state.name, counted.pid)
  const work = () => burst(load, { target: { url }, counted, era: 'legacy', sessions: SESSIONS, tool: 'echo', durationMs: burstMs })
  const rss = async () => (await memoryOf([counted.pid])).rssMb
  await work() // until the compiler is done
  const calls = await work() // before a collection in a quiet moment, which also forgets compiled code
  await sleep(QUIET_MS)
  await work()
  const atWorkMb = await rss()
  await sleep(QUIET_MS)
  const afterMb = await rss()
  return { sample: { ...calls, atWorkMb, afterMb }, recorded: recording.stop() }
}
