import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { callQuickStart, callVirtualServer, runUp } from '../cluster/up.ts'
import type { Figure } from '../figure.ts'
import { familyOf, memoryOf, type ProcessMemory } from './process-memory.ts'
import type { State } from './states.ts'

/** After the calls: proxies give memory back after a quiet minute. */
const SETTLE_MS = 70_000
const QUICK_SETTLE_MS = 5_000

/** The quick start has got a virtual server since the state before; both run the two servers that both have. */
function sameServers(root: string): string[] {
  const file = (name: string) => join(root, 'deploy/examples/quickstart', name)
  return ['--no-examples', '-f', file('everything.yaml'), '-f', file('everything-http.yaml')]
}

/** `thv up` with the example servers of both states, after a call to each of them: all processes of it, those of the MCP servers included. */
export async function measureQuickStart(states: readonly State[], log: (line: string) => void): Promise<Figure[]> {
  const memory = new Map<State['name'] | 'one process', ProcessMemory>()
  for (const state of states) {
    log(`the quick start, ${state.name} …`)
    for (const app of ['cli', 'operator', 'proxyrunner', 'registry'] as const) await state.bundle(app)
    const args = sameServers(state.root)
    memory.set(state.name, await quickStart(state, { args }))
    if (state.name === 'now') memory.set('one process', await quickStart(state, { args: [...args, '--one-proxy-process'] }))
  }
  const [before, now] = [memory.get('before')?.pssMb ?? Number.NaN, memory.get('now')?.pssMb ?? Number.NaN]
  const together = memory.get('one process')?.pssMb ?? Number.NaN
  return [
    {
      name: 'quick start, PSS of all processes after a quiet minute',
      unit: 'MB',
      value: now,
      baseline: before,
      aim: { of: 'ratio', limit: 0.85 },
    },
    { name: 'quick start with one process for all proxies, the same', unit: 'MB', value: together, baseline: before },
  ]
}

/** The whole quick start, against the same without its virtual server and the backend of that in the process of the platform. */
export async function measureVirtualServer(
  state: State,
  { isQuick, log }: { isQuick: boolean; log: (line: string) => void },
): Promise<Figure[]> {
  const settleMs = isQuick ? QUICK_SETTLE_MS : SETTLE_MS
  log('the quick start without its virtual server …')
  const without = await quickStart(state, { args: sameServers(state.root), settleMs })
  log('the quick start …')
  const whole = await quickStart(state, { args: [], settleMs, isWhole: true })
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
}

async function quickStart(state: State, { args, settleMs = SETTLE_MS, isWhole = false }: QuickStartRun): Promise<ProcessMemory> {
  const folder = await mkdtemp(join(tmpdir(), 'thv-bench-memory-'))
  try {
    const first = await runUp(join(folder, 'data'), args, state.root) // it installs the servers
    await first.stop()
    const running = await runUp(join(folder, 'data'), args, state.root)
    try {
      await callQuickStart(running)
      if (isWhole) await callVirtualServer(running)
      await sleep(settleMs)
      return await memoryOf(await familyOf(running.pid))
    } finally {
      await running.stop()
    }
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}
