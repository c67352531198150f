import type { Figure } from './figure.ts'
import { startLoadGenerator } from './proxy/load-generator.ts'
import { measureCalls } from './proxy/measure-calls.ts'
import { measureStart } from './proxy/measure-start.ts'
import { leanStdioCommand, startLeanHttp } from './proxy/subjects.ts'

/* Costs of the proxy runner, over a pass-through that knows nothing of MCP. BENCH_QUICK=1 for a look, in under two minutes. */

export async function run(log: (line: string) => void): Promise<Figure[]> {
  const isQuick = process.env['BENCH_QUICK'] === '1'
  await using backend = await startLeanHttp()
  using load = await startLoadGenerator()
  const shared = { backend, load, command: await leanStdioCommand(), log, rounds: isQuick ? 3 : 5 }
  const starts = await measureStart({ ...shared, rounds: isQuick ? 2 : 5 })
  const calls = await measureCalls({ ...shared, durationMs: isQuick ? 300 : 1_200 })
  return [...calls, ...starts]
}
