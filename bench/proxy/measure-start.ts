import { setTimeout as sleep } from 'node:timers/promises'
import { type Aim, type Figure, median } from '../figure.ts'
import type { LoadGenerator } from './load-generator.ts'
import { httpConfig, type Subject, startBare, startRunner, stdioConfig } from './subjects.ts'

export interface StartOptions {
  readonly backend: Subject
  readonly load: LoadGenerator
  /** Of the stdio server. */
  readonly command: readonly string[]
  readonly rounds: number
}

const IDLE_SESSIONS = 1_000
const SETTLE_MS = 500
const PER_SESSION: Aim = { of: 'difference', limit: 20 }

interface StartSample {
  readonly startMs: number
  readonly idleMb: number
  /** After 1,000 sessions were opened and left alone, over what it was before; both after a collection. NaN where there are none. */
  readonly sessionKb: number
  readonly sessionHeapKb: number
}

/** Start-up, memory when idle, memory of unused sessions. Each sample is a process of its own. */
export async function measureStart({ backend, load, command, rounds }: StartOptions): Promise<Figure[]> {
  const subjects = {
    bare: () => startBare(backend.url),
    http: () => startRunner(httpConfig(backend.url)),
    stdio: () => startRunner(stdioConfig(command)),
  }
  const samples = { bare: [] as StartSample[], http: [] as StartSample[], stdio: [] as StartSample[] }
  for (let round = 0; round < rounds; round++) {
    samples.bare.push(await sample(subjects.bare, undefined))
    samples.http.push(await sample(subjects.http, load))
    samples.stdio.push(await sample(subjects.stdio, load))
  }
  const of = (subject: keyof typeof samples, what: keyof StartSample) => median(samples[subject].map((each) => each[what]))
  return (['http', 'stdio'] as const).flatMap((name): Figure[] => [
    {
      name: `${name}: memory when idle`,
      unit: 'MB',
      value: of(name, 'idleMb'),
      baseline: of('bare', 'idleMb'),
      aim: { of: 'difference', limit: 25 },
    },
    { name: `${name}: RSS per idle session`, unit: 'KB', value: of(name, 'sessionKb'), baseline: 0, aim: PER_SESSION },
    { name: `${name}: heap per idle session`, unit: 'KB', value: of(name, 'sessionHeapKb'), baseline: 0, aim: PER_SESSION },
    { name: `${name}: start until /ready`, unit: 'ms', value: of(name, 'startMs'), baseline: of('bare', 'startMs') },
  ])
}

async function sample(start: () => Promise<Subject>, load: LoadGenerator | undefined): Promise<StartSample> {
  await using subject = await start()
  const { startMs, process, url } = subject
  await sleep(SETTLE_MS)
  const idle = await process.usage()
  if (load === undefined) return { startMs, idleMb: idle.rssKb / 1024, sessionKb: Number.NaN, sessionHeapKb: Number.NaN }
  const open = async (sessions: number, keep: boolean) => {
    await load.order({ order: 'open', target: { url }, era: 'legacy', sessions, tool: 'echo' })
    await load.order({ order: 'close', keep })
    await sleep(SETTLE_MS) // connections that are just closing
    return await process.usage({ gc: true })
  }
  // One-time costs of the first sessions (compiled code, connections, a grown heap) do not count.
  await open(IDLE_SESSIONS, false)
  const before = await open(IDLE_SESSIONS, false)
  const after = await open(IDLE_SESSIONS, true)
  return {
    startMs,
    idleMb: idle.rssKb / 1024,
    sessionKb: (after.rssKb - before.rssKb) / IDLE_SESSIONS,
    sessionHeapKb: (after.heapKb - before.heapKb) / IDLE_SESSIONS,
  }
}
