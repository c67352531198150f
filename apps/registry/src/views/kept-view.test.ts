import { openSnapshot } from '@thv/catalog/snapshot/snapshot'
import { snapshotTransferList } from '@thv/catalog/snapshot/snapshot-data'
import { compareVersions } from '@thv/catalog/version-order'
import { runAtOnce } from '@thv/kernel/steps'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { StoredEntry } from '../store/registry-store.ts'
import { createCatalog } from './catalog.ts'
import { documentText } from './catalog-row.ts'
import type { BuiltView } from './kept-view.ts'
import { EPOCH, fill, listText, specOf, stored } from './testing/view-tools.ts'
import { createViewBuilder } from './view-builder.ts'

const NAMES = ['x/a', 'x/b', 'x/é😀', 'x/c']
const QUERIES = [
  {},
  { includeDeleted: true },
  { search: 'X/' },
  { search: 'two' },
  { version: 'latest' },
  { updatedSince: new Date(EPOCH + 4_000).toISOString() },
]

/** Everything that a view serves. The receiver takes the columns away, as the serving thread does. */
function contentOf({ snapshot, latest, claimSets }: BuiltView) {
  const taken = openSnapshot(structuredClone(snapshot, { transfer: snapshotTransferList(snapshot) }), compareVersions)
  return {
    claimSets,
    latest: latest.map(({ name, row }) => `${name} ${documentText(row)}`),
    lists: QUERIES.map((query) => listText(taken, query)),
    versions: NAMES.map((name) => Buffer.concat(taken.versions(name, { includeDeleted: true })?.slices ?? []).toString()),
  }
}

describe('a view that is made from the one before', () => {
  it('serves, byte by byte, what a new one serves', () => {
    const entry = fc.record({
      source: fc.constantFrom('a', 'b'),
      name: fc.constantFrom(...NAMES),
      version: fc.constantFrom('1.0.0', '1.10.0'),
      status: fc.constantFrom('active' as const, 'active' as const, 'active' as const, 'deleted' as const),
      description: fc.constantFrom('one', 'one', 'two'),
      claims: fc.constantFrom(undefined, undefined, undefined, { team: 'x' }),
    })
    const spec = fc.record({
      floorMs: fc.constantFrom(0, EPOCH + 3_500),
      isNarrow: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(fc.array(entry, { maxLength: 4 }), { minLength: 2, maxLength: 10 }), spec, (batches, { floorMs, isNarrow }) => {
        const catalog = createCatalog()
        const builder = createViewBuilder()
        const view = { ...specOf('a', 'b'), floorMs, visible: isNarrow ? new Set(['']) : undefined }
        for (const [i, batch] of batches.entries()) {
          const rows = new Map<string, StoredEntry>()
          for (const { source, name, version, status, description, claims } of batch) {
            const text = JSON.stringify({ name, description, version, by: i })
            const more = { version, status, text, publishedAt: '2025-05-05T05:05:05Z', revision: i + 1, ...(claims && { claims }) }
            rows.set(`${source} ${name} ${version}`, stored(source, name, more))
          }
          fill(catalog, [...rows.values()])
          const kept = contentOf(runAtOnce(builder.build(catalog, view)))
          expect(kept).toEqual(contentOf(runAtOnce(createViewBuilder().build(catalog, view))))
        }
      }),
      { numRuns: 100 },
    )
  })

  it('lays nothing out again for another document, and everything for another word, name, version, status or claim', () => {
    const catalog = createCatalog()
    const builder = createViewBuilder()
    let revision = 0
    let before: unknown
    const put = (more: Partial<StoredEntry> & { description?: string; name?: string }) => {
      const { name = 'x/a', description = 'text', ...rest } = more
      const text = JSON.stringify({ name, description, version: rest.version ?? '1.0.0', by: ++revision })
      fill(catalog, [stored('a', name, { text, publishedAt: '2025-05-05T05:05:05Z', ...rest, revision })])
      const { names } = runAtOnce(builder.build(catalog, specOf('a'))).snapshot
      const isSame = names.bytes.buffer === before
      before = names.bytes.buffer
      return isSame ? 'kept' : 'laid out'
    }
    expect(put({})).toBe('laid out')
    expect(put({})).toBe('kept')
    expect(put({ description: 'another' })).toBe('laid out')
    expect(put({ description: 'another' })).toBe('kept')
    expect(put({ name: 'x/b' })).toBe('laid out')
    expect(put({ description: 'another', version: '2.0.0' })).toBe('laid out')
    expect(put({ description: 'another', version: '2.0.0', status: 'deleted' })).toBe('laid out')
    expect(put({ name: 'x/b', claims: { team: 'x' } })).toBe('laid out')
    expect(put({ name: 'x/b', claims: { team: 'x' } })).toBe('kept')
    expect(put({ name: 'x/b', claims: { team: 'x' }, publishedAt: '2026-05-05T05:05:05Z' })).toBe('laid out')
  })

  it('accounts for the memory of what it no longer shows', () => {
    const catalog = createCatalog()
    const builder = createViewBuilder()
    const spec = { ...specOf('a'), floorMs: EPOCH + 60_000 }
    fill(catalog, [stored('a', 'x/a', { revision: 1 })])
    runAtOnce(builder.build(catalog, spec))
    const { live } = catalog.arenas.json
    for (let revision = 2; revision < 9; revision++) {
      fill(catalog, [stored('a', 'x/a', { revision, publishedAt: '2026-01-01T00:00:01.000Z' })])
      runAtOnce(builder.build(catalog, spec))
    }
    expect(catalog.arenas.json.live).toBe(live)
    builder.release()
    fill(catalog, [])
    expect(catalog.arenas.json.live).toBeLessThan(live)
  })
})
