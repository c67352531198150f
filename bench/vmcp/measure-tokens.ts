import { type BenchProvider, startBenchProvider } from '../chain/provider.ts'
import type { Figure } from '../figure.ts'
import type { Subject } from '../proxy/subjects.ts'
import { manyOf } from './measure-calls.ts'
import { startVmcp, vmcpConfig } from './subjects.ts'
import { callModern } from './wire-session.ts'

const BACKENDS = 5
const CALLERS = 10
const STEADY_CALLS = 500
const LANES = 10

/** Requests to the provider of tokens: one for each caller and backend where the caller's token is exchanged, else one for each backend; then none. */
export async function measureTokens({ modern }: { readonly modern: Subject }): Promise<Figure[]> {
  await using provider = await startBenchProvider()
  const { tokenUrl } = provider
  const exchange = { type: 'token_exchange', tokenExchange: { tokenUrl, clientId: 'bench', audience: 'backend' } }
  const clientCredentials = { tokenUrl, clientId: 'bench', clientSecretEnv: 'BENCH_SECRET', scopes: [] }
  const own = { type: 'client_credentials', clientCredentials }
  return [
    ...(await measureVariant('exchange', exchange, { provider, modern, expected: CALLERS * BACKENDS })),
    ...(await measureVariant('client credentials', own, { provider, modern, expected: BACKENDS })),
  ]
}

interface Variant {
  readonly provider: BenchProvider
  readonly modern: Subject
  /** Token requests of all first calls. */
  readonly expected: number
}

async function measureVariant(name: string, auth: object, { provider, modern, expected }: Variant): Promise<Figure[]> {
  const { issuer, audience } = provider
  const oidc = { issuer, audience, protectedResourceAllowPrivateIp: true, jwksAllowPrivateIp: true, insecureAllowHttp: true }
  const backends = manyOf(modern.url, BACKENDS)
  const config = {
    ...vmcpConfig(backends),
    aggregation: { conflictResolution: 'prefix' },
    incomingAuth: { type: 'oidc', oidc },
    outgoingAuth: { source: 'inline', default: auth },
  }
  const before = provider.tokenRequests // own credentials serve the first lists too
  await using vmcp = await startVmcp(config, { env: { BENCH_SECRET: 'a secret of the benchmark' } })
  const tools = Object.keys(backends).map((backend) => `${backend}_echo`)
  const headersOf = (caller: number) => ({ authorization: `Bearer ${provider.token(`caller-${caller}`)}` })
  const callers = Array.from({ length: CALLERS }, (_, i) => headersOf(i))
  await Promise.all(callers.flatMap((headers) => tools.map((tool) => callModern(vmcp.url, tool, 'first', headers))))
  const first = provider.tokenRequests - before
  let next = 0
  const lane = async () => {
    for (let number = next++; number < STEADY_CALLS; number = next++)
      await callModern(vmcp.url, tools[number % tools.length] ?? '', 'steady', callers[number % callers.length])
  }
  await Promise.all(Array.from({ length: LANES }, lane))
  const of = `${CALLERS} callers, ${BACKENDS} backends, ${name}`
  return [
    {
      name: `token requests of all first calls at once, ${of}`,
      unit: '',
      value: first,
      baseline: expected,
      aim: { of: 'ratio', limit: 1 },
    },
    {
      ...{
        name: `token requests in ${STEADY_CALLS} calls after them, ${name}`,
        unit: '',
        value: provider.tokenRequests - before - first,
        baseline: 0,
      },
      aim: { of: 'difference', limit: 0.5 },
    },
  ]
}
