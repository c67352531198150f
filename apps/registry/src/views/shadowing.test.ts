import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { StoredEntry } from '../store/registry-store.ts'
import { createCatalog } from './catalog.ts'
import { fill, type ListedServer, listed, openView, specOf, stored } from './testing/view-tools.ts'
import { createViewBuilder } from './view-builder.ts'

const SOURCES = ['a', 'b', 'c']

describe('which source has a name', () => {
  it('the first one with a version that is not deleted, by position', () => {
    const catalog = createCatalog()
    fill(catalog, [
      stored('b', 'x/y', { revision: 1, version: '9.0.0' }),
      stored('a', 'x/y', { revision: 2, version: '1.0.0' }),
      stored('b', 'x/z', { revision: 3 }),
    ])
    const shown = listed(openView(catalog, specOf('a', 'b'))).map(({ name, version, by }) => [name, version, by])
    expect(shown).toEqual([
      ['x/y', '1.0.0', 2],
      ['x/z', '1.0.0', 3],
    ])
    expect(listed(openView(catalog, specOf('b', 'a'))).map(({ by }) => by)).toEqual([1, 3])
  })

  it('a later one when all versions of the first are deleted', () => {
    const catalog = createCatalog()
    fill(catalog, [stored('b', 'x/y', { revision: 1 }), stored('a', 'x/y', { revision: 2, version: '2.0.0' })])
    const since = new Date(Date.UTC(2026, 0, 1) + 2_500).toISOString()
    fill(catalog, [stored('a', 'x/y', { revision: 3, version: '2.0.0', status: 'deleted' })])
    const view = openView(catalog, specOf('a', 'b'))
    expect(listed(view)).toMatchObject([{ version: '1.0.0', by: 1, isLatest: true }])
    // A client that had 2.0.0 of the first learns that it is gone and that 1.0.0 is there now, though that was written long ago.
    expect(listed(view, { updatedSince: since })).toMatchObject([
      { version: '1.0.0', status: 'active' },
      { version: '2.0.0', status: 'deleted' },
    ])
  })

  it('never an entry that the reader may not see: the next one takes its place', () => {
    const catalog = createCatalog()
    fill(catalog, [
      stored('a', 'x/y', { revision: 1, claims: { team: 'one' } }),
      stored('b', 'x/y', { revision: 2 }),
      stored('b', 'x/z', { revision: 3 }),
    ])
    const view = openView(catalog, { ...specOf('a', 'b'), visible: new Set(['']) })
    expect(listed(view).map(({ by }) => by)).toEqual([2, 3])
    expect(listed(view, { includeDeleted: true })).toHaveLength(2)
  })

  it('is found as a plain search finds it, and a reader of changes ends with the same as a reader of everything', () => {
    const change = fc.record({
      source: fc.constantFrom(...SOURCES),
      name: fc.constantFrom('x/a', 'x/b'),
      version: fc.constantFrom('1.0.0', '2.0.0', '10.0.0'),
      deleted: fc.boolean(),
      polls: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 30 }), (changes) => {
        const catalog = createCatalog()
        const builder = createViewBuilder()
        const rows = new Map<string, StoredEntry>()
        const copy = new Map<string, ListedServer>()
        let since: string | undefined
        for (const [i, { source, name, version, deleted, polls }] of changes.entries()) {
          const key = `${source} ${name} ${version}`
          // As the stores do it: what was never there cannot be deleted.
          if (deleted && !rows.has(key)) continue
          const row = stored(source, name, { revision: i + 1, version, status: deleted ? 'deleted' : 'active' })
          rows.set(key, row)
          fill(catalog, [row])
          if (!polls && i + 1 < changes.length) continue
          const view = openView(catalog, specOf(...SOURCES), builder)
          for (const server of listed(view, since === undefined ? {} : { updatedSince: since })) {
            const place = `${server.name} ${server.version}`
            if (server.status === 'deleted') copy.delete(place)
            else copy.set(place, server)
            if (since === undefined || server.updatedAt > since) since = server.updatedAt
          }
          const all = listed(view)
          expect(all.map(({ name, version, by }) => `${name} ${version} ${by}`)).toEqual(plainly([...rows.values()]))
          expect([...copy.values()].map(contentOf).sort()).toEqual(all.map(contentOf).sort())
        }
      }),
      { numRuns: 200 },
    )
  })
})

/** The high-water mark of a reader who has seen nothing yet is nothing. */
function contentOf({ name, version, by }: ListedServer): string {
  return `${name} ${version} ${by}`
}

function plainly(rows: readonly StoredEntry[]): string[] {
  const living = rows.filter((row) => row.status !== 'deleted')
  return ['x/a', 'x/b'].flatMap((name) => {
    const winner = SOURCES.find((source) => living.some((row) => row.source === source && row.name === name))
    return living
      .filter((row) => row.source === winner && row.name === name)
      .sort((a, b) => Number.parseInt(a.version, 10) - Number.parseInt(b.version, 10))
      .map((row) => `${name} ${row.version} ${row.revision}`)
  })
}
