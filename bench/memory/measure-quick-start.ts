import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { callQuickStart, runUp } from '../cluster/up.ts'
import type { Figure } from '../figure.ts'
import { familyOf, memoryOf, type ProcessMemory } from './process-memory.ts'
import type { State } from './states.ts'

/** After the calls: proxies give memory back after a quiet minute. */
const SETTLE_MS = 70_000

/** The quick start has got a virtual server since the state before; both run the two servers that both have. */
function sameServers(root: string): string[] {
  const file = (name: string) => join(root, 'deploy/examples/quickstart', name)
  return ['--no-examples', '-f', file('everything.yaml'), '-f', file('everything-http.yaml')]
}

/** `thv up` with its example servers, after a call to each of them: all processes of it, those of the MCP servers included. */
export async function measureQuickStart(states: readonly State[], log: (line: string) => void): Promise<Figure[]> {
  const memory = new Map<State['name'] | 'one process', ProcessMemory>()
  for (const state of states) {
    log(`the quick start, ${state.name} …`)
    for (const app of ['cli', 'operator', 'proxyrunner', 'registry'] as const) await state.bundle(app)
    memory.set(state.name, await quickStart(state))
    if (state.name === 'now') memory.set('one process', await quickStart(state, ['--one-proxy-process']))
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

async function quickStart(state: State, flags: readonly string[] = []): Promise<ProcessMemory> {
  const folder = await mkdtemp(join(tmpdir(), 'thv-bench-memory-'))
  try {
    const args = [...sameServers(state.root), ...flags]
    const first = await runUp(join(folder, 'data'), args, state.root) // it installs the servers
    await first.stop()
    const running = await runUp(join(folder, 'data'), args, state.root)
    try {
      await callQuickStart(running)
      await sleep(SETTLE_MS)
      return await memoryOf(await familyOf(running.pid))
    } finally {
      await running.stop()
    }
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}
