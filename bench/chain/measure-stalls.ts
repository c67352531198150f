import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MEMORY_SETTINGS } from '@thv/programs/memory-settings'
import { ensureBundle } from '../../scripts/bundle.mjs'
import { type Figure, median } from '../figure.ts'
import { burst } from '../proxy/burst.ts'
import type { LoadGenerator } from '../proxy/load-generator.ts'
import { httpConfig, type Subject, startRunner } from '../proxy/subjects.ts'
import { largeAuthzConfig } from './policies.ts'
import type { BenchProvider } from './provider.ts'

export interface StallsOptions {
  readonly backend: Subject
  readonly load: LoadGenerator
  readonly provider: BenchProvider
  /** For the file with the policies. */
  readonly folder: string
  readonly rounds: number
  /** Of one burst. */
  readonly durationMs: number
}

const SESSIONS = 16
const MIN_CALLS = 500
/** So many bursts at most until the runner has taken over the edited policies. */
const MAX_BURSTS = 60
const LIMIT_MS = 10

/** The worst stall of the event loop while 1,000 policies and a megabyte of entities are replaced under load, over the same load alone. */
export async function measureStalls(options: StallsOptions): Promise<Figure[]> {
  const { backend, load, provider, folder, rounds, durationMs } = options
  const path = join(folder, 'authz.json')
  const put = async (edition: number) => {
    await writeFile(`${path}.new`, JSON.stringify(largeAuthzConfig(edition)))
    await rename(`${path}.new`, path)
  }
  await put(0)
  const probe = await ensureBundle('bench/registry/stall-probe.ts')
  const seen = { replaced: 0, asked: 0 }
  const onLine = (line: string) => {
    if (line.includes('policies replaced')) seen.replaced++
  }
  const oidc = { oidc_config: { issuer: provider.issuer, audience: provider.audience, allow_private_ip: true } }
  await using runner = await startRunner(
    { ...httpConfig(backend.url), ...oidc, authz_config_path: path },
    { env: MEMORY_SETTINGS, nodeArgs: ['--import', probe], onLine },
  )
  const headers = ['authorization', `Bearer ${provider.token('bench')}`]
  const target = { url: runner.url, headers }
  const once = () => burst(load, { target, era: 'modern', sessions: SESSIONS, tool: 'echo', durationMs, minCalls: MIN_CALLS })
  const stallMs = async () => {
    const line = runner.process.line(new RegExp(`^stall ${++seen.asked}: ([\\d.]+) ms`))
    process.kill(runner.process.pid, 'SIGUSR2')
    return Number((await line)[1])
  }
  await once()
  const samples = { edited: [] as number[], alone: [] as number[] }
  for (let round = 1; round <= rounds; round++) {
    await stallMs()
    await put(round)
    let bursts = 0
    do {
      if (++bursts > MAX_BURSTS) throw new Error('the runner did not take over the edited policies')
      await once()
    } while (seen.replaced < round)
    samples.edited.push(await stallMs())
    for (let again = 0; again < bursts; again++) await once()
    samples.alone.push(await stallMs())
  }
  return [
    {
      name: 'worst stall of the event loop while 1,000 policies and 1 MB of entities are replaced',
      unit: 'ms',
      value: median(samples.edited),
      baseline: median(samples.alone),
      aim: { of: 'difference', limit: LIMIT_MS },
    },
  ]
}
