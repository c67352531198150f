import { runInTurns } from '@thv/kernel/steps'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CatalogEntry } from '../catalog-entry.ts'
import { editDistance } from './edit-distance.ts'
import { type SearchDocument, searchDocumentOf } from './search-document.ts'
import { MAX_QUERY_LENGTH, openSearchIndex } from './search-index.ts'
import { searchIndexTransferList } from './search-index-data.ts'
import { type SearchWork, WORK_LIMITS } from './term-candidates.ts'
import { goldenQueries } from './testing/golden-queries.ts'
import { indexDocuments, indexSteps } from './testing/index-documents.ts'
import { sampleCatalog } from './testing/sample-catalog.ts'
import { createTopList } from './top-list.ts'

const documents = sampleCatalog.map(searchDocumentOf)
const open = (docs: readonly SearchDocument[]) => openSearchIndex(indexDocuments(docs))
const index = open(documents)
const shortNames = (query: string, limit = 3) => index.search(query, { limit }).hits.map((hit) => hit.name.slice(hit.name.indexOf('/') + 1))

const empty = { name: '', title: '', description: '', tags: [], tools: [], registryTypes: [], transports: [], status: 'active' } as const

const workKeys = ['terms', 'pairs', 'distances', 'postings'] as const

describe('ranked search', () => {
  it('finds what people expect: at least 27 of 30 golden queries, and 9 in 10 of those with typos', () => {
    const missed = goldenQueries
      .map((golden) => ({ ...golden, got: shortNames(golden.query) }))
      .filter(({ expected, got, category }) => (!category && got[0] !== expected[0]) || !expected.every((name) => got.includes(name)))
    const typos = goldenQueries.filter((golden) => golden.typo)
    expect(sampleCatalog.length).toBeGreaterThanOrEqual(60)
    expect(goldenQueries.length).toBeGreaterThanOrEqual(30)
    expect(typos.length).toBeGreaterThanOrEqual(8)
    expect(missed.length, JSON.stringify(missed, undefined, 1)).toBeLessThanOrEqual(Math.floor(goldenQueries.length * 0.1))
    expect(missed.filter((golden) => golden.typo).length).toBeLessThanOrEqual(Math.floor(typos.length * 0.1))
  })

  it('finds every exact name first, whatever else is there', () => {
    fc.assert(
      fc.property(catalogArb, (docs) => {
        const own = open(docs)
        for (const { name } of docs) expect(own.search(name, { limit: 1 }).hits[0]?.name).toBe(name)
      }),
    )
    for (const { name } of documents) expect(index.search(` ${name} `).hits[0]?.name).toBe(name)
    for (const { name } of documents) expect(index.search(name.toUpperCase()).hits[0]?.name).toBe(name)
  })

  it('tells names that differ in case only apart, however many there are', () => {
    const variants = Array.from(
      { length: 256 },
      (_, bits) => `a/${[...'abcdefgh'].map((c, i) => (bits & (1 << i) ? c.toUpperCase() : c)).join('')}`,
    )
    const own = open(variants.map((name) => ({ ...empty, name })))
    for (const name of variants) expect(own.search(name, { limit: 1 }).hits[0]?.name).toBe(name)
  })

  it('never gives what was taken away', () => {
    fc.assert(
      fc.property(catalogArb, fc.nat(), (docs, pick) => {
        const gone = docs[pick % Math.max(docs.length, 1)]
        if (!gone) return
        const rest = open(docs.filter((document) => document !== gone))
        for (const query of [gone.name, gone.title, gone.description, ...gone.tags, ...gone.tools]) {
          expect(rest.search(query, { limit: 100 }).hits.map((hit) => hit.name)).not.toContain(gone.name)
        }
      }),
    )
  })

  it('answers any text within its limits, and the next query is not touched by it', () => {
    const expected = index.search('kubernetes pods')
    fc.assert(
      fc.property(hostileText, fc.integer(), (query, limit) => {
        const { hits, work } = index.search(query, { limit })
        expect(hits.length).toBeLessThanOrEqual(100)
        for (const hit of hits) expect(hit.score).toBeGreaterThan(0)
        for (const key of workKeys) expect(work[key]).toBeLessThanOrEqual(WORK_LIMITS[key])
      }),
    )
    expect(index.search('kubernetes pods')).toEqual(expected)
  })

  it('keeps hostile queries within the limits of work, over a catalog made for them', () => {
    const docs = Array.from({ length: 1000 }, (_, i) => {
      const title = `aaaa${[...String(i).padStart(3, '0')].map((digit) => 'abcdefghij'[Number(digit)]).join('')}`
      return { ...empty, name: `x/s${i}`, title, description: 'tool one two three four five six seven eight nine ten all' }
    })
    const limits: SearchWork = { terms: 1500, pairs: 5000, distances: 600, postings: 7000 }
    const own = openSearchIndex(indexDocuments(docs), limits)
    const reached: SearchWork = { terms: 0, pairs: 0, distances: 0, postings: 0 }
    const queries = [
      'aaaazzz aaaazzy aaaazzx aaaazzw aaaazzv aaaazzu aaaazzt aaaazzs aaaazzr aaaazzq aaaazzp aaaazzo',
      'aaaax aaaay aaaaz aaaaw aaaav aaaau',
      'aa aaa aaaa aaaaa',
      'tool one two three four five six seven eight nine ten all',
      'a'.repeat(1_000_000),
      'a '.repeat(500_000),
      '\u{fdfa}'.repeat(10_000),
    ]
    for (const query of queries) {
      const { work } = own.search(query)
      for (const key of workKeys) {
        expect(work[key], `${key} of ${query.slice(0, 40)}`).toBeLessThanOrEqual(limits[key])
        reached[key] = Math.max(reached[key], work[key])
      }
    }
    // Each limit was really met, else the comparison above would say nothing.
    expect(reached).toMatchObject({ terms: limits.terms, postings: limits.postings })
    expect(reached.pairs).toBeGreaterThan(limits.pairs - 1100)
    expect(own.search('tool one two three').work.postings).toBe(4000)
    expect(own.search('z1 z2 z3 z4 z5 z6 z7 z8 z9 z10 z11 z12 tool').hits).toEqual([])
    expect(own.search(`${' '.repeat(MAX_QUERY_LENGTH)}tool`).hits).toEqual([])
  })

  it('is the same built in turns and after a worker hands it over', async () => {
    let pauses = 0
    const data = await runInTurns(indexSteps(documents), { pause: async () => void pauses++ })
    const moved = openSearchIndex(structuredClone(data, { transfer: searchIndexTransferList(data) }))
    expect(pauses).toBeGreaterThan(1)
    for (const { query } of goldenQueries) expect(moved.search(query)).toEqual(index.search(query))
  })

  it('gives as many as asked for', () => {
    expect(index.search('database', { limit: 2 }).hits).toHaveLength(2)
    expect(index.search('   ').hits).toEqual([])
    expect(open([]).search('database').hits).toEqual([])
  })

  it('sees accents, case, plurals and camel case as people do', () => {
    const own = open([{ ...empty, name: 'a/b', title: 'Übersetzungen', tools: ['createPullRequest'] }])
    for (const query of ['ubersetzungen', 'ÜBERSETZUNG', 'pull', 'requests']) expect(own.search(query).hits).toHaveLength(1)
  })
})

describe('searchDocumentOf', () => {
  it('collects tags and tools of every publisher at depth two, and survives any other shape', () => {
    const provided = {
      'org.a': {
        one: { tags: ['x', 'y', 7], tools: ['t1'] },
        two: { tags: ['y', 'z'], tool_definitions: [{ name: 't2' }, { name: 3 }, null] },
      },
      'org.b': { three: { tags: 'no' }, four: 5 },
      'org.c': null,
    }
    const entry = {
      ...(sampleCatalog[0] as CatalogEntry),
      document: { title: 3, _meta: { 'io.modelcontextprotocol.registry/publisher-provided': provided } },
    }
    expect(searchDocumentOf(entry)).toEqual({ ...empty, name: entry.name, tags: ['x', 'y', 'z'], tools: ['t1', 't2'] })
    fc.assert(fc.property(fc.jsonValue(), (json) => void searchDocumentOf({ ...entry, document: { _meta: json as never } })))
  })
})

describe('parts of it', () => {
  it('measures edits as the plain recursion does', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 6 })
    fc.assert(
      fc.property(
        word,
        word,
        fc.integer({ min: 0, max: 3 }),
        (a, b, max) => void expect(editDistance(a, b, max)).toBe(Math.min(plainDistance(a, b), max + 1)),
      ),
    )
  })

  it('keeps the best of many as sorting does', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(20), { maxLength: 60 }), fc.integer({ min: 1, max: 12 }), (scores, size) => {
        const top = createTopList(size)
        for (const [id, score] of scores.entries()) top.offer(id, score)
        const sorted = scores.map((score, id) => ({ id, score })).sort((a, b) => b.score - a.score || a.id - b.id)
        expect(top.take()).toEqual(sorted.slice(0, size))
      }),
    )
  })
})

const hostileText = fc.tuple(fc.string({ unit: 'binary', maxLength: 20 }), fc.nat(40)).map(([part, times]) => part.repeat(times))
const word = fc.constantFrom('files', 'file', 'github', 'GitHub', 'git', 'search', 'a', '1', 'postgres', 'mail')
const text = fc.array(word, { maxLength: 5 }).map((words) => words.join(' '))
const nameArb = fc
  .tuple(
    fc.stringMatching(/^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,8}[a-zA-Z0-9])?$/),
    fc.stringMatching(/^[a-zA-Z0-9]([a-zA-Z0-9._-]{0,8}[a-zA-Z0-9])?$/),
    word,
  )
  .map(([namespace, name, known]) => `${namespace}/${name.length % 2 === 0 ? known : name}`)
const catalogArb: fc.Arbitrary<SearchDocument[]> = fc.uniqueArray(
  fc.record({
    name: nameArb,
    title: text,
    description: text,
    tags: fc.array(word, { maxLength: 3 }),
    tools: fc.array(word, { maxLength: 3 }),
    registryTypes: fc.constant([]),
    transports: fc.constant([]),
    status: fc.constant('active' as const),
  }),
  { selector: (document) => document.name, maxLength: 25 },
)

function plainDistance(a: string, b: string): number {
  if (a === '' || b === '') return a.length + b.length
  const same = a.at(-1) === b.at(-1) ? 0 : 1
  const least = Math.min(
    plainDistance(a.slice(0, -1), b) + 1,
    plainDistance(a, b.slice(0, -1)) + 1,
    plainDistance(a.slice(0, -1), b.slice(0, -1)) + same,
  )
  const swapped = a.length > 1 && b.length > 1 && a.at(-1) === b.at(-2) && a.at(-2) === b.at(-1)
  return swapped ? Math.min(least, plainDistance(a.slice(0, -2), b.slice(0, -2)) + 1) : least
}
