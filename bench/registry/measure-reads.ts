import { goldenQueries } from '@thv/catalog/bundled/testing/golden-queries'
import { type Figure, median, renderColumns } from '../figure.ts'
import type { BareSubject } from './bare-subject.ts'
import type { GetLoad, GetSample } from './get-burst.ts'
import type { RegistrySubject } from './registry-subject.ts'
import { SAMPLE_VERSION, sampleName } from './sample-registry.ts'

export interface ReadsOptions {
  readonly bare: BareSubject
  readonly registry: RegistrySubject
  readonly load: GetLoad
  readonly count: number
  readonly about: string
  readonly rounds: number
  readonly durationMs: number
  readonly log: (line: string) => void
}

interface Read {
  readonly name: string
  readonly paths: readonly string[]
  /** Of CPU per request, to the bare server's. */
  readonly ratio?: number
  /** Of the median latency, above the bare server's. */
  readonly p50Ms?: number
}

const CONNECTIONS = 16
const WARM_UP = 2
/** So many that none is remembered until its turn comes again. */
const MANY = 3_000
const BASE = '/registry/default/v0.1'

/** Everybody in turns, over and over; medians are compared. */
export async function measureReads(options: ReadsOptions): Promise<Figure[]> {
  const { bare, registry, load, rounds, durationMs, about, log } = options
  const figures: Figure[] = []
  const rows: string[][] = []
  const reads = await readsOf(registry.origin, options.count)
  // The first thousands of requests of a process cost about twice as much, until the compiler is done.
  for (const { paths } of reads)
    await load.burst({ origin: registry.origin, paths, connections: CONNECTIONS, durationMs }, registry.process)
  for (const read of reads) {
    const bytes = await bodyBytes(registry.origin, read.paths)
    const ours: GetSample[] = []
    const floor: GetSample[] = []
    const ask = (origin: string, paths: readonly string[]) => ({ origin, paths, connections: CONNECTIONS, durationMs })
    for (let round = -WARM_UP; round < rounds; round++) {
      const base = await load.burst(ask(bare.origin, [`/${bytes}`]), bare.process)
      const sample = await load.burst(ask(registry.origin, read.paths), registry.process)
      if (round < 0) continue // the compiler's share
      floor.push(base)
      ours.push(sample)
    }
    const of = (samples: readonly GetSample[], what: keyof GetSample) => median(samples.map((sample) => sample[what]))
    figures.push({
      ...{ name: `CPU per request, ${read.name}, ${about}`, unit: 'µs', value: of(ours, 'cpuUs'), baseline: of(floor, 'cpuUs') },
      ...(read.ratio !== undefined && { aim: { of: 'ratio' as const, limit: read.ratio } }),
    })
    if (read.p50Ms !== undefined) figures.push(await aloneFigure(read, options, read.p50Ms))
    for (const [who, samples] of [
      ['registry', ours],
      ['bare', floor],
    ] as const)
      rows.push([
        about,
        read.name,
        who,
        String(bytes),
        of(samples, 'perSecond').toFixed(0),
        of(samples, 'p50Ms').toFixed(2),
        of(samples, 'p99Ms').toFixed(2),
        of(samples, 'cpuUs').toFixed(0),
      ])
  }
  log(renderColumns([['', 'read', 'who', 'bytes', 'requests/s', 'p50 ms', 'p99 ms', 'CPU µs'], ...rows], 3))
  return figures
}

/** Latency means something with one request at a time only. */
async function aloneFigure(
  { name, paths }: Read,
  { bare, registry, load, durationMs, about }: ReadsOptions,
  limit: number,
): Promise<Figure> {
  const one = { connections: 1, durationMs }
  const base = await load.burst({ origin: bare.origin, paths: ['/2000'], ...one }, bare.process)
  const ours = await load.burst({ origin: registry.origin, paths, ...one }, registry.process)
  return {
    name: `median latency, ${name}, ${about}`,
    unit: 'ms',
    value: ours.p50Ms,
    baseline: base.p50Ms,
    aim: { of: 'difference', limit },
  }
}

async function readsOf(origin: string, count: number): Promise<Read[]> {
  const some = (number: number) => Array.from({ length: number }, (_, index) => Math.floor((index * 7919 + 13) % count))
  const pages = async (number: number) =>
    (await cursorsOf(origin, some(number))).map((cursor) => `${BASE}/servers?limit=30&cursor=${cursor}`)
  const versions = (number: number) =>
    some(number).map((one) => `${BASE}/servers/${encodeURIComponent(sampleName(one))}/versions/${SAMPLE_VERSION}`)
  return [
    { name: 'list page of 30', paths: await pages(50), ratio: 1.25 },
    { name: 'list page of 30, always another', paths: await pages(MANY) },
    { name: 'first page of 100', paths: [`${BASE}/servers?limit=100`], ratio: 1.25 },
    { name: 'one version', paths: versions(200), ratio: 1.7 },
    { name: 'one version, always another', paths: versions(MANY), ratio: 1.7 },
    {
      name: 'latest version',
      paths: some(200).map((number) => `${BASE}/servers/${encodeURIComponent(sampleName(number))}/versions/latest`),
      ratio: 1.7,
    },
    { name: 'search= of a common word', paths: [`${BASE}/servers?search=weather`] },
    { name: 'search= of nothing there', paths: [`${BASE}/servers?search=zzzz`] },
    { name: 'updated_since, nothing new', paths: [`${BASE}/servers?updated_since=2099-01-01T00:00:00Z`] },
    {
      name: 'ranked search',
      // Each with every limit, so that none is remembered.
      paths: goldenQueries.flatMap(({ query }) =>
        Array.from({ length: 60 }, (_, more) => `${BASE}/x/dev.toolhive/search?q=${encodeURIComponent(query)}&limit=${10 + more}`),
      ),
      ...(count === 100_000 && { p50Ms: 5 }),
    },
  ]
}

/** Cursors into the middle: one of the server's own, with another position in it. */
async function cursorsOf(origin: string, numbers: readonly number[]): Promise<string[]> {
  const response = await fetch(`${origin}${BASE}/servers?limit=30`)
  const { metadata } = (await response.json()) as { metadata: { nextCursor: string } }
  const cursor = JSON.parse(Buffer.from(metadata.nextCursor, 'base64url').toString()) as Record<string, unknown>
  return numbers.map((number) =>
    Buffer.from(JSON.stringify({ ...cursor, name: sampleName(number), version: SAMPLE_VERSION })).toString('base64url'),
  )
}

async function bodyBytes(origin: string, paths: readonly string[]): Promise<number> {
  const sizes: number[] = []
  for (const path of paths.slice(0, 20)) {
    const response = await fetch(`${origin}${path}`)
    if (!response.ok) throw new Error(`${path} was answered with ${response.status}`)
    sizes.push((await response.arrayBuffer()).byteLength)
  }
  return Math.round(sizes.reduce((sum, size) => sum + size, 0) / sizes.length)
}
