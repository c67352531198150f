import { type Figure, median, renderColumns } from '../figure.ts'
import { type BurstPlan, burst, type Sample } from './burst.ts'
import type { LoadGenerator } from './load-generator.ts'
import type { Era, Tool } from './load-plan.ts'
import { httpConfig, type Subject, startBare, startRunner, stdioConfig } from './subjects.ts'

export interface CallsOptions {
  readonly backend: Subject
  readonly load: LoadGenerator
  /** Of the stdio server. */
  readonly command: readonly string[]
  readonly rounds: number
  /** Of one burst. */
  readonly durationMs: number
  readonly log: (line: string) => void
}

const SESSIONS = [1, 16, 64, 512]
const ERAS: readonly Era[] = ['legacy', 'modern']

/** One row of conditions, under which everybody is measured in turn. */
interface Cell {
  readonly era: Era
  readonly sessions: number
  readonly tool: Tool
}

const CELLS: readonly Cell[] = [
  ...ERAS.flatMap((era) => SESSIONS.map((sessions): Cell => ({ era, sessions, tool: 'echo' }))),
  { era: 'legacy', sessions: 64, tool: 'echo_stream' }, // as servers on the official SDK answer
]

/** Thousands of calls before the first that counts: until then the compiler is measured. */
const WARM_UP = CELLS.filter(({ sessions }) => sessions === 64)

type Who = 'http server alone' | 'bare pass-through' | 'http runner' | 'stdio server alone' | 'stdio runner'
type Place = Pick<BurstPlan, 'target' | 'counted'>

/** Calls per second, their latency, and what one costs the process between; all in turns, over and over. */
export async function measureCalls(options: CallsOptions): Promise<Figure[]> {
  const { backend, load, command, rounds, durationMs, log } = options
  const nodeArgs = profileArgs()
  await using bare = await startBare(backend.url, nodeArgs)
  await using http = await startRunner(httpConfig(backend.url), { nodeArgs })
  await using stdio = await startRunner(stdioConfig(command), { nodeArgs })
  const places: Record<Who, Place> = {
    'http server alone': { target: { url: backend.url } },
    'bare pass-through': at(bare),
    'http runner': at(http),
    'stdio server alone': { target: { command } },
    'stdio runner': at(stdio),
  }
  const inTurn = async (cell: Cell, ms: number, take: (who: Who, sample: Sample) => void) => {
    for (const [who, place] of entries(places)) {
      if (cell.tool === 'echo_stream' && who.startsWith('stdio')) continue
      take(who, await burst(load, { ...place, ...cell, durationMs: ms }))
    }
  }
  const samples = new Map<string, Sample[]>()
  for (const cell of WARM_UP) await inTurn(cell, 3 * durationMs, () => {})
  for (let round = 0; round < rounds; round++) {
    for (const cell of CELLS) await inTurn(cell, durationMs, (who, sample) => pushTo(samples, keyOf(cell, who), sample))
  }
  log(table(samples))
  return CELLS.flatMap((cell) => figures(cell, samples))
}

/** `BENCH_CPU_PROF=FOLDER` leaves a profile of every process there. */
function profileArgs(): string[] {
  const folder = process.env['BENCH_CPU_PROF']
  return folder === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', folder]
}

function at(subject: Subject): Place {
  return { target: { url: subject.url }, counted: subject.process }
}

function figures(cell: Cell, samples: ReadonlyMap<string, Sample[]>): Figure[] {
  const cpuOf = (who: Who) => middle(samples.get(keyOf(cell, who)) ?? []).cpuUsPerCall
  const baseline = cpuOf('bare pass-through')
  const conditions = `${cell.era}, ${cell.sessions} session${cell.sessions === 1 ? '' : 's'}${cell.tool === 'echo_stream' ? ', SSE' : ''}`
  const http: Figure = {
    name: `CPU per call, http, ${conditions}`,
    unit: 'µs',
    value: cpuOf('http runner'),
    baseline,
    aim: { of: 'ratio', limit: 1.5 },
  }
  if (cell.tool === 'echo_stream') return [http]
  const name = `CPU per call, stdio, ${conditions}`
  return [http, { name, unit: 'µs', value: cpuOf('stdio runner'), baseline, aim: { of: 'ratio', limit: 2 } }]
}

function table(samples: ReadonlyMap<string, Sample[]>): string {
  const rows = [...samples].map(([key, each]) => {
    const { callsPerSecond, p50Ms, p99Ms, cpuUsPerCall } = middle(each)
    const cpu = Number.isNaN(cpuUsPerCall) ? '' : cpuUsPerCall.toFixed(0)
    return [...key.split(' | '), callsPerSecond.toFixed(0), p50Ms.toFixed(2), p99Ms.toFixed(2), cpu]
  })
  return renderColumns([['era', 'sessions', 'answer', 'who', 'calls/s', 'p50 ms', 'p99 ms', 'CPU µs/call'], ...rows], 4)
}

function middle(samples: readonly Sample[]): Sample {
  const of = (what: keyof Sample) => median(samples.map((sample) => sample[what]))
  return { callsPerSecond: of('callsPerSecond'), p50Ms: of('p50Ms'), p99Ms: of('p99Ms'), cpuUsPerCall: of('cpuUsPerCall') }
}

function keyOf({ era, sessions, tool }: Cell, who: Who): string {
  return [era, sessions, tool === 'echo' ? 'json' : 'sse', who].join(' | ')
}

function pushTo<T>(map: Map<string, T[]>, key: string, value: T): void {
  const values = map.get(key)
  if (values === undefined) map.set(key, [value])
  else values.push(value)
}

function entries<K extends string, V>(record: Readonly<Record<K, V>>): [K, V][] {
  return Object.entries(record) as [K, V][]
}
