import type { TestRedis } from '@thv/testkit/redis/redis'
import { request } from 'undici'
import type { Figure } from '../figure.ts'
import type { LoadGenerator } from '../proxy/load-generator.ts'
import type { Subject } from '../proxy/subjects.ts'
import type { BenchProvider } from './provider.ts'

export interface RequestsOptions {
  readonly subject: Subject
  readonly backend: Subject
  readonly load: LoadGenerator
  readonly provider: BenchProvider
  readonly redis: TestRedis | undefined
  readonly headers: readonly string[]
  readonly durationMs: number
}

const MIN_CALLS = 2_000

interface Counts {
  readonly backend: number
  readonly provider: number
  readonly redis: number
}

/** Requests that calls in known sessions with a known token cause elsewhere. */
export async function requestsPerCall(name: string, options: RequestsOptions): Promise<Figure[]> {
  const { subject, load, redis, headers, durationMs } = options
  await load.order({ order: 'open', target: { url: subject.url, headers }, era: 'legacy', sessions: 64, tool: 'echo' })
  const before = await countsOf(options)
  const report = await load.order({ order: 'run', durationMs, minCalls: MIN_CALLS })
  const after = await countsOf(options)
  await load.order({ order: 'close' })
  const calls = report?.calls ?? Number.NaN
  const perCall = (what: keyof Counts) => (after[what] - before[what]) / calls
  const figures: Figure[] = [
    { name: `requests to the backend per call, ${name}`, unit: '', value: perCall('backend'), baseline: 1, aim: { of: 'ratio', limit: 1 } },
    {
      name: `requests to the provider in ${calls} calls, ${name}`,
      unit: '',
      value: after.provider - before.provider,
      baseline: 0,
      aim: { of: 'difference', limit: 0.5 },
    },
  ]
  if (redis !== undefined)
    figures.push({
      name: `requests to Redis per call, ${name}`,
      unit: '',
      value: perCall('redis'),
      baseline: 1,
      aim: { of: 'ratio', limit: 1 },
    })
  return figures
}

async function countsOf({ backend, provider, redis }: RequestsOptions): Promise<Counts> {
  const { body } = await request(new URL('/requests', backend.url))
  return { backend: Number(await body.text()), provider: provider.questions, redis: redis === undefined ? 0 : await scriptCalls(redis) }
}

/** All that the runner asks of Redis are scripts; commands inside of them are no requests. */
async function scriptCalls(redis: TestRedis): Promise<number> {
  const reply = await redis.command('INFO', 'commandstats')
  return ['eval', 'evalsha'].reduce((sum, name) => sum + Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(reply)?.[1] ?? 0), 0)
}
