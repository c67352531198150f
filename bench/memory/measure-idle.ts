import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Figure, median } from '../figure.ts'
import { httpConfig, type Subject, startRunner } from '../proxy/subjects.ts'
import { memoryOf } from './process-memory.ts'
import { startShared } from './shared-runners.ts'
import type { State } from './states.ts'

export interface IdleOptions {
  readonly states: readonly State[]
  /** URL of the server behind the proxies. */
  readonly backend: string
  readonly rounds: number
  readonly log: (line: string) => void
}

/** Proxies at once. */
const COUNTS = [1, 5, 20]
const [MIDDLE, LAST] = [5, 20]
/** After the start: the first collection comes when two seconds were quiet. */
const SETTLE_MS = 8_000

interface IdleSample {
  /** Of all proxies, by their number. */
  readonly pssMb: Readonly<Record<number, number>>
  /** Of the last one that was started. */
  readonly privateMb: number
  readonly startMs: number
  readonly cachedStartMs: number
}

/** Memory of proxies that do nothing, and the time that one takes to start. */
export async function measureIdle({ states, backend, rounds, log }: IdleOptions): Promise<Figure[]> {
  const samples = { before: [] as IdleSample[], now: [] as IdleSample[] }
  const together: Record<number, number>[] = []
  for (let round = 0; round < rounds; round++) {
    for (const state of states) {
      log(`idle proxies, round ${round + 1}, ${state.name} …`)
      samples[state.name].push(await sample(state, backend))
      if (state.name === 'now') together.push(await sampleTogether(state, backend))
    }
  }
  const figure = (name: string, unit: string, of: (sample: IdleSample) => number, limit?: number): Figure => ({
    ...{ name, unit, value: median(samples.now.map(of)), baseline: median(samples.before.map(of)) },
    ...(limit !== undefined && { aim: { of: 'ratio' as const, limit } }),
  })
  return [
    ...COUNTS.map((count) =>
      figure(`PSS of ${count} idle ${count === 1 ? 'proxy' : 'proxies'}`, 'MB', ({ pssMb }) => pssMb[count] ?? Number.NaN),
    ),
    figure('private memory of one more idle proxy', 'MB', ({ privateMb }) => privateMb, 0.92),
    ...togetherFigures(together, {
      pssMb: median(samples.before.map(({ pssMb }) => pssMb[LAST] ?? Number.NaN)),
      oneMoreMb: median(samples.before.map(({ privateMb }) => privateMb)),
    }),
    figure('start until /ready, each as in its image', 'ms', ({ startMs }) => startMs, 0.9),
    figure('start until /ready, both with a compile cache', 'ms', ({ cachedStartMs }) => cachedStartMs),
  ]
}

async function sample(state: State, backend: string): Promise<IdleSample> {
  const bundle = await state.bundle('proxyrunner')
  const start = (env = state.env) => startRunner(httpConfig(backend), { bundle, env })
  await stopped(await start()) // it fills the compile cache
  const startMs = await stopped(await start())
  const cached = { ...state.env, NODE_COMPILE_CACHE: join(state.root, 'dist', 'bench-compile-cache') }
  await stopped(await start(cached))
  const cachedStartMs = await stopped(await start(cached))

  await using running = new AsyncDisposableStack()
  const pssMb: Record<number, number> = {}
  const proxies: Subject[] = []
  for (const count of COUNTS) {
    while (proxies.length < count) proxies.push(running.use(await start()))
    await sleep(SETTLE_MS)
    pssMb[count] = (await memoryOf(proxies.map((proxy) => proxy.process.pid))).pssMb
  }
  const { privateMb } = await memoryOf([proxies.at(-1)?.process.pid ?? -1])
  return { pssMb, privateMb, startMs, cachedStartMs }
}

/** PSS of one process with so many proxies in it. */
async function sampleTogether(state: State, backend: string): Promise<Record<number, number>> {
  await using shared = await startShared(state)
  const pssMb: Record<number, number> = {}
  let count = 0
  for (const wanted of COUNTS) {
    while (count < wanted) {
      await shared.add(httpConfig(backend))
      count++
    }
    await sleep(SETTLE_MS)
    pssMb[wanted] = (await memoryOf([shared.pid])).pssMb
  }
  return pssMb
}

/** Beside as many processes of the state before. */
function togetherFigures(
  samples: readonly Readonly<Record<number, number>>[],
  before: { readonly pssMb: number; readonly oneMoreMb: number },
): Figure[] {
  const at = (count: number) => median(samples.map((pssMb) => pssMb[count] ?? Number.NaN))
  const oneMore = (at(LAST) - at(MIDDLE)) / (LAST - MIDDLE)
  return [
    { name: `PSS of ${LAST} idle proxies in one process`, unit: 'MB', value: at(LAST), baseline: before.pssMb },
    { name: 'one more idle proxy in one process', unit: 'MB', value: oneMore, baseline: before.oneMoreMb },
  ]
}

async function stopped(subject: Subject): Promise<number> {
  await subject.process.terminate() // in good order: only then the compile cache is written
  await subject[Symbol.asyncDispose]()
  return subject.startMs
}
