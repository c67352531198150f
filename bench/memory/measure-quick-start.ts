import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { callQuickStart, callVirtualServer, runUp } from '../cluster/up.ts'
import type { Figure } from '../figure.ts'
import { familyOf, memoryOf, nameOf } from './process-memory.ts'
import type { State } from './states.ts'

/** After the calls: the garbage of the start is collected; proxies give memory back after a quiet minute. */
const SOON_MS = 12_000
const SETTLE_MS = 70_000
const QUICK_SETTLE_MS = 5_000

/** The quick start has got a virtual server since the state before; both run the two servers that both have. */
function sameServers(root: string): string[] {
  const file = (name: string) => join(root, 'deploy/examples/quickstart', name)
  return ['--no-examples', '-f', file('everything.yaml'), '-f', file('everything-http.yaml')]
}

/** `thv up` with the example servers of both states, after a call to each of them: all processes of it, those of the MCP servers included. */
export async function measureQuickStart(states: readonly State[], log: (line: string) => void): Promise<Figure[]> {
  const memory = new Map<State['name'] | 'one process', QuickStartMemory>()
  for (const state of states) {
    log(`the quick start, ${state.name} …`)
    for (const app of ['cli', 'operator', 'proxyrunner', 'registry'] as const) await state.bundle(app)
    const args = sameServers(state.root)
    memory.set(state.name, await quickStart(state, { args, log }))
    if (state.name === 'now') memory.set('one process', await quickStart(state, { args: [...args, '--one-proxy-process'], log }))
  }
  const figure = (name: string, of: keyof QuickStartMemory, whose: 'now' | 'one process' = 'now'): Figure => ({
    ...{ name, unit: 'MB', value: memory.get(whose)?.[of] ?? Number.NaN, baseline: memory.get('before')?.[of] ?? Number.NaN },
    ...(whose === 'now' && { aim: { of: 'ratio', limit: 0.85 } }),
  })
  return [
    figure('quick start, PSS of all processes 12 s after the calls', 'soonMb'),
    figure('quick start, PSS of all processes after a quiet minute', 'pssMb'),
    figure('quick start with one process for all proxies, the same', 'pssMb', 'one process'),
  ]
}

/** PSS of all processes. */
interface QuickStartMemory {
  readonly soonMb: number
  /** When it has settled. */
  readonly pssMb: number
}

/** The whole quick start, against the same without its virtual server and the backend of that in the process of the platform. */
export async function measureVirtualServer(
  state: State,
  { isQuick, log }: { isQuick: boolean; log: (line: string) => void },
): Promise<Figure[]> {
  const settleMs = isQuick ? QUICK_SETTLE_MS : SETTLE_MS
  log('the quick start without its virtual server …')
  const without = await quickStart(state, { args: sameServers(state.root), settleMs, log })
  log('the quick start …')
  const whole = await quickStart(state, { args: [], settleMs, isWhole: true, log })
  return [
    {
      name: 'quick start with its virtual server and the third backend, PSS of all processes',
      unit: 'MB',
      value: whole.pssMb,
      baseline: without.pssMb,
      aim: { of: 'ratio', limit: 1.15 },
    },
  ]
}

interface QuickStartRun {
  readonly args: readonly string[]
  readonly settleMs?: number
  /** It has the virtual server. */
  readonly isWhole?: boolean
  readonly log: (line: string) => void
}

async function quickStart(state: State, { args, settleMs = SETTLE_MS, isWhole = false, log }: QuickStartRun): Promise<QuickStartMemory> {
  const folder = await mkdtemp(join(tmpdir(), 'thv-bench-memory-'))
  try {
    const first = await runUp(join(folder, 'data'), args, state.root) // it installs the servers
    await first.stop()
    const running = await runUp(join(folder, 'data'), args, state.root)
    try {
      await callQuickStart(running)
      if (isWhole) await callVirtualServer(running)
      const soonMs = Math.min(SOON_MS, settleMs)
      await sleep(soonMs)
      const { pssMb: soonMb } = await memoryOf(await familyOf(running.pid))
      await sleep(settleMs - soonMs)
      const family = await familyOf(running.pid)
      for (const pid of family) log(`  ${(await memoryOf([pid])).pssMb.toFixed(1)} MB  ${await nameOf(pid)}`)
      return { soonMb, pssMb: (await memoryOf(family)).pssMb }
    } finally {
      await running.stop()
    }
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}
