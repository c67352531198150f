import { runInTurns } from '@thv/kernel/steps'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CatalogEntry } from '../catalog-entry.ts'
import { responseMeta, wrapDocumentText } from '../official-envelope.ts'
import { compareCodePoints } from '../text.ts'
import { compareVersions as byVersion } from '../version-order.ts'
import { isProblem, type ListQuery } from './list-query.ts'
import { PAGE_HEAD, type Page, pageTail } from './page.ts'
import { openSnapshot, type Snapshot } from './snapshot.ts'
import { snapshotTransferList } from './snapshot-data.ts'
import { buildSnapshot, type SnapshotOptions, searchedFields, snapshotSteps } from './testing/build-snapshot.ts'

/** Numbers by value, so that 1.10 is above 1.9; enough of an order for these tests. */
const compareVersions = (a: string, b: string) => a.localeCompare(b, 'en', { numeric: true })
const serialise: SnapshotOptions['serialise'] = (entry, { isLatest }) =>
  JSON.stringify({ server: entry.document, _meta: { status: entry.status, isLatest, from: entry.source } })
// Tiny segments, so that pages cross them all the time.
const options = { compareVersions, serialise, segmentBytes: 700 }
const open = (entries: readonly CatalogEntry[]) => openSnapshot(buildSnapshot(entries, options), compareVersions)

const names = [
  'io.github.acme/fetch',
  'io.github.acme/Fetch',
  'a/b',
  'a/b.c',
  'com.example/files',
  'com.example/\u{ff5e}',
  'com.example/\u{1f4e6}',
]
const versions = ['1.0.0', '1.9.0', '1.10.0', '2.0.0-rc.1', '2.0.0', '2.0.0+b', 'nightly']
const times = [
  '2025-01-01T00:00:00Z',
  '2025-01-01T00:00:00.000000001Z',
  '2025-01-01T01:00:00+01:00',
  '2025-03-01T10:00:00.5Z',
  '2026-01-01T00:00:00Z',
]
const words = ['', 'Files', 'fetch a PAGE', 'Größe', 'größe ΑΣ', '\u{1f4e6} box', 'page']

const entryArb: fc.Arbitrary<CatalogEntry> = fc
  .record({
    name: fc.constantFrom(...names),
    version: fc.constantFrom(...versions),
    status: fc.constantFrom('active', 'active', 'deprecated', 'deleted'),
    title: fc.option(fc.constantFrom(...words), { nil: undefined }),
    description: fc.oneof(fc.constantFrom(...words), fc.string({ unit: 'binary', maxLength: 8 })),
    publishedAt: fc.constantFrom(...times),
    updatedAt: fc.constantFrom(...times),
    source: fc.constantFrom('one', 'two'),
  })
  .map(({ title, description, ...rest }) => ({
    ...rest,
    statusChangedAt: rest.updatedAt,
    document: { name: rest.name, ...(title !== undefined && { title }), description, version: rest.version },
  }))
const entriesArb = fc.array(entryArb, { maxLength: 40 })
const queryArb: fc.Arbitrary<ListQuery> = fc.record(
  {
    limit: fc.integer({ min: 1, max: 12 }),
    search: fc.oneof(
      fc.constantFrom('', 'FETCH', 'page', 'ß', 'files', '\u{1f4e6}', '/b', 'com.example/fi'),
      fc.string({ unit: 'binary', maxLength: 2 }),
    ),
    updatedSince: fc.constantFrom(...times),
    version: fc.constantFrom('latest', '1.10.0', '9.9.9', '2.0.0'),
    includeDeleted: fc.constant(true),
  },
  { requiredKeys: ['limit'] },
)

describe('the serving snapshot', () => {
  it('lists what a plain filter over the array gives, in any paging', () => {
    fc.assert(
      fc.property(entriesArb, queryArb, (entries, query) => {
        const shown = pages(() => open(entries), query)
        expect(shown.flat()).toEqual(naiveList(entries, query))
        for (const page of shown.slice(0, -1)) expect(page).toHaveLength(query.limit ?? 30)
      }),
      { numRuns: 300 },
    )
  })

  it('shows each entry that is there throughout exactly once, and none twice, while snapshots change between pages', () => {
    fc.assert(
      fc.property(
        entriesArb,
        fc.array(entriesArb, { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 1, max: 5 }),
        (lasting, passing, limit) => {
          let turn = 0
          const current = () => open([...lasting, ...(passing[turn++ % passing.length] ?? [])])
          const seen = pages(current, { limit, includeDeleted: true })
            .flat()
            .map((json) => keyOf(JSON.parse(json).server))
          expect(new Set(seen).size).toBe(seen.length)
          const known = new Set(seen)
          for (const entry of lasting) expect(known).toContain(keyOf(entry))
        },
      ),
    )
  })

  it('gives the versions of a server and one version as a plain search does', () => {
    fc.assert(
      fc.property(entriesArb, fc.boolean(), (entries, includeDeleted) => {
        const snapshot = open(entries)
        for (const name of [...names, 'no/such']) {
          const own = ordered(entries).filter((entry) => entry.name === name)
          const shown = own.filter((entry) => includeDeleted || entry.status !== 'deleted')
          const newestFirst = shown.toReversed().sort((a, b) => -byTime(a.publishedAt, b.publishedAt))
          const page = snapshot.versions(name, { includeDeleted })
          expect(page && items(page)).toEqual(shown.length === 0 ? undefined : newestFirst.map((entry) => jsonOf(entries, entry)))
          for (const version of [...versions, 'latest', '9.9.9']) {
            const wanted = version === 'latest' ? latestOf(entries, name) : shown.find((entry) => entry.version === version)
            const got = snapshot.version(name, version, { includeDeleted })
            expect(got && Buffer.from(got).toString()).toBe(wanted && jsonOf(entries, wanted))
          }
        }
      }),
    )
  })

  it('is the same after a worker hands it over, and when it is built in turns', async () => {
    await fc.assert(
      fc.asyncProperty(entriesArb, queryArb, async (entries, query) => {
        const data = buildSnapshot(entries, options)
        const moved = openSnapshot(structuredClone(data, { transfer: snapshotTransferList(data) }), compareVersions)
        const turned = openSnapshot(await runInTurns(snapshotSteps(entries, options), { pause: async () => {} }), compareVersions)
        const expected = naiveList(entries, query)
        expect(pages(() => moved, query).flat()).toEqual(expected)
        expect(pages(() => turned, query).flat()).toEqual(expected)
      }),
      { numRuns: 40 },
    )
  })

  it('answers a list as one JSON document whose neighbours share a slice', () => {
    const entries = Array.from({ length: 50 }, (_, i) => entry({ name: `a/s${String(i).padStart(2, '0')}` }))
    const snapshot = openSnapshot(buildSnapshot(entries, { compareVersions, serialise }), compareVersions)
    const page = answered(snapshot.list())
    expect(page.slices).toHaveLength(1)
    const body = JSON.parse(textOf(page))
    expect(body.servers).toHaveLength(30)
    expect(body.metadata).toEqual({ count: 30, nextCursor: page.nextCursor })
    expect(JSON.parse(textOf(answered(snapshot.list({ cursor: page.nextCursor })))).metadata).toEqual({ count: 20 })
    expect(textOf(answered(open([]).list()))).toBe('{"servers":[],"metadata":{"count":0}}\n')
  })

  it.each([
    ['limit', { limit: 0 }],
    ['limit', { limit: 1001 }],
    ['limit', { limit: 1.5 }],
    ['limit', { limit: Number.NaN }],
    ['search', { search: 'x'.repeat(257) }],
    ['updated_since', { updatedSince: 'yesterday' }],
    ['updated_since', { updatedSince: '2025-02-30T00:00:00Z' }],
    ['include_deleted', { updatedSince: '2025-01-01T00:00:00Z', includeDeleted: false }],
    ['cursor', { cursor: '%%%' }],
    ['cursor', { cursor: Buffer.from('{"v":1}').toString('base64url') }],
    ['cursor', { cursor: Buffer.from('{"v":2,"name":"a/b","version":"1","filter":"x"}').toString('base64url') }],
    ['cursor', { cursor: 'x'.repeat(100_000) }],
  ])('refuses a bad %s: %o', (parameter, query) => {
    expect(open([]).list(query)).toMatchObject({ parameter })
  })

  it('refuses a cursor of a list with other filters, and takes it with another limit', () => {
    const snapshot = open(['a/a', 'a/b', 'a/c', 'a/d'].map((name) => entry({ name })))
    const { nextCursor: cursor } = answered(snapshot.list({ limit: 1, search: 'A/' }))
    expect(snapshot.list({ cursor, search: 'b' })).toMatchObject({ parameter: 'cursor' })
    expect(snapshot.list({ cursor, search: 'a/', includeDeleted: true })).toMatchObject({ parameter: 'cursor' })
    expect(answered(snapshot.list({ cursor, search: 'a/', limit: 3 })).count).toBe(3)
    expect(JSON.parse(Buffer.from(cursor ?? '', 'base64url').toString())).toEqual({
      v: 1,
      name: 'a/a',
      version: '1.0.0',
      filter: expect.stringMatching(/^[\w-]{12}$/),
    })
  })

  it('cuts the building into many small pieces and stops when told to', async () => {
    const entries = Array.from({ length: 5000 }, (_, i) => entry({ name: `a/s${(i * 7919) % 5000}`, description: 'x'.repeat(500) }))
    let pauses = 0
    let most = 0
    let since = 0
    const counting: SnapshotOptions = {
      compareVersions,
      serialise: (one, facts) => {
        most = Math.max(most, ++since)
        return serialise(one, facts)
      },
    }
    const pause = async () => {
      pauses++
      since = 0
    }
    await runInTurns(snapshotSteps(entries, counting), { pause })
    expect(pauses).toBeGreaterThan(20)
    expect(most).toBeLessThan(500)

    const stop = new AbortController()
    const stopping = runInTurns(snapshotSteps(entries, counting), {
      signal: stop.signal,
      pause: async () => stop.abort(new Error('enough')),
    })
    await expect(stopping).rejects.toThrow('enough')
  })

  it('keeps the first of two entries with one name and version', () => {
    const data = buildSnapshot([entry({ source: 'one' }), entry({ source: 'two' })], options)
    const all = items(answered(openSnapshot(data, compareVersions).list()))
    expect(all).toHaveLength(1)
    expect(all[0]).toContain('"from":"one"')
  })
})

describe('with the official envelope', () => {
  it('serves documents whole and in their own order, with the official block', () => {
    const document = {
      version: '1.0.0',
      zeta: [1.5, { b: null, a: 'ü' }],
      name: 'a/b',
      description: 'x',
      icons: [{ src: 'https://example.org/i.png' }],
    }
    const own: SnapshotOptions = {
      compareVersions: byVersion,
      serialise: (one, { isLatest }) => wrapDocumentText(JSON.stringify(one.document), responseMeta(one, isLatest)),
    }
    const snapshot = openSnapshot(buildSnapshot([{ ...entry({}), document }], own), byVersion)
    const text = Buffer.from(snapshot.version('a/b', 'latest') ?? []).toString()
    expect(text.startsWith(`{"server":${JSON.stringify(document)},"_meta":{`)).toBe(true)
    expect(JSON.parse(text)._meta['io.modelcontextprotocol.registry/official']).toMatchObject({ status: 'active', isLatest: true })
  })
})

function entry(facts: { name?: string; description?: string; source?: string }): CatalogEntry {
  const { name = 'a/b', description = 'does things', source = 'one' } = facts
  const at = '2025-01-01T00:00:00Z'
  const document = { name, description, version: '1.0.0' }
  return { name, version: '1.0.0', document, status: 'active', publishedAt: at, updatedAt: at, statusChangedAt: at, source }
}

function pages(snapshot: () => Snapshot, query: ListQuery): string[][] {
  const all: string[][] = []
  let cursor: string | undefined
  do {
    const page = answered(snapshot().list({ ...query, cursor }))
    all.push(items(page))
    cursor = page.nextCursor
  } while (cursor !== undefined && all.length < 1000)
  return all
}

function answered(answer: ReturnType<Snapshot['list']>): Page {
  if (isProblem(answer)) throw new Error(answer.message)
  return answer
}

function textOf(page: Page): string {
  const inner = Buffer.concat(page.slices)
  expect(page.bytes).toBe(inner.length)
  return `${PAGE_HEAD}${inner}${pageTail(page)}`
}

function items(page: Page): string[] {
  const { servers, metadata } = JSON.parse(textOf(page))
  expect(metadata.count).toBe(servers.length)
  return servers.map((server: unknown) => JSON.stringify(server))
}

function naiveList(entries: readonly CatalogEntry[], query: ListQuery): string[] {
  const { search = '', updatedSince, version, includeDeleted } = query
  const wanted = search.toWellFormed().toLowerCase()
  return ordered(entries)
    .filter((e) => updatedSince !== undefined || includeDeleted || e.status !== 'deleted')
    .filter((e) => updatedSince === undefined || byTime(e.updatedAt, updatedSince) > 0)
    .filter((e) => version === undefined || (version === 'latest' ? latestOf(entries, e.name) === e : e.version === version))
    .filter((e) => searchedFields(e).some((field) => containsCodePoints(field.toWellFormed().toLowerCase(), wanted)))
    .map((e) => jsonOf(entries, e))
}

function containsCodePoints(text: string, part: string): boolean {
  const points = [...text]
  const wanted = [...part]
  return points.some((_, i) => wanted.every((point, j) => points[i + j] === point)) || wanted.length === 0
}

function ordered(entries: readonly CatalogEntry[]): CatalogEntry[] {
  const first = entries.filter((e, i) => entries.findIndex((other) => keyOf(other) === keyOf(e)) === i)
  return first.sort(
    (a, b) => compareCodePoints(a.name, b.name) || compareVersions(a.version, b.version) || compareCodePoints(a.version, b.version),
  )
}

function latestOf(entries: readonly CatalogEntry[], name: string): CatalogEntry | undefined {
  return ordered(entries).findLast((e) => e.name === name && e.status !== 'deleted')
}

function jsonOf(entries: readonly CatalogEntry[], e: CatalogEntry): string {
  return JSON.stringify(JSON.parse(serialise(e, { isLatest: latestOf(entries, e.name) === e })))
}

function keyOf(e: { name: string; version: string }): string {
  return `${e.name} ${e.version}`
}

function byTime(a: string, b: string): number {
  return times.indexOf(a) === times.indexOf(b) ? 0 : nanos(a) < nanos(b) ? -1 : nanos(a) > nanos(b) ? 1 : 0
}

/** The times of these tests by hand: none of them depends on the parser under test. */
function nanos(time: string): bigint {
  const known: Record<string, bigint> = {
    '2025-01-01T00:00:00.000000001Z': 1n,
    '2025-03-01T10:00:00.5Z': 1_000_000_000n,
    '2026-01-01T00:00:00Z': 2_000_000_000n,
  }
  return known[time] ?? 0n
}
