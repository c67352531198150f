import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startRedis } from '@thv/testkit/redis/redis'
import { redisProblem } from '@thv/testkit/redis/redis-programs'
import type { EvaluatorReport } from './chain/evaluator.ts'
import { measureLists } from './chain/measure-lists.ts'
import { measureStalls } from './chain/measure-stalls.ts'
import { measureVariants } from './chain/measure-variants.ts'
import { startBenchProvider } from './chain/provider.ts'
import { variantsOf } from './chain/variants.ts'
import { measure } from './child.ts'
import type { Figure } from './figure.ts'
import { startLoadGenerator } from './proxy/load-generator.ts'
import { startLeanHttp } from './proxy/subjects.ts'

/* Costs of the middleware, over the same runner without any. BENCH_ROUNDS=5 for figures to write down. */

const PASSWORD = 'only-for-benchmarks'

export async function run(log: (line: string) => void): Promise<Figure[]> {
  const rounds = Number(process.env['BENCH_ROUNDS'] ?? '3')
  await using stack = new AsyncDisposableStack()
  const provider = stack.use(await startBenchProvider())
  const problem = redisProblem()
  if (problem !== undefined) log(`no figures with Redis: ${problem}`)
  const redis = problem === undefined ? stack.use(await startRedis({ password: PASSWORD })) : undefined
  const folder = await mkdtemp(join(tmpdir(), 'thv-bench-chain-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const address = redis === undefined ? undefined : { address: `${redis.host}:${redis.port}`, password: PASSWORD }
  const variants = variantsOf({ provider, redis: address, folder })
  const load = stack.use(await startLoadGenerator())
  const backend = stack.use(await startLeanHttp())
  const evaluated = [await evaluator(10, 50), await evaluator(1_000, 200)]
  const calls = await measureVariants({ backend, load, provider, redis, variants, rounds, durationMs: 400, log })
  const lists = await measureLists({ load, provider, rounds, durationMs: 400 })
  const stalls = await measureStalls({ backend, load, provider, folder, rounds, durationMs: 400 })
  return [...calls, ...lists, ...evaluated, ...stalls]
}

/** The Cedar engine takes at least so many times as long. */
async function evaluator(policies: number, times: number): Promise<Figure> {
  const { oursUs, engineUs } = await measure<EvaluatorReport>('chain/evaluator.ts', { THV_POLICIES: String(policies) })
  const aim = { of: 'ratio', limit: 1 / times } as const
  return { name: `decision with ${policies} policies, over the Cedar engine`, unit: 'µs', value: oursUs, baseline: engineUs, aim }
}
