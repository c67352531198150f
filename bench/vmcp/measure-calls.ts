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
/** Until the compiler is done: at first, and again after the turns of the others, in which a quiet process gave its compiled code back. */
const WARM_UP_CALLS = 40_000
const WARM_AGAIN_CALLS = 6_000
const MIN_CALLS = 6_000
const QUICK = { warmUp: 2_000, warmAgain: 500, min: 500 }

/** Conditions under which bare pass-through and virtual servers take turns. */
interface Cell {
  readonly client: Era
  readonly backend: Era
  readonly backends: number
  readonly sessions: number
}

const ERAS: readonly Era[] = ['legacy', 'modern']
const WHO = ['bare', 'vmcp'] as const
const CELLS: readonly Cell[] = [
  ...ERAS.flatMap((client) => ERAS.map((backend): Cell => ({ client, backend, backends: 1, sessions: 64 }))),
  ...[1, 16].map((sessions): Cell => ({ client: 'modern', backend: 'modern', backends: 1, sessions })),
  ...[1, 16].map((sessions): Cell => ({ client: 'legacy', backend: 'legacy', backends: 1, sessions })),
  ...BACKENDS.slice(1).map((backends): Cell => ({ client: 'modern', backend: 'modern', backends, sessions: 64 })),
  ...BACKENDS.slice(1).map((backends): Cell => ({ client: 'legacy', backend: 'legacy', backends, sessions: 64 })),
]

/** CPU of one call of the process between, in turns with the bare pass-through before the same server. */
export async function measureVmcpCalls({
  modern,
  legacy,
  load,
  rounds,
  durationMs,
  isQuick,
  log,
}: VmcpBenchOptions & { durationMs: number; isQuick: boolean }): Promise<Figure[]> {
  const calls = isQuick ? QUICK : { warmUp: WARM_UP_CALLS, warmAgain: WARM_AGAIN_CALLS, min: MIN_CALLS }
  await using stack = new AsyncDisposableStack()
  const backendOf = (era: Era) => (era === 'modern' ? modern : legacy)
  const bare = new Map<Era, Subject>()
  const vmcps = new Map<string, Subject>()
  for (const era of ERAS) {
    bare.set(era, stack.use(await startBare(backendOf(era).url, profileArgs())))
    for (const count of BACKENDS)
      vmcps.set(`${era} ${count}`, stack.use(await startVmcp(vmcpConfig(manyOf(backendOf(era).url, count)), { nodeArgs: profileArgs() })))
  }
  const samples = new Map<string, Sample[]>()
  const subjectOf = ({ client, backend, backends }: Cell, who: 'bare' | 'vmcp') => {
    const subject = who === 'bare' ? bare.get(client) : vmcps.get(`${backend} ${backends}`)
    if (subject === undefined) throw new Error('there is no such subject')
    return subject
  }
  const once = async (cell: Cell, who: 'bare' | 'vmcp', minCalls: number): Promise<Sample> => {
    const { client: era, sessions } = cell
    const { url, process: counted } = subjectOf(cell, who)
    return await burst(load, { target: { url }, counted, era, sessions, tool: 'echo', durationMs, minCalls })
  }
  // One session alone is slow, and warms nothing up that others do not.
  for (const cell of CELLS.filter(({ sessions }) => sessions === 64)) for (const who of WHO) await once(cell, who, calls.warmUp)
  for (let round = 0; round < rounds; round++) {
    for (const cell of CELLS)
      for (const who of WHO) {
        await once({ ...cell, sessions: 64 }, who, calls.warmAgain)
        push(samples, `${nameOf(cell)} | ${who}`, await once(cell, who, cell.sessions === 1 ? calls.min / 6 : calls.min))
      }
    log(`round ${round + 1} of ${rounds}`)
  }
  const requests = await countRequests(modern, vmcps.get('modern 20'), load)
  log(table(samples))
  const cpu = (cell: Cell, who: 'bare' | 'vmcp') =>
    median((samples.get(`${nameOf(cell)} | ${who}`) ?? []).map(({ cpuUsPerCall }) => cpuUsPerCall))
  const perCell = CELLS.map(
    (cell): Figure => ({
      ...{ name: `CPU per call, ${nameOf(cell)}`, unit: 'µs', value: cpu(cell, 'vmcp'), baseline: cpu(cell, 'bare') },
      aim: { of: 'ratio', limit: cell.client === cell.backend ? 1.8 : 2.5 },
    }),
  )
  const growth = ERAS.map((era): Figure => {
    const cell = (backends: number): Cell => ({ client: era, backend: era, backends, sessions: 64 })
    return {
      ...{
        name: `CPU per call, ${era}, 100 backends against 1`,
        unit: 'µs',
        value: cpu(cell(100), 'vmcp'),
        baseline: cpu(cell(1), 'vmcp'),
      },
      aim: { of: 'ratio', limit: 1.1 },
    }
  })
  const perCall: Figure = {
    ...{ name: 'backend requests per call, modern, 20 backends', unit: 'requests', value: requests.arrived / requests.calls, baseline: 1 },
    aim: { of: 'ratio', limit: 1.01 },
  }
  return [...perCell, ...growth, perCall]
}

/** Lists and health checks of the meantime are few: the calls are thousands. */
async function countRequests(
  backend: Subject,
  vmcp: Subject | undefined,
  load: LoadGenerator,
): Promise<{ calls: number; arrived: number }> {
  if (vmcp === undefined) throw new Error('there is no such subject')
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
