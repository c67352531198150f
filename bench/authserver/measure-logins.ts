import type { TestRedis } from '@thv/testkit/redis/redis'
import { type Figure, median } from '../figure.ts'
import type { LoginSubject } from './subjects.ts'
import { logIn, refresh, type Tokens } from './visitor.ts'

export interface LoginsOptions {
  /** The library with the same provider behind it, and with its own pages instead. */
  readonly bare: LoginSubject
  readonly alone: LoginSubject
  readonly memory: LoginSubject
  /** Absent where there is no Redis. */
  readonly redis: { readonly login: LoginSubject; readonly server: TestRedis } | undefined
  readonly rounds: number
  readonly logins: number
  readonly refreshes: number
  readonly log: (line: string) => void
}

const AT_A_TIME = 4
/** Until the compiler is done with most of it: a login runs much code a few times. */
const WARM_UP_TIMES = 3
const LIMITS = { memory: 1.3, redis: 2 }
const TRIPS = { login: 24, refresh: 6 }

type Work = 'login' | 'refresh'

interface Cost {
  readonly cpuUs: number
  readonly trips: number
}

/** CPU of a login and of a refresh, in turns with the library; requests to Redis, counted there. */
export async function measureLogins(options: LoginsOptions): Promise<Figure[]> {
  const { bare, alone, memory, redis, rounds, log } = options
  const subjects = new Map<string, LoginSubject>([
    ['bare', bare],
    ['alone', alone],
    ['memory', memory],
    ...(redis === undefined ? [] : [['redis', redis.login] as const]),
  ])
  for (const subject of subjects.values()) for (let time = 0; time < WARM_UP_TIMES; time++) await costs(subject, options, undefined)
  const samples: { readonly name: string; readonly round: number; readonly costs: Readonly<Record<Work, Cost>> }[] = []
  for (let round = 0; round < rounds; round++) {
    for (const [name, subject] of subjects) {
      // A runner that was quiet during the turns of the others has given its compiled code back.
      await costs(subject, options, undefined)
      samples.push({ name, round, costs: await costs(subject, options, name === 'redis' ? redis?.server : undefined) })
    }
    log(`logins: round ${round + 1} of ${rounds}`)
  }
  const cpuOf = (name: string, work: Work) => samples.filter((sample) => sample.name === name).map((sample) => sample.costs[work].cpuUs)
  const works: readonly Work[] = ['refresh', 'login']
  const overAlone: Figure = {
    name: 'CPU per login, memory, over the library with its own pages',
    unit: 'µs',
    value: ratioOf('memory', 'alone', 'login') * median(cpuOf('alone', 'login')),
    baseline: median(cpuOf('alone', 'login')),
  }
  const figures = ['memory', 'redis']
    .filter((name) => subjects.has(name))
    .flatMap((name) =>
      works.flatMap((work): Figure[] => {
        const baseline = median(cpuOf('bare', work))
        const ratio = ratioOf(name, 'bare', work)
        const limit = name === 'memory' ? LIMITS.memory : LIMITS.redis
        const cpu: Figure = { name: `CPU per ${work}, ${name}`, unit: 'µs', value: ratio * baseline, baseline, aim: { of: 'ratio', limit } }
        if (name === 'memory') return [cpu]
        const trips = median(samples.filter((sample) => sample.name === name).map((sample) => sample.costs[work].trips))
        return [
          cpu,
          { name: `requests to Redis per ${work}`, unit: '', value: trips, baseline: 0, aim: { of: 'difference', limit: TRIPS[work] } },
        ]
      }),
    )
  return [...figures, overAlone]

  function ratioOf(name: string, baseline: string, work: Work): number {
    const baselineUs = cpuOf(baseline, work)
    return median(cpuOf(name, work).map((us, round) => us / (baselineUs[round] ?? Number.NaN)))
  }
}

async function costs({ subject, target }: LoginSubject, options: LoginsOptions, redis: TestRedis | undefined): Promise<Record<Work, Cost>> {
  const { logins, refreshes } = options
  const tokens: Tokens[] = []
  const login = await cost(logins, async (n) => void tokens.push(await logIn(target, `user-${n % 50}`)))
  const chains = tokens.slice(0, AT_A_TIME)
  const refreshed = await cost(refreshes, async (_n, lane) => {
    const chain = chains[lane]
    if (chain !== undefined) chains[lane] = await refresh(target, chain)
  })
  return { login, refresh: refreshed }

  async function cost(count: number, work: (n: number, lane: number) => Promise<void>): Promise<Cost> {
    const [before, tripsBefore] = [await subject.process.usage(), await scriptCalls(redis)]
    let next = 0
    const lane = async (_: unknown, index: number) => {
      while (next < count) await work(next++, index)
    }
    await Promise.all(Array.from({ length: AT_A_TIME }, lane))
    const [after, tripsAfter] = [await subject.process.usage(), await scriptCalls(redis)]
    return { cpuUs: (after.cpuUs - before.cpuUs) / count, trips: (tripsAfter - tripsBefore) / count }
  }
}

/** All that the server asks of Redis are scripts. Its look at revocations every two seconds is counted, too. */
async function scriptCalls(redis: TestRedis | undefined): Promise<number> {
  const reply = (await redis?.command('INFO', 'commandstats')) ?? ''
  return ['eval', 'evalsha'].reduce((sum, name) => sum + Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(reply)?.[1] ?? 0), 0)
}
