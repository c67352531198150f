import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bundledCatalog } from '../bundled/bundled-catalog.ts'
import type { CatalogEntry, EntryStatus } from '../catalog-entry.ts'
import { schemaUrl } from '../schema-version.ts'
import { compareCodePoints } from '../text.ts'
import { readUpstreamRegistry } from '../upstream-registry.ts'
import { type SearchDocument, searchDocumentOf } from './search-document.ts'
import { exactTerm, filterKinds, MAX_FILTER_LENGTH, MAX_FILTER_VALUES, type SearchFilters } from './search-filters.ts'
import { openSearchIndex } from './search-index.ts'
import { indexDocuments } from './testing/index-documents.ts'

const open = (documents: readonly SearchDocument[]) => openSearchIndex(indexDocuments(documents))
const bundled = open(
  readUpstreamRegistry(bundledCatalog)
    .documents.map((document) => searchDocumentOf({ name: String(document['name']), document, status: 'active' }))
    .sort((a, b) => compareCodePoints(a.name, b.name)),
)

describe('exact filters', () => {
  it('give what a plain filter gives, alone and beside words', () => {
    fc.assert(
      fc.property(catalogArb, filtersArb, fc.constantFrom('', ' ', 'files', 'git mail', 'a/1'), (documents, filters, query) => {
        const index = open(documents)
        const asked = Object.values(filters).some((values) => values.length > 0)
        // Without filters, all that the words find; without words, all there is.
        const found =
          query.trim() === '' ? documents.map(({ name }) => name) : index.search(query, { limit: 100 }).hits.map(({ name }) => name)
        const passing = new Set(documents.filter((document) => passes(document, filters)).map(({ name }) => name))
        const expected = query.trim() === '' && !asked ? [] : found.filter((name) => passing.has(name))
        const hits = index.search(query, { limit: 100, filters }).hits
        expect(hits.map(({ name }) => name)).toEqual(expected)
        expect(index.search(query, { limit: 2, filters }).hits).toEqual(hits.slice(0, 2))
      }),
      { numRuns: 300 },
    )
  })

  it('do not change what words find or how it ranks, and no text reaches what they look up', () => {
    const plain = catalog(20).map((document) => ({ ...document, tags: [], tools: [] }))
    const other = plain.map((document) => ({ ...document, registryTypes: ['files'], transports: ['git', 'mail'] }))
    for (const query of [
      'files',
      'fles',
      'gi',
      'transport',
      'status',
      'active',
      'registryType:files',
      ...filterKinds.map((kind) => exactTerm(kind, 'git')),
    ]) {
      const { hits, work } = open(other).search(query, { limit: 100 })
      expect({ hits, work }, query).toEqual(open(plain).search(query, { limit: 100 }))
    }
    for (const query of ['active', 'status', exactTerm('status', 'active')]) expect(open(other).search(query).hits, query).toEqual([])
  })

  it('take a value as it is: case, parts and lengths matter', () => {
    const long = 'x'.repeat(MAX_FILTER_LENGTH)
    const [document] = catalog(1) as [SearchDocument]
    const index = open([{ ...document, tags: ['Web', 'a b', 'tag:x', 'ü', '\0', long, `${long}y`], tools: ['get_it'] }])
    const count = (filters: SearchFilters) => index.search('', { filters }).hits.length
    for (const tag of ['Web', 'a b', 'tag:x', 'ü', '\0', long]) expect(count({ tag: [tag] }), tag).toBe(1)
    for (const tag of ['web', 'We', 'a', 'x', 'u', 'get_it', '', `${long}y`, `${long}z`]) expect(count({ tag: [tag] }), tag).toBe(0)
    expect([count({ tool: ['get_it'] }), count({ tool: ['Web'] })]).toEqual([1, 0])
    expect(() => count({ tag: Array.from({ length: MAX_FILTER_VALUES + 1 }, (_, i) => `t${i}`) })).toThrow(RangeError)
    expect(count({ tag: Array(MAX_FILTER_VALUES + 1).fill('Web') }), 'the same again is no other').toBe(1)
  })

  it('find a name given exactly only where it passes', () => {
    const index = open(catalog(3))
    expect(index.search('a/1', { filters: { status: ['active'] } }).hits[0]?.name).toBe('a/1')
    expect(index.search('a/1', { filters: { status: ['deprecated'] } }).hits).toEqual([])
  })

  it('know the bundled catalog', () => {
    const names = (filters: SearchFilters) => bundled.search('', { filters, limit: 100 }).hits.map(({ name }) => name)
    expect(names({ status: ['active'] })).toHaveLength(bundled.count)
    expect(names({ status: ['deprecated'] })).toEqual([])
    const npm = names({ registryType: ['npm'] })
    const pypi = names({ registryType: ['pypi'] })
    const remote = names({ registryType: ['remote'] })
    for (const list of [npm, pypi, remote]) {
      expect(list.length).toBeGreaterThan(0)
      expect(list).toEqual(list.toSorted(compareCodePoints))
    }
    expect(new Set(names({ registryType: ['npm', 'pypi'] }))).toEqual(new Set([...npm, ...pypi]))
    expect(names({ transport: ['stdio'], registryType: ['npm'] }).length).toBeGreaterThan(0)
  })
})

describe('ways to reach a server', () => {
  const entry = (document: object) => searchDocumentOf({ name: 'a/b', document, status: 'deprecated' } as unknown as CatalogEntry)

  it('are those of all packages and remotes, each once', () => {
    const packages = [
      { registryType: 'npm', transport: { type: 'stdio' } },
      { registryType: 'npm', transport: { type: 'sse' } },
      { registryType: 'oci', transport: { type: 'stdio' } },
    ]
    expect(entry({ packages })).toMatchObject({ registryTypes: ['npm', 'oci'], transports: ['stdio', 'sse'], status: 'deprecated' })
    const remotes = [{ type: 'streamable-http' }, { type: 'sse' }]
    expect(entry({ packages, remotes })).toMatchObject({
      registryTypes: ['npm', 'oci', 'remote'],
      transports: ['stdio', 'sse', 'streamable-http'],
    })
  })

  it('are read as the schema of the document spells them', () => {
    const packages = [{ registry_type: 'pypi', transport: { type: 'stdio' } }]
    expect(entry({ $schema: schemaUrl('2025-07-09'), packages }).registryTypes).toEqual(['pypi'])
    expect(entry({ packages }).registryTypes).toEqual([])
  })

  it('survive any other shape', () => {
    const shape = fc.record({ packages: fc.jsonValue(), remotes: fc.jsonValue(), $schema: fc.jsonValue() })
    fc.assert(fc.property(shape, (document) => void entry(document)))
    expect(entry({ packages: [null, 3, { transport: 'x' }, { registryType: 4, transport: { type: [] } }], remotes: {} })).toMatchObject({
      registryTypes: [],
      transports: [],
    })
  })
})

function passes(document: SearchDocument, filters: SearchFilters): boolean {
  const has = { tag: document.tags, registryType: document.registryTypes, transport: document.transports, tool: document.tools }
  const all = { ...has, status: [document.status] as readonly string[] }
  return filterKinds.every((kind) => {
    const values = filters[kind] ?? []
    return values.length === 0 || values.some((value) => all[kind].includes(value))
  })
}

function catalog(count: number): SearchDocument[] {
  return Array.from({ length: count }, (_, i) => ({
    name: `a/${i}`,
    title: ['files', 'git', 'mail'][i % 3] ?? '',
    description: 'files of transports',
    tags: ['x'],
    tools: ['y'],
    registryTypes: [],
    transports: [],
    status: 'active',
  }))
}

const value = fc.constantFrom('files', 'git', 'mail', 'Git', 'active')
const values = fc.array(value, { maxLength: 3 })
const status = fc.constantFrom<EntryStatus>('active', 'deprecated')
const catalogArb: fc.Arbitrary<SearchDocument[]> = fc
  .array(fc.record({ title: value, description: value, tags: values, tools: values, registryTypes: values, transports: values, status }), {
    maxLength: 25,
  })
  .map((documents) => documents.map((document, i) => ({ ...document, name: `a/${String(i).padStart(2, '0')}` })))
const few = fc.oneof({ weight: 2, arbitrary: fc.constant<string[]>([]) }, { weight: 1, arbitrary: values })
const filtersArb = fc.record({ tag: values, registryType: values, transport: few, tool: few, status: fc.array(status, { maxLength: 1 }) })
