import type { SearchIndexData } from '@thv/catalog/search/search-index-data'
import { TestClock } from '@thv/kernel/clock'
import { runAtOnce } from '@thv/kernel/steps'
import { describe, expect, it } from 'vitest'
import { createCatalog } from '../views/catalog.ts'
import { createSearchBuilder } from '../views/search-builder.ts'
import { fill, specOf, stored } from '../views/testing/view-tools.ts'
import { createViewBuilder } from '../views/view-builder.ts'
import type { Publication, ViewPublication, ViewTarget } from './publication.ts'
import { createPublicationGate } from './publication-gate.ts'
import { createServedRegistries } from './served-registries.ts'

const CLAIM_SETS = Array.from({ length: 70 }, (_, i) => [`k${i}`, { team: `t${i}` }] as const)

describe('served registries', () => {
  it('takes the search from before for one that finds the same, but no other', () => {
    const { served, show, search, sameSearch } = rigOf()
    show('one')
    sameSearch('one', 'none')
    expect(served.registry('main')?.view?.search).toBeUndefined()
    search('one')
    show('two')
    sameSearch('two', 'other')
    expect(served.registry('main')?.view?.searchTag).toBe('one')
    sameSearch('two', 'one')
    expect([served.registry('main')?.view?.searchTag, served.registry('main')?.view?.search?.count]).toEqual(['two', 1])
  })

  it('keeps the search from before until the new one is built, and takes none that is too old', () => {
    const { served, show, search } = rigOf()
    show('one')
    search('one')
    show('two')
    const between = served.registry('main')?.view
    expect([between?.tag, between?.searchTag, between?.search?.count]).toEqual(['two', 'one', 1])
    show('three')
    search('two')
    expect(served.registry('main')?.view?.searchTag).toBe('one')
    search('three')
    expect(served.registry('main')?.view?.searchTag).toBe('three')
    expect(between?.searchTag).toBe('one')
  })

  it('drops the views of registries that are gone, and keeps the others', () => {
    const { served, show, layout } = rigOf()
    show('one')
    layout('main', 'more')
    expect(served.registry('main')?.view?.tag).toBe('one')
    expect(served.registry('more')?.view).toBeUndefined()
    layout('more')
    expect(served.registry('main')).toBeUndefined()
    layout('main')
    expect(served.registry('main')?.view).toBeUndefined()
  })

  it('has sixteen views for claims at most, and forgets what was asked for least recently', async () => {
    const { served, show, wanted } = rigOf()
    show('one')
    const registry = served.registry('main')
    const ask = async (index: number) => {
      const view = registry?.viewFor([index])
      show(`of ${index}`, [`k${index}`])
      return (await view)?.tag
    }
    for (let i = 0; i < 16; i++) expect(await ask(i)).toBe(`of ${i}`)
    expect((await registry?.viewFor([0]))?.tag).toBe('of 0')
    await ask(16)
    expect(wanted).toHaveLength(16)
    expect(wanted.some(({ visible }) => String(visible) === 'k0')).toBe(true)
    expect(wanted.some(({ visible }) => String(visible) === 'k1')).toBe(false)
    expect(served.wanted).toEqual(expect.arrayContaining(wanted))
  })

  it('wants nothing more for a registry that is gone, and keeps no call waiting for it', async () => {
    const { served, show, layout, wanted, clock } = rigOf()
    show('one')
    const registry = served.registry('main')
    const built = registry?.viewFor([0])
    show('of 0', ['k0'])
    await built
    const waiting = registry?.viewFor([1])
    layout('more')
    await expect(waiting).rejects.toMatchObject({ code: 'store_unavailable' })
    expect(wanted).toEqual([])
    expect(clock.pending).toBe(0)
  })

  it('limits the wait for such a view, and the number of waiting readers', async () => {
    const { served, show, clock, wanted } = rigOf()
    show('one')
    const waiting = Array.from({ length: 65 }, (_, i) => served.registry('main')?.viewFor([i]))
    const outcomes = Promise.allSettled(waiting)
    await expect(waiting[64]).rejects.toMatchObject({ code: 'store_unavailable' })
    await clock.advance(10_000)
    expect((await outcomes).every(({ status }) => status === 'rejected')).toBe(true)
    expect(wanted).toEqual([])
    expect(clock.pending).toBe(0)
  })
})

describe('the gate between a restarted engine and the served views', () => {
  const statusOf = (unsynced: readonly string[]): Publication => {
    const syncs = { succeeded: 0, unchanged: 0, failed: 0 }
    return { kind: 'status', status: { loaded: true, unbuilt: [], unsynced, failed: [], revision: 1, syncs } }
  }

  it('holds everything back until all sources were tried, however much there is to tell, and then lets the newest through', () => {
    const passed: Publication[] = []
    const gate = createPublicationGate({ clock: new TestClock(), pass: (publication) => passed.push(publication) })
    const layoutOf = (...names: readonly string[]): Publication => {
      return { kind: 'layout', registries: names.map((name) => ({ name, claims: undefined })) }
    }
    const viewOf = (tag: string, ...names: readonly string[]) => {
      return { kind: 'view', targets: names.map((registry) => ({ registry, visible: undefined })), tag } as unknown as ViewPublication
    }
    gate.accept(statusOf(['before']))
    gate.hold()
    gate.accept(layoutOf('a'))
    for (let i = 0; i < 1_000; i++) {
      gate.accept(viewOf(`a${i}`, 'a'))
      gate.accept(statusOf([`source ${i}`]))
    }
    gate.accept(viewOf('b', 'b'))
    gate.accept(layoutOf('a', 'b'))
    expect(passed).toEqual([statusOf(['before'])])
    gate.accept(statusOf([]))
    gate.accept(statusOf(['c']))
    expect(passed.slice(1)).toEqual([layoutOf('a', 'b'), viewOf('a999', 'a'), viewOf('b', 'b'), statusOf([]), statusOf(['c'])])
  })

  it('keeps the index that a held search stands for', () => {
    const passed: Publication[] = []
    const gate = createPublicationGate({ clock: new TestClock(), pass: (publication) => passed.push(publication) })
    const targets = [{ registry: 'a', visible: undefined }]
    const index = {} as SearchIndexData
    gate.hold()
    gate.accept({ kind: 'search', targets, tag: 'one', index })
    gate.accept({ kind: 'search', targets, tag: 'two', index: undefined, sameAs: 'one' })
    gate.accept({ kind: 'search', targets, tag: 'three', index: undefined, sameAs: 'two' })
    gate.accept(statusOf([]))
    expect(passed[0]).toEqual({ kind: 'search', targets, tag: 'three', index })
    expect((passed[0] as { index?: unknown }).index).toBe(index)
  })

  it('opens by itself', async () => {
    const clock = new TestClock()
    const passed: Publication[] = []
    const gate = createPublicationGate({ clock, pass: (publication) => passed.push(publication) })
    gate.hold()
    gate.accept(statusOf(['a']))
    await clock.advance(30_000)
    expect(passed).toHaveLength(1)
  })
})

function rigOf() {
  const clock = new TestClock()
  const wanted: ViewTarget[] = []
  const served = createServedRegistries({
    clock,
    want: (target) => wanted.push(target),
    unwant: (target) =>
      wanted.splice(
        wanted.findIndex(({ visible }) => String(visible) === String(target.visible)),
        1,
      ),
  })
  const layout = (...names: readonly string[]) =>
    served.accept({ kind: 'layout', registries: names.map((name) => ({ name, claims: undefined })) })
  layout('main')
  const catalog = createCatalog()
  fill(catalog, [stored('a', 'x/y', { revision: 1 })])
  const built = () => runAtOnce(createViewBuilder().build(catalog, specOf('a')))
  const targetOf = (visible?: readonly string[]): ViewTarget => ({ registry: 'main', visible })
  return {
    clock,
    wanted,
    served,
    layout,
    show(tag: string, visible?: readonly string[]) {
      const publication: ViewPublication = {
        kind: 'view',
        targets: [targetOf(visible)],
        revision: 1,
        tag,
        snapshot: built().snapshot,
        claimSets: CLAIM_SETS,
      }
      served.accept(publication)
    },
    search(tag: string) {
      const index = runAtOnce(createSearchBuilder().build({}, built().latest))
      served.accept({ kind: 'search', targets: [targetOf()], tag, index })
    },
    sameSearch(tag: string, sameAs: string) {
      served.accept({ kind: 'search', targets: [targetOf()], tag, index: undefined, sameAs })
    },
  }
}
