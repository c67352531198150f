import type { Figure } from '../figure.ts'
import { startBare } from '../proxy/subjects.ts'
import { manyOf, type VmcpBenchOptions } from './measure-calls.ts'
import { startVmcp, vmcpConfig } from './subjects.ts'

const IDLE_SESSIONS = 1_000
const MB = 1_024

/** RSS after a collection: idle, after a load, and with sessions that do nothing. */
export async function measureVmcpMemory({ legacy, load }: VmcpBenchOptions): Promise<Figure[]> {
  await using bare = await startBare(legacy.url)
  await using vmcp = await startVmcp(vmcpConfig(manyOf(legacy.url, 20)))
  const idle = { bare: await bare.process.usage({ gc: true }), vmcp: await vmcp.process.usage({ gc: true }) }
  for (const { url } of [bare, vmcp]) {
    await load.order({ order: 'open', target: { url }, era: 'legacy', sessions: 64, tool: 'echo' })
    await load.order({ order: 'run', durationMs: 2_000, minCalls: 2_000 })
    await load.order({ order: 'close' })
  }
  const loaded = { bare: await bare.process.usage({ gc: true }), vmcp: await vmcp.process.usage({ gc: true }) }
  await load.order({ order: 'open', target: { url: vmcp.url }, era: 'legacy', sessions: IDLE_SESSIONS, tool: 'echo' })
  await load.order({ order: 'close', keep: true })
  const kept = await vmcp.process.usage({ gc: true })
  const difference = (limit: number) => ({ of: 'difference' as const, limit })
  return [
    { name: 'memory idle, 20 backends', unit: 'MB', value: idle.vmcp.rssKb / MB, baseline: idle.bare.rssKb / MB, aim: difference(35) },
    {
      ...{ name: 'memory after the load, 20 backends, 64 sessions', unit: 'MB' },
      ...{ value: loaded.vmcp.rssKb / MB, baseline: loaded.bare.rssKb / MB, aim: { of: 'ratio', limit: 2 } },
    },
    {
      ...{ name: `heap per idle session, of ${IDLE_SESSIONS}`, unit: 'KB', baseline: 0 },
      ...{ value: (kept.heapKb - loaded.vmcp.heapKb) / IDLE_SESSIONS, aim: difference(20) },
    },
  ]
}
