import { type Figure, median, renderColumns } from '../figure.ts'
import { burst, type Sample } from '../proxy/burst.ts'
import type { LoadGenerator } from '../proxy/load-generator.ts'
import type { Era } from '../proxy/load-plan.ts'
import { type Subject, startBare } from '../proxy/subjects.ts'
import { startVmcp, vmcpConfig } from './subjects.ts'

export interface VmcpBenchOptions {
  /** Lean servers: one of both eras, one of the legacy era alone. */
  readonly modern: Subject
  readonly legacy: Subject
  readonly load: LoadGenerator
  readonly rounds: number
  readonly log: (line: string) => void
}

const BACKENDS = [1, 5, 20, 100]
/** Until the compiler is done. */
const WARM_UP_CALLS = 40_000
const MIN_CALLS = 6_000
const QUICK = { warmUp: 2_000, min: 500 }

/** Conditions under which bare pass-through and virtual server take turns. */
interface Cell {
  readonly client: Era
  readonly backend: Era
  readonly backends: number
  readonly sessions: number
}

const ERAS: readonly Era[] = ['legacy', 'modern']
const CROSSED = { legacy: 'modern', modern: 'legacy' } as const
const SESSIONS = [64, 16, 1]

/** Conditions that one pair of processes is measured under. */
const GROUPS: readonly (readonly [Cell, ...Cell[]])[] = [
  ...ERAS.map((client) => [{ client, backend: CROSSED[client], backends: 1, sessions: 64 }] as const),
  ...ERAS.map((era) => {
    const [first = 64, ...others] = SESSIONS
    const cell = (sessions: number): Cell => ({ client: era, backend: era, backends: 1, sessions })
    return [cell(first), ...others.map(cell)] as const
  }),
  ...ERAS.flatMap((era) => BACKENDS.slice(1).map((backends) => [{ client: era, backend: era, backends, sessions: 64 }] as const)),
]

export interface CallsOptions extends VmcpBenchOptions {
  readonly durationMs: number
  readonly isQuick: boolean
}

/** CPU of one call of the process between, in turns with the bare pass-through before the same server. */
export async function measureVmcpCalls(options: CallsOptions): Promise<Figure[]> {
  const { modern, legacy, load, log } = options
  const samples = new Map<string, Sample[]>()
  const backendOf = (era: Era) => (era === 'modern' ? modern : legacy).url
  const startOne = (era: Era, count: number) => startVmcp(vmcpConfig(manyOf(backendOf(era), count)), { nodeArgs: profileArgs() })
  for (const group of GROUPS) {
    const [{ client, backend, backends }] = group
    await using bare = await startBare(backendOf(client), profileArgs())
    await using vmcp = await startOne(backend, backends)
    await takeTurns(
      { bare, vmcp },
      { ...options, cells: group, push: (cell, who, sample) => push(samples, `${nameOf(cell)} | ${who}`, sample) },
    )
    log(`measured: ${client} client, ${backends} ${backend} backend${backends === 1 ? '' : 's'}`)
  }
  const growths: Figure[] = []
  for (const era of ERAS) {
    await using one = await startOne(era, 1)
    await using many = await startOne(era, 100)
    growths.push(await growthOf({ one, many }, era, options))
  }
  await using counted = await startOne('modern', 20)
  const requests = await countRequests(modern, counted, load)
  log(table(samples))
  const cpu = (cell: Cell, who: string) => cpuOf(samples.get(`${nameOf(cell)} | ${who}`) ?? [])
  const perCell = GROUPS.flat().map(
    (cell): Figure => ({
      ...{ name: `CPU per call, ${nameOf(cell)}`, unit: 'µs', value: cpu(cell, 'vmcp'), baseline: cpu(cell, 'bare') },
      aim: { of: 'ratio', limit: cell.client === cell.backend ? 1.8 : 2.5 },
    }),
  )
  const perCall: Figure = {
    ...{ name: 'backend requests per call, modern, 20 backends', unit: 'requests', value: requests.arrived / requests.calls, baseline: 1 },
    aim: { of: 'ratio', limit: 1.01 },
  }
  return [...perCell, ...growths, perCall]
}

interface Turns extends CallsOptions {
  readonly cells: readonly [Cell, ...Cell[]]
  push(cell: Cell, who: string, sample: Sample): void
}

/**
 * Two processes in turns, both as warm as they get. None rests for longer than a burst of the other: a process that is quiet for seconds gives its
 * compiled code back with other memory, and what is measured then is the compiler.
 */
async function takeTurns(
  pair: Readonly<Record<string, Subject>>,
  { cells, load, rounds, durationMs, isQuick, push }: Turns,
): Promise<void> {
  const calls = isQuick ? QUICK : { warmUp: WARM_UP_CALLS, min: MIN_CALLS }
  const once = ({ url, process: counted }: Subject, { client: era, sessions }: Cell, minCalls: number) =>
    burst(load, { target: { url }, counted, era, sessions, tool: 'echo', durationMs, minCalls })
  // By turns here too: the first one would cool down while the second is warmed up.
  for (let warm = 0; warm < calls.warmUp; warm += calls.min)
    for (const subject of Object.values(pair)) await once(subject, cells[0], calls.min)
  for (const cell of cells)
    for (let round = 0; round < rounds; round++)
      for (const [who, subject] of Object.entries(pair))
        push(cell, who, await once(subject, cell, cell.sessions === 1 ? calls.min / 6 : calls.min))
}

/** A virtual server with many backends against one with a single one, themselves in turns: other pairs are minutes apart. */
async function growthOf(pair: { readonly one: Subject; readonly many: Subject }, era: Era, options: CallsOptions): Promise<Figure> {
  const samples = new Map<string, Sample[]>()
  const cell: Cell = { client: era, backend: era, backends: 100, sessions: 64 }
  await takeTurns({ ...pair }, { ...options, cells: [cell], push: (_, who, sample) => push(samples, who, sample) })
  const cpu = (who: string) => cpuOf(samples.get(who) ?? [])
  return {
    ...{ name: `CPU per call, ${era}, 100 backends against 1`, unit: 'µs', value: cpu('many'), baseline: cpu('one') },
    aim: { of: 'ratio', limit: 1.1 },
  }
}

function cpuOf(samples: readonly Sample[]): number {
  return median(samples.map(({ cpuUsPerCall }) => cpuUsPerCall))
}

/** Lists and health checks of the meantime are few: the calls are thousands. */
async function countRequests(backend: Subject, vmcp: Subject, load: LoadGenerator): Promise<{ calls: number; arrived: number }> {
  const arrived = async () => Number(await (await fetch(new URL('/requests', backend.url))).text())
  await load.order({ order: 'open', target: { url: vmcp.url }, era: 'modern', sessions: 16, tool: 'echo' })
  const before = await arrived()
  const report = await load.order({ order: 'run', durationMs: 500, minCalls: 4_000 })
  const after = await arrived()
  await load.order({ order: 'close' })
  return { calls: report?.calls ?? Number.NaN, arrived: after - before }
}

/** One server under many names costs the virtual server what as many servers would. */
export function manyOf(url: string, count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`b${String(index).padStart(3, '0')}`, url]))
}

/** `BENCH_CPU_PROF=FOLDER` leaves a profile of every process there. */
function profileArgs(): string[] {
  const folder = process.env['BENCH_CPU_PROF']
  return folder === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', folder]
}

function nameOf({ client, backend, backends, sessions }: Cell): string {
  return `${client} client, ${backends} ${backend} backend${backends === 1 ? '' : 's'}, ${sessions} session${sessions === 1 ? '' : 's'}`
}

function push<T>(map: Map<string, T[]>, key: string, value: T): void {
  map.set(key, [...(map.get(key) ?? []), value])
}

function table(samples: ReadonlyMap<string, readonly Sample[]>): string {
  const rows = [...samples].map(([key, each]) => {
    const of = (what: keyof Sample, digits: number) => median(each.map((sample) => sample[what])).toFixed(digits)
    return [...key.split(' | '), of('callsPerSecond', 0), of('p50Ms', 2), of('p99Ms', 2), of('cpuUsPerCall', 0)]
  })
  return renderColumns([['conditions', 'who', 'calls/s', 'p50 ms', 'p99 ms', 'CPU µs/call'], ...rows], 2)
}
