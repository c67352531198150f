import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Figure, median } from '../figure.ts'
import { httpConfig, type Subject, startRunner } from '../proxy/subjects.ts'
import { memoryOf } from './process-memory.ts'
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
  for (let round = 0; round < rounds; round++) {
    for (const state of states) {
      log(`idle proxies, round ${round + 1}, ${state.name} …`)
      samples[state.name].push(await sample(state, backend))
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

async function stopped(subject: Subject): Promise<number> {
  await subject.process.terminate() // in good order: only then the compile cache is written
  await subject[Symbol.asyncDispose]()
  return subject.startMs
}
