import { OIDC_PATHS } from '@thv/testkit/oidc/oidc-configuration'
import type { OidcServer } from '@thv/testkit/oidc/oidc-server'
import { startBenchProvider } from '../chain/provider.ts'
import { type Figure, median } from '../figure.ts'
import { burst } from '../proxy/burst.ts'
import type { LoadGenerator } from '../proxy/load-generator.ts'
import { httpConfig, type Subject, startRunner } from '../proxy/subjects.ts'
import { startLoginRunner } from './subjects.ts'
import { logIn } from './visitor.ts'

export interface CallsOptions {
  readonly backend: Subject
  readonly idp: OidcServer
  readonly load: LoadGenerator
  readonly rounds: number
  readonly calls: number
}

const SESSIONS = 64
const WARM_UP_TIMES = 4

/** A tool call with a token of the server and a token of the provider for the backend, over one with a token of another issuer alone. */
export async function measureCalls({ backend, idp, load, rounds, calls }: CallsOptions): Promise<Figure[]> {
  await using stack = new AsyncDisposableStack()
  const provider = stack.use(await startBenchProvider())
  const { issuer, audience } = provider
  const plain = stack.use(await startRunner({ ...httpConfig(backend.url), oidc_config: { issuer, audience, allow_private_ip: true } }))
  const own = stack.use(await startLoginRunner({ backend, idp, injects: true }))
  const { accessToken } = await logIn(own.target, 'ada')
  const questions = () => Object.values(OIDC_PATHS).reduce((sum, path) => sum + idp.hits(path), 0)
  const cpu = async (subject: Subject, token: string, minCalls: number) => {
    const target = { url: subject.url, headers: ['authorization', `Bearer ${token}`] }
    const plan = { target, counted: subject.process, era: 'modern', sessions: SESSIONS, tool: 'echo', durationMs: 400, minCalls } as const
    return (await burst(load, plan)).cpuUsPerCall
  }
  const token = provider.token('bench')
  await cpu(plain, token, WARM_UP_TIMES * calls)
  await cpu(own.subject, accessToken, WARM_UP_TIMES * calls)
  const before = questions()
  const samples: { readonly plain: number; readonly own: number }[] = []
  for (let round = 0; round < rounds; round++)
    samples.push({ plain: await cpu(plain, token, calls), own: await cpu(own.subject, accessToken, calls) })
  const baseline = median(samples.map((sample) => sample.plain))
  const ratio = median(samples.map((sample) => sample.own / sample.plain))
  return [
    {
      name: 'CPU per call, own token and warm vault, over a plain JWT',
      ...{ unit: 'µs', value: ratio * baseline, baseline, aim: { of: 'ratio', limit: 1.1 } },
    },
    {
      name: `requests to the provider in ${rounds * calls} calls and more`,
      ...{ unit: '', value: questions() - before, baseline: 0, aim: { of: 'difference', limit: 0.5 } },
    },
  ]
}
