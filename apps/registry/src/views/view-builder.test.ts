import { openSearchIndex } from '@thv/catalog/search/search-index'
import { snapshotTransferList } from '@thv/catalog/snapshot/snapshot-data'
import { runAtOnce } from '@thv/kernel/steps'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { StoredEntry } from '../store/registry-store.ts'
import { createCatalog } from './catalog.ts'
import { createSearchBuilder } from './search-builder.ts'
import { EPOCH, fill, listed, listText, openView, plainSnapshot, specOf, stored } from './testing/view-tools.ts'
import { createViewBuilder } from './view-builder.ts'

describe('views that are built again and again', () => {
  it('are byte by byte what is built from everything at once', () => {
    const entry = fc.record({
      name: fc.constantFrom('x/a', 'x/b', 'x/é😀', 'X/a', 'x/b2'),
      version: fc.constantFrom('1.0.0', '1.10.0', '1.9.0', 'main', '2.0.0-rc.1'),
      status: fc.constantFrom('active' as const, 'deprecated' as const, 'deleted' as const),
      statusMessage: fc.option(fc.string(), { nil: undefined }),
      publishedAt: fc.constantFrom('2025-05-05T05:05:05Z', '2025-05-05T05:05:05.000000001Z', '2024-01-01T00:00:00+01:00'),
    })
    fc.assert(
      fc.property(fc.array(fc.array(entry, { maxLength: 6 }), { minLength: 1, maxLength: 8 }), (batches) => {
        const catalog = createCatalog()
        const builder = createViewBuilder()
        const rows = new Map<string, StoredEntry>()
        for (const [i, batch] of batches.entries()) {
          const written = batch.map(({ statusMessage, ...rest }) =>
            stored('a', rest.name, { ...rest, ...(statusMessage !== undefined && { statusMessage }), revision: i + 1 }),
          )
          // A store writes a row once per revision; the first of a batch counts here.
          const first = written.filter((row, at) => written.findIndex((other) => keyOf(other) === keyOf(row)) === at)
          for (const row of first) rows.set(keyOf(row), row)
          fill(catalog, first)
          const view = openView(catalog, specOf('a'), builder)
          const plain = plainSnapshot([...rows.values()])
          for (const query of [{}, { includeDeleted: true }, { search: 'X/' }, { version: 'latest' }]) {
            expect(listText(view, query)).toBe(listText(plain, query))
          }
          for (const name of ['x/a', 'x/é😀']) {
            expect(bytesOf(view.versions(name))).toBe(bytesOf(plain.versions(name)))
          }
        }
      }),
      { numRuns: 100 },
    )
  })

  it('share their bytes with the catalog, and give only their own away', () => {
    const catalog = createCatalog()
    fill(catalog, many(10, 1))
    const first = runAtOnce(createViewBuilder().build(catalog, specOf('a'))).snapshot
    const second = runAtOnce(createViewBuilder().build(catalog, specOf('a'))).snapshot
    expect(first.json.segments[0]?.buffer).toBe(second.json.segments[0]?.buffer)
    const moved = structuredClone(first, { transfer: snapshotTransferList(first) })
    expect(moved.json.segments[0]?.length).toBe(second.json.segments[0]?.length)
    expect(first.flags.length).toBe(0)
    expect(listed(openView(catalog, specOf('a')))).toHaveLength(10)
  })

  it('have all versions of a name in order, in whatever order they came', () => {
    const catalog = createCatalog()
    const came = Array.from({ length: 400 }, (_, i) => `1.${(i * 37) % 400}.0`)
    for (const part of [came.slice(0, 150), came.slice(150)]) {
      fill(
        catalog,
        part.map((version, i) =>
          stored('a', 'x/y', { version, revision: 1 + came.indexOf(version), ...(i === 7 && { status: 'deleted' }) }),
        ),
      )
    }
    const shown = listed(openView(catalog, specOf('a')), { includeDeleted: true })
    expect(shown.map(({ version }) => version)).toEqual(Array.from({ length: 400 }, (_, i) => `1.${i}.0`))
    expect(shown.filter(({ isLatest }) => isLatest).map(({ version }) => version)).toEqual(['1.399.0'])
  })

  it('keep nothing of a source that is gone, though it went before everything was in order', () => {
    const catalog = createCatalog()
    for (const version of ['1.0.0', '2.0.0']) catalog.add(stored('a', 'x/y', { version, revision: 1 }))
    runAtOnce(catalog.dropSources(new Set(['a'])))
    runAtOnce(catalog.settle())
    expect([catalog.slots.length, catalog.arenas.json.live, catalog.arenas.text.live]).toEqual([0, 0, 0])
  })

  it('are moved together when too much of the memory is of the past, and stay the same', () => {
    const catalog = createCatalog()
    fill(catalog, many(500, 1))
    const before = catalog.arenas
    // One in forty: too few to pay.
    fill(
      catalog,
      many(500, 2).filter((_, i) => i % 40 === 0),
    )
    expect(catalog.arenas).toBe(before)
    fill(
      catalog,
      many(500, 3).filter((_, i) => i % 3 === 0),
    )
    expect(catalog.arenas).not.toBe(before)
    const view = openView(catalog, specOf('a'))
    const page = view.list({ limit: 500 })
    expect('slices' in page && page.slices.length).toBe(
      runAtOnce(createViewBuilder().build(catalog, specOf('a'))).snapshot.json.segments.length,
    )
    expect(listed(view).map(({ by }) => by)).toEqual(many(500, 1).map((_, i) => (i % 3 === 0 ? 3 : i % 40 === 0 ? 2 : 1)))
  })

  it('have nothing older than the last change of what the registry consists of', () => {
    const catalog = createCatalog()
    fill(catalog, [stored('a', 'x/y', { revision: 1 }), stored('a', 'x/z', { revision: 9 })])
    const view = openView(catalog, { ...specOf('a'), floorMs: EPOCH + 5_000 })
    const since = new Date(EPOCH + 4_000).toISOString()
    expect(listed(view, { updatedSince: since }).map(({ name, updatedAt }) => [name, updatedAt])).toEqual([
      ['x/y', '2026-01-01T00:00:05.000Z'],
      ['x/z', '2026-01-01T00:00:09.000Z'],
    ])
  })

  it('are indexed again only where a word, a name or the order is another', () => {
    const catalog = createCatalog()
    const builder = createViewBuilder()
    const search = createSearchBuilder()
    const view = {}
    const put = (name: string, title: string, url: string, revision: number) => {
      const text = JSON.stringify({ name, title, version: '1', remotes: [{ type: 'sse', url }] })
      fill(catalog, [stored('a', name, { version: '1', revision, text })])
      const { latest } = runAtOnce(builder.build(catalog, specOf('a')))
      return runAtOnce(search.update(view, latest)) === 'same'
    }
    expect(put('x/y', 'first', 'https://a.example/', 1)).toBe(false)
    expect(put('x/y', 'first', 'https://b.example/', 2)).toBe(true)
    expect(put('x/y', 'second', 'https://b.example/', 3)).toBe(false)
    expect(put('x/z', 'second', 'https://b.example/', 4)).toBe(false)
    expect(put('x/z', 'second', 'https://c.example/', 5)).toBe(true)
    search.release(view)
    expect(put('x/z', 'second', 'https://d.example/', 6)).toBe(false)
  })

  it('keep no list of words that was given up, not even in rows that are not searched any more', () => {
    const catalog = createCatalog()
    const builder = createViewBuilder()
    const search = createSearchBuilder({ fewTerms: 1 })
    const view = {}
    const put = (version: string, title: string, revision: number) => {
      fill(catalog, [stored('a', 'x/y', { version, revision, text: JSON.stringify({ name: 'x/y', title, version }) })])
      const { latest } = runAtOnce(builder.build(catalog, specOf('a')))
      return { row: latest[0]?.row, index: runAtOnce(search.build(view, latest)) }
    }
    const old = put('1.0.0', 'one two three four five six seven eight', 1)
    const lists = ['alpha', 'beta', 'gamma'].map((title, i) => put(`1.0.${i + 1}`, `${title} ${'x'.repeat(i + 1)}`, i + 2))
    // Words of the first title are not among those of a later list.
    expect(lists.some(({ row }) => row?.wordsOf !== old.row?.wordsOf)).toBe(true)
    expect(openSearchIndex(lists.at(-1)?.index as NonNullable<typeof old.index>).search('gamma').hits.length).toBe(1)
    expect(Object.values(old.row ?? {}).filter((value) => typeof value === 'object' && value !== null && 'occurrences' in value)).toEqual(
      [],
    )
  })

  it('are searched by the latest version of each server that is not deleted', () => {
    const words = (...deleted: readonly string[]) => {
      const catalog = createCatalog()
      const text = (version: string, title: string) => ({ version, text: JSON.stringify({ name: 'x/y', title, version }) })
      const all = [text('1.10.0', 'newest'), text('1.2.0', 'oldest'), text('1.9.0', 'middle')]
      fill(
        catalog,
        all.map((one, i) => stored('a', 'x/y', { revision: i + 1, ...one, ...(deleted.includes(one.version) && { status: 'deleted' }) })),
      )
      const { latest } = runAtOnce(createViewBuilder().build(catalog, specOf('a')))
      const index = openSearchIndex(runAtOnce(createSearchBuilder().build({}, latest)))
      return ['oldest', 'middle', 'newest'].filter((word) => index.search(word).hits.length > 0)
    }
    expect(words()).toEqual(['newest'])
    expect(words('1.10.0', '1.2.0')).toEqual(['middle'])
    expect(words('1.10.0', '1.2.0', '1.9.0')).toEqual([])
  })

  it('forget a source, and know one of the same name that comes after it', () => {
    const catalog = createCatalog()
    fill(catalog, [stored('a', 'x/y', { revision: 7 }), stored('b', 'x/y', { revision: 1 }), stored('a', 'x/z', { revision: 2 })])
    runAtOnce(catalog.dropSources(new Set(['a'])))
    fill(catalog, [stored('a', 'x/new', { revision: 8 })])
    expect(listed(openView(catalog, specOf('a', 'b')), { includeDeleted: true }).map(({ name, by }) => [name, by])).toEqual([
      ['x/new', 8],
      ['x/y', 1],
    ])
  })

  it('name the different claims, of entries and of sources', () => {
    const catalog = createCatalog()
    fill(catalog, [
      stored('a', 'x/1', { revision: 1, claims: { team: ['b', 'a'] } }),
      stored('a', 'x/2', { revision: 1, claims: { team: ['a', 'b', 'a'] } }),
      stored('a', 'x/3', { revision: 1 }),
      stored('b', 'x/4', { revision: 1 }),
    ])
    const spec = {
      ...specOf('a', 'b'),
      sources: [
        { name: 'a', claims: { org: 'o' } },
        { name: 'b', claims: undefined },
      ],
    }
    const { claimSets } = runAtOnce(createViewBuilder().build(catalog, spec))
    expect(claimSets.map(([, claims]) => claims)).toEqual([undefined, { org: 'o' }, { team: ['b', 'a'] }])
    const some = { ...spec, visible: new Set(claimSets.slice(0, 2).map(([key]) => key)) }
    expect(listed(openView(catalog, some)).map(({ name }) => name)).toEqual(['x/3', 'x/4'])
  })
})

function many(count: number, revision: number): StoredEntry[] {
  return Array.from({ length: count }, (_, i) => stored('a', `x/${String(i).padStart(4, '0')}`, { revision }))
}

function keyOf({ name, version }: StoredEntry): string {
  return `${name} ${version}`
}

function bytesOf(page: { slices: readonly Uint8Array[] } | undefined): string {
  return Buffer.concat(page?.slices ?? []).toString()
}
