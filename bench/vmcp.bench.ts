import type { Figure } from './figure.ts'
import { startLoadGenerator } from './proxy/load-generator.ts'
import { startLeanHttp } from './proxy/subjects.ts'
import { measureVmcpCalls } from './vmcp/measure-calls.ts'
import { measureVmcpMemory } from './vmcp/measure-memory.ts'
import { measureSessionStart } from './vmcp/measure-session-start.ts'

/* Costs of the virtual server, over a pass-through that knows nothing of MCP. BENCH_QUICK=1 for a look. */

export async function run(log: (line: string) => void): Promise<Figure[]> {
  const isQuick = process.env['BENCH_QUICK'] === '1'
  await using modern = await startLeanHttp()
  await using legacy = await startLeanHttp({ THV_ERA: 'legacy' })
  using load = await startLoadGenerator()
  const shared = { modern, legacy, load, log, rounds: isQuick ? 2 : 5 }
  const calls = await measureVmcpCalls({ ...shared, durationMs: isQuick ? 300 : 800 })
  const starts = await measureSessionStart(shared)
  const memory = await measureVmcpMemory(shared)
  return [...calls, ...starts, ...memory]
}
