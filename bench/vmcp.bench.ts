import type { Figure } from './figure.ts'
import { startLoadGenerator } from './proxy/load-generator.ts'
import { startLeanHttp } from './proxy/subjects.ts'
import { measureVmcpCalls } from './vmcp/measure-calls.ts'
import { measureColdStart } from './vmcp/measure-cold-start.ts'
import { measureListChanges } from './vmcp/measure-list-changes.ts'
import { measureVmcpMemory } from './vmcp/measure-memory.ts'
import { measureSessionStart } from './vmcp/measure-session-start.ts'
import { measureTokens } from './vmcp/measure-tokens.ts'
import { measureWorkflow } from './vmcp/measure-workflow.ts'

/* Costs of the virtual server, over a pass-through that knows nothing of MCP. BENCH_QUICK=1 for a look. */

export async function run(log: (line: string) => void): Promise<Figure[]> {
  const isQuick = process.env['BENCH_QUICK'] === '1'
  await using modern = await startLeanHttp()
  await using legacy = await startLeanHttp({ THV_ERA: 'legacy' })
  using load = await startLoadGenerator()
  const shared = { modern, legacy, load, log, rounds: isQuick ? 2 : 5 }
  const calls = await measureVmcpCalls({ ...shared, isQuick, durationMs: isQuick ? 300 : 800 })
  const tokens = await measureTokens(shared)
  const starts = await measureSessionStart(shared)
  const cold = await measureColdStart(shared)
  const changes = await measureListChanges(shared)
  const workflows = await measureWorkflow({ ...shared, durationMs: isQuick ? 500 : 2_000 })
  const memory = await measureVmcpMemory(shared)
  return [...calls, ...tokens, ...starts, ...cold, ...changes, ...workflows, ...memory]
}
