import { MEMORY_SETTINGS } from '@thv/programs/memory-settings'
import type { TestRedis } from '@thv/testkit/redis/redis'
import { type Figure, median } from '../figure.ts'
import { burst } from '../proxy/burst.ts'
import type { LoadGenerator } from '../proxy/load-generator.ts'
import type { Era } from '../proxy/load-plan.ts'
import { httpConfig, type Subject, startBare, startRunner } from '../proxy/subjects.ts'
import { knownTokens } from './known-tokens.ts'
import type { BenchProvider } from './provider.ts'
import { requestsPerCall } from './requests-per-call.ts'
import { untilItWorks } from './until-it-works.ts'
import { EVERYTHING, EVERYTHING_SHARED, TOKEN_KNOWN, type Variant } from './variants.ts'

export interface VariantsOptions {
  readonly backend: Subject
  readonly load: LoadGenerator
  readonly provider: BenchProvider
  readonly redis: TestRedis | undefined
  readonly variants: readonly Variant[]
  readonly rounds: number
  /** Of one burst. */
  readonly durationMs: number
  readonly log: (line: string) => void
}

const SESSIONS = 64
const ERAS: readonly Era[] = ['legacy', 'modern']
const BARE = 'bare pass-through'
const BASE = 'no middleware'
const MB = 1_024
/** Until the compiler is done: at first, and again after the turns of the others, in which a quiet runner gave its compiled code back. */
const WARM_UP_CALLS = 60_000
const WARM_AGAIN_CALLS = 6_000
const MIN_CALLS = 8_000

/** CPU of a call through each variant, in turns with the runner without middleware; then requests per call and memory. */
export async function measureVariants(options: VariantsOptions): Promise<Figure[]> {
  const { backend, load, provider, variants, rounds, durationMs, log } = options
  await using stack = new AsyncDisposableStack()
  const subjects = new Map<string, Subject>()
  subjects.set(BARE, stack.use(await startBare(backend.url)))
  for (const { name, config, env } of [{ name: BASE, config: {}, env: {} }, ...variants])
    subjects.set(name, stack.use(await startRunner({ ...httpConfig(backend.url), ...config }, { env: { ...MEMORY_SETTINGS, ...env } })))

  const subjectOf = (name: string) => {
    const subject = subjects.get(name)
    if (subject === undefined) throw new TypeError(`${name} was not started`)
    return subject
  }
  const headers = ['authorization', `Bearer ${provider.token('bench')}`]
  const once = async (name: string, era: Era, minCalls: number) => {
    const subject = subjectOf(name)
    const target = { url: subject.url, headers }
    const plan = { target, counted: subject.process, era, sessions: SESSIONS, tool: 'echo', durationMs, minCalls } as const
    // On a busy machine Redis may take longer than the runner waits for it.
    return (await untilItWorks(load, () => burst(load, plan), log)).cpuUsPerCall
  }
  for (const era of ERAS) for (const name of subjects.keys()) await once(name, era, WARM_UP_CALLS)

  // Everybody gets the same number of calls: code that has run more often is faster.
  const samples: Sample[] = []
  const warm = async (name: string, era: Era) => {
    await once(name, era, WARM_AGAIN_CALLS)
    return await once(name, era, MIN_CALLS)
  }
  for (let round = 0; round < rounds; round++) {
    for (const era of ERAS) for (const name of subjects.keys()) samples.push({ round, era, name, cpuUs: await warm(name, era) })
    log(`round ${round + 1} of ${rounds}`)
  }
  const pairs = [{ name: BASE, over: BARE, limit: 1.5 }, ...variants.map(({ name, limit }) => ({ name, over: BASE, limit }))]
  const calls = ERAS.flatMap((era) => pairs.map((pair) => cpuFigure(samples, era, pair)))

  const requests: Figure[] = []
  for (const name of [EVERYTHING, EVERYTHING_SHARED]) {
    if (!subjects.has(name)) continue
    const redis = name === EVERYTHING_SHARED ? options.redis : undefined
    const counting = { subject: subjectOf(name), backend, load, provider, redis, headers, durationMs }
    requests.push(...(await untilItWorks(load, () => requestsPerCall(name, counting), log)))
  }
  return [...calls, ...requests, ...(await memory(subjects, options)), ...(await tokensKnown(subjectOf(TOKEN_KNOWN), provider))]
}

interface Sample {
  readonly round: number
  readonly era: Era
  readonly name: string
  readonly cpuUs: number
}

/** The middle of the ratios of each round, which are steadier than the measurements: a slow minute of the machine hits a whole round. */
function cpuFigure(samples: readonly Sample[], era: Era, { name, over, limit }: { name: string; over: string; limit: number }): Figure {
  const of = (wanted: string) => samples.filter((sample) => sample.era === era && sample.name === wanted)
  const baselines = of(over)
  const ratios = of(name).map(({ round, cpuUs }) => cpuUs / (baselines.find((sample) => sample.round === round)?.cpuUs ?? Number.NaN))
  const baseline = median(baselines.map(({ cpuUs }) => cpuUs))
  return {
    name: `CPU per call, ${name}, over ${over}, ${era}`,
    unit: 'µs',
    value: baseline * median(ratios),
    baseline,
    aim: { of: 'ratio', limit },
  }
}

async function memory(subjects: ReadonlyMap<string, Subject>, { variants, log }: VariantsOptions): Promise<Figure[]> {
  const rss = new Map<string, number>()
  for (const [name, subject] of subjects) {
    const loaded = await subject.process.usage({ gc: true })
    // As the proxy leaves it after a quiet minute; until then V8 keeps pages of what was collected, ten megabytes more or less.
    const { rssKb, heapKb } = await subject.process.usage({ released: true })
    const [before, after] = [loaded.rssKb, rssKb].map((kb) => (kb / MB).toFixed(0))
    log(`after the load: ${name}: ${before} MB, released ${after} MB, of which heap in use ${(heapKb / MB).toFixed(1)} MB`)
    rss.set(name, rssKb / MB)
  }
  const rssOf = (name: string) => rss.get(name) ?? Number.NaN
  return variants.flatMap(({ name, moreMemory }): Figure[] => {
    if (moreMemory === undefined) return []
    const aim = { of: 'difference', limit: moreMemory } as const
    return [{ name: `memory after the load, ${name}`, unit: 'MB', value: rssOf(name), baseline: rssOf(BASE), aim }]
  })
}

async function tokensKnown(subject: Subject, provider: BenchProvider): Promise<Figure[]> {
  const before = (await subject.process.usage({ released: true })).rssKb / MB
  await knownTokens(subject.url, provider)
  const value = (await subject.process.usage({ released: true })).rssKb / MB
  return [{ name: 'memory with 10,000 known tokens', unit: 'MB', value, baseline: before, aim: { of: 'difference', limit: 40 } }]
}
