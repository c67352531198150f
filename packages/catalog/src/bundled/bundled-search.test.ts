import MiniSearch from 'minisearch'
import { describe, expect, it } from 'vitest'
import { searchDocumentOf } from '../search/search-document.ts'
import { openSearchIndex } from '../search/search-index.ts'
import { indexDocuments } from '../search/testing/index-documents.ts'
import { shortName } from '../server-name.ts'
import { readUpstreamRegistry } from '../upstream-registry.ts'
import { bundledCatalog } from './bundled-catalog.ts'
import { type GoldenQuery, goldenQueries } from './testing/golden-queries.ts'

const documents = readUpstreamRegistry(bundledCatalog).documents.map((document) =>
  searchDocumentOf({ name: String(document['name']), document, status: 'active' }),
)
const index = openSearchIndex(indexDocuments(documents))

const ours = (query: string) => index.search(query, { limit: 3 }).hits.map(({ name }) => shortName(name))

/** A well-known engine with its usual settings for typing errors, as a second opinion on what can be expected. */
const other = new MiniSearch<Record<string, string>>({
  idField: 'name',
  fields: ['short', 'title', 'description', 'tags', 'tools'],
  searchOptions: { fuzzy: 0.2, prefix: true, boost: { short: 3, title: 3, tags: 2 } },
})
other.addAll(
  documents.map(({ name, title, description, tags, tools }) => ({
    name,
    short: shortName(name),
    title,
    description,
    tags: tags.join(' '),
    tools: tools.join(' ').replaceAll('_', ' '),
  })),
)
const theirs = (query: string) =>
  other
    .search(query)
    .slice(0, 3)
    .map(({ id }) => shortName(String(id)))

const isHit = ({ first, among = [], only }: GoldenQuery, got: readonly string[]) =>
  got.length > 0 &&
  (first === undefined || got[0] === first) &&
  among.every((name) => got.includes(name)) &&
  (only === undefined || got.every((name) => only.includes(name)))

describe('ranked search in the bundled catalog', () => {
  const missed = goldenQueries.filter((golden) => !isHit(golden, ours(golden.query)))
  const typos = goldenQueries.filter(({ typo }) => typo)

  it('finds what people expect in at least nine of ten golden queries, also of those with typing errors', () => {
    const report = missed.map(({ query }) => `${query}: ${ours(query).join(', ')}`)
    expect([goldenQueries.length >= 30, typos.length >= 8]).toEqual([true, true])
    expect(missed.length, report.join('\n')).toBeLessThanOrEqual(Math.floor(goldenQueries.length / 10))
    expect(missed.filter(({ typo }) => typo).length, report.join('\n')).toBeLessThanOrEqual(Math.floor(typos.length / 10))
  })

  it('is not behind a well-known engine on the same queries', () => {
    const theirMisses = goldenQueries.filter((golden) => !isHit(golden, theirs(golden.query)))
    expect(missed.length, `they missed ${theirMisses.map(({ query }) => query).join(', ')}`).toBeLessThanOrEqual(theirMisses.length)
  })
})
