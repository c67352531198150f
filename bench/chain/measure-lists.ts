import { type Figure, median } from '../figure.ts'
import { burst } from '../proxy/burst.ts'
import type { LoadGenerator } from '../proxy/load-generator.ts'
import { httpConfig, type Subject, startLeanHttp, startRunner } from '../proxy/subjects.ts'
import { authzConfig } from './policies.ts'
import type { BenchProvider } from './provider.ts'

export interface ListsOptions {
  readonly load: LoadGenerator
  readonly provider: BenchProvider
  readonly rounds: number
  readonly durationMs: number
}

const TOOLS = 500
const FILTER = 'a filter that keeps all'

/** `tools/list` of a long catalog, judged tool by tool, against the same list through a tool filter. */
export async function measureLists({ load, provider, rounds, durationMs }: ListsOptions): Promise<Figure[]> {
  await using backend = await startLeanHttp({ THV_TOOLS: String(TOOLS) })
  await using stack = new AsyncDisposableStack()
  const oidc = { oidc_config: { issuer: provider.issuer, audience: provider.audience, allow_private_ip: true } }
  const tools = ['echo', 'echo_stream', ...Array.from({ length: TOOLS }, (_, i) => `tool_${i}`)]
  const subjects = new Map<string, Subject>()
  const start = async (name: string, config: object) =>
    subjects.set(name, stack.use(await startRunner({ ...httpConfig(backend.url), ...oidc, ...config })))
  await start(FILTER, { tools_filter: tools })
  await start('10 policies', { authz_config: authzConfig(10) })
  await start('1,000 policies', { authz_config: authzConfig(1_000) })

  const headers = ['authorization', `Bearer ${provider.token('bench')}`]
  const once = async (subject: Subject, minCalls: number) => {
    const target = { url: subject.url, headers }
    return (await burst(load, { target, counted: subject.process, era: 'legacy', sessions: 8, tool: 'list', durationMs, minCalls }))
      .cpuUsPerCall
  }
  for (const subject of subjects.values()) await once(subject, 600)
  const samples = new Map<string, number[]>()
  for (let round = 0; round < rounds; round++)
    for (const [name, subject] of subjects) samples.set(name, [...(samples.get(name) ?? []), await once(subject, 150)])
  const cpuOf = (name: string) => median(samples.get(name) ?? [])
  return [
    { name: '10 policies', limit: 1.5 },
    { name: '1,000 policies', limit: 2.5 },
  ].map(({ name, limit }) => ({
    name: `CPU per tools/list of ${TOOLS} tools, ${name}, over ${FILTER}`,
    unit: 'µs',
    value: cpuOf(name),
    baseline: cpuOf(FILTER),
    aim: { of: 'ratio', limit },
  }))
}
