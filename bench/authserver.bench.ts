import { MEMORY_SETTINGS } from '@thv/programs/memory-settings'
import { startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { startRedis } from '@thv/testkit/redis/redis'
import { redisProblem } from '@thv/testkit/redis/redis-programs'
import { measureCalls } from './authserver/measure-calls.ts'
import { measureLogins } from './authserver/measure-logins.ts'
import type { SessionsReport } from './authserver/sessions.ts'
import { bundleWithoutServer, startBareProvider, startLoginRunner } from './authserver/subjects.ts'
import { measure } from './child.ts'
import { type Figure, median } from './figure.ts'
import { startLoadGenerator } from './proxy/load-generator.ts'
import { httpConfig, type Subject, startLeanHttp, startRunner } from './proxy/subjects.ts'

/* Costs of the embedded authorization server, over the library with as little around it as possible. BENCH_QUICK=1 checks that it works. */

const isQuick = process.env['BENCH_QUICK'] === '1'
const ROUNDS = isQuick ? 1 : Number(process.env['BENCH_ROUNDS'] ?? '5')
const MB = 1_024

export async function run(log: (line: string) => void): Promise<Figure[]> {
  await using stack = new AsyncDisposableStack()
  const idp = stack.use(await startOidcServer())
  const backend = stack.use(await startLeanHttp())
  const figures = [...(await memoryFigures(backend, idp)), ...(await sessionFigures())]

  const problem = redisProblem()
  if (problem !== undefined) log(`no figures with Redis: ${problem}`)
  const server = problem === undefined ? stack.use(await startRedis()) : undefined
  const bare = stack.use(await startBareProvider(idp))
  const alone = stack.use(await startBareProvider())
  const memory = stack.use(await startLoginRunner({ backend, idp }))
  const redis = server && { server, login: stack.use(await startLoginRunner({ backend, idp, redis: server })) }
  const counts = isQuick ? { logins: 8, refreshes: 20 } : { logins: 100, refreshes: 400 }
  figures.push(...(await measureLogins({ bare, alone, memory, redis, rounds: ROUNDS, ...counts, log })))

  const load = stack.use(await startLoadGenerator())
  figures.push(...(await measureCalls({ backend, idp, load, rounds: ROUNDS, calls: isQuick ? 500 : 5_000 })))
  return figures
}

/** After the start, with nothing asked. The runner without the server is compared with one that lacks its code. */
async function memoryFigures(backend: Subject, idp: Parameters<typeof startLoginRunner>[0]['idp']): Promise<Figure[]> {
  await using lean = await bundleWithoutServer()
  if (lean.left === 0) throw new Error('no part of the bundle holds the server')
  const samples: { on: number; off: number; without: number }[] = []
  for (let round = 0; round < ROUNDS; round++) {
    await using on = await startLoginRunner({ backend, idp })
    await using off = await startRunner(httpConfig(backend.url))
    await using without = await startRunner(httpConfig(backend.url), { bundle: lean.bundle })
    samples.push({ on: await rssMb(on.subject), off: await rssMb(off), without: await rssMb(without) })
  }
  const of = (name: 'on' | 'off' | 'without') => median(samples.map((sample) => sample[name]))
  return [
    { name: 'memory with the server on', unit: 'MB', value: of('on'), baseline: of('off'), aim: { of: 'difference', limit: 45 } },
    {
      name: 'memory with it off, over a runner without its code',
      ...{ unit: 'MB', value: of('off'), baseline: of('without'), aim: { of: 'difference', limit: 1 } },
    },
  ]
}

async function rssMb({ process }: Subject): Promise<number> {
  return (await process.usage({ gc: true })).rssKb / MB
}

/** The row of the vault belongs to the user, not to the session. */
async function sessionFigures(): Promise<Figure[]> {
  const sessions = isQuick ? 20_000 : 100_000
  const report = await measure<SessionsReport>('authserver/sessions.ts', { ...MEMORY_SETTINGS, THV_SESSIONS: String(sessions) })
  const inKb = (bytes: number) => ({ unit: 'KB', value: bytes / 1_024, baseline: 0 })
  const aim = { of: 'difference', limit: 2 } as const
  return [
    { name: `memory per live session, ${sessions} of them`, ...inKb(report.rssPerSession), aim },
    { name: 'heap per live session', ...inKb(report.heapPerSession) },
    { name: 'heap per row of the vault', ...inKb(report.heapPerVaultRow) },
  ]
}
