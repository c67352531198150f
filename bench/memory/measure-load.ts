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
/** A proxy has a small heap: it gives memory back after a quiet minute. */
const QUIET_MINUTE_MS = 68_000
/** Large results: 64 calls at once, one from each session. */
const LARGE_MS = 4_000
const TRANSPORTS = ['http', 'stdio'] as const

interface LoadSample extends Sample {
  readonly atWorkMb: number
  readonly afterMb: number
  readonly largeCpuUs: number
  readonly largeMb: number
}

/** A runner that goes on until its quiet minute is over. */
interface Resting {
  readonly key: string
  readonly pid: number
  readonly stop: () => RssSeries
}

/** RSS of a proxy while 64 sessions call as fast as they get answers, ten seconds and a quiet minute after; CPU and latency of the calls. */
export async function measureLoad(options: LoadOptions): Promise<LoadFigures> {
  const { states, rounds, log } = options
  const samples = new Map<string, LoadSample[]>()
  const series = new Map<string, RssSeries>()
  const minuteMb = new Map<string, number>()
  for (let round = 0; round < rounds; round++) {
    await using running = new AsyncDisposableStack()
    const resting: Resting[] = []
    for (const transport of TRANSPORTS) {
      for (const state of states) {
        log(`${SESSIONS} sessions, ${transport}, round ${round + 1}, ${state.name} …`)
        const { sample, ...rest } = await measureOne(state, transport, { ...options, running })
        const key = `${transport} ${state.name}`
        samples.set(key, [...(samples.get(key) ?? []), sample])
        resting.push({ key, ...rest })
      }
    }
    if (round < rounds - 1) {
      for (const { stop } of resting) stop()
      continue
    }
    log('a quiet minute …')
    await sleep(QUIET_MINUTE_MS)
    for (const { key, pid, stop } of resting) {
      minuteMb.set(key, (await memoryOf([pid])).rssMb)
      const recorded = stop()
      if (key.startsWith('http ')) series.set(recorded.name, recorded)
    }
  }
  const of = (key: string, what: keyof LoadSample) => median((samples.get(key) ?? []).map((sample) => sample[what]))
  const figures = TRANSPORTS.flatMap((transport): Figure[] => {
    const figure = (name: string, unit: string, { what, limit }: { what: keyof LoadSample; limit?: number }): Figure => ({
      ...{ name: `${transport}: ${name}`, unit, value: of(`${transport} now`, what), baseline: of(`${transport} before`, what) },
      ...(limit !== undefined && { aim: { of: 'ratio', limit } }),
    })
    const minute = (name: State['name']) => minuteMb.get(`${transport} ${name}`) ?? Number.NaN
    return [
      figure(`RSS at ${SESSIONS} sessions`, 'MB', { what: 'atWorkMb', limit: transport === 'http' ? 0.72 : 0.75 }),
      figure('RSS ten seconds after', 'MB', { what: 'afterMb', limit: 0.65 }),
      // For information: until then V8 has given back by itself what the state before did not need any more.
      { name: `${transport}: RSS after a quiet minute`, unit: 'MB', value: minute('now'), baseline: minute('before') },
      figure('CPU per call', 'µs', { what: 'cpuUsPerCall', limit: 1.05 }),
      figure('p99 of a call', 'ms', { what: 'p99Ms', limit: 1.1 }),
      figure(`CPU per call, results of 1 MB, ${SESSIONS} at once`, 'µs', { what: 'largeCpuUs', limit: 1.1 }),
      figure('RSS with these', 'MB', { what: 'largeMb' }),
    ]
  })
  return { figures, series: [...series.values()] }
}

async function measureOne(
  state: State,
  transport: (typeof TRANSPORTS)[number],
  options: LoadOptions & { readonly running: AsyncDisposableStack },
) {
  const { load, backend, command, burstMs, running } = options
  const large = await measureLarge(state, transport, options)
  const config = transport === 'http' ? httpConfig(backend) : stdioConfig(command)
  const subject = running.use(await startRunner(config, { bundle: await state.bundle('proxyrunner'), env: state.env }))
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
  return { sample: { ...calls, atWorkMb, afterMb, ...large }, pid: counted.pid, stop: () => recording.stop() }
}

/** A runner of its own: what large messages leave behind would be part of the other figures. */
async function measureLarge(state: State, transport: (typeof TRANSPORTS)[number], { load, backend, command }: LoadOptions) {
  const config = transport === 'http' ? httpConfig(backend) : stdioConfig(command)
  await using subject = await startRunner(config, { bundle: await state.bundle('proxyrunner'), env: state.env })
  const { process: counted, url } = subject
  const work = () => burst(load, { target: { url }, counted, era: 'legacy', sessions: SESSIONS, tool: 'large', durationMs: LARGE_MS })
  await work()
  const { cpuUsPerCall } = await work()
  return { largeCpuUs: cpuUsPerCall, largeMb: (await memoryOf([counted.pid])).rssMb }
}
