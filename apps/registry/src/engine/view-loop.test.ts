import type { SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import { TestClock } from '@thv/kernel/clock'
import { afterEach, describe, expect, it } from 'vitest'
import type { RegistryStore } from '../store/registry-store.ts'
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts'
import type { Publication, SearchPublication, ViewPublication, ViewTarget } from './publication.ts'
import { eventually, silentLog } from './testing/engine-fixture.ts'
import { startViewLoop } from './view-loop.ts'

const open: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]()
})

const own: SourceConfig = { name: 'own', managed: {} }

describe('the loop that builds views', () => {
  it('builds a view again when it is wanted again, although the view still exists', async () => {
    const { loop, clock, viewsOf } = await rigOf()
    const target: ViewTarget = { registry: 'main', visible: ['x'] }
    loop.want(target)
    await eventually(clock, () => viewsOf(target).length === 1)
    // Its reader has forgotten it meanwhile, and waits.
    loop.unwant(target)
    loop.want(target)
    await eventually(clock, () => viewsOf(target).length === 2)
    expect(new Set(viewsOf(target)).size).toBe(2)
  })

  it('sends a search index again only where its words are others, or its reader has none', async () => {
    const { loop, clock, store, viewsOf, searchesOf } = await rigOf()
    const main: ViewTarget = { registry: 'main', visible: undefined }
    const reader: ViewTarget = { registry: 'main', visible: [''] }
    const document = (url: string, title: string) => {
      const text = JSON.stringify({ name: 'x/a', title, version: '1.0.0', remotes: [{ type: 'sse', url }] })
      return { source: 'own', name: 'x/a', version: '1.0.0', text }
    }
    const settled = async (target: ViewTarget) => {
      await eventually(clock, () => searchesOf(target).at(-1)?.tag === viewsOf(target).at(-1)?.tag)
      const last = searchesOf(target).at(-1)
      return { hasIndex: last?.index !== undefined, sameAs: last?.sameAs, tag: last?.tag }
    }
    const changed = async (target: ViewTarget, work: () => unknown) => {
      const before = viewsOf(target).length
      await work()
      await eventually(clock, () => viewsOf(target).length > before)
      return await settled(target)
    }
    const first = await changed(main, () => store.publish(document('https://a.example/', 'one')))
    expect(first.hasIndex).toBe(true)
    const second = await changed(main, () => store.replaceDocument(document('https://b.example/', 'one')))
    expect(second).toMatchObject({ hasIndex: false, sameAs: first.tag })
    expect(await changed(main, () => store.replaceDocument(document('https://c.example/', 'one')))).toMatchObject({
      hasIndex: false,
      sameAs: second.tag,
    })
    expect(await changed(main, () => store.replaceDocument(document('https://c.example/', 'two')))).toMatchObject({ hasIndex: true })
    expect(await changed(reader, () => loop.want(reader))).toMatchObject({ hasIndex: true })
    expect(await changed(reader, () => store.replaceDocument(document('https://d.example/', 'two')))).toMatchObject({ hasIndex: false })
    loop.unwant(reader)
    expect(await changed(reader, () => loop.want(reader))).toMatchObject({ hasIndex: true })
  })

  it('sends a whole search index to a reader that asks again while its index is built', async () => {
    const main: ViewTarget = { registry: 'main', visible: undefined }
    const reader: ViewTarget = { registry: 'main', visible: [''] }
    const isSearched = (target: ViewTarget) => rig.searchesOf(target).at(-1)?.tag === rig.viewsOf(target).at(-1)?.tag
    let before = Number.POSITIVE_INFINITY
    let asked = 0
    const rig = await rigOf(undefined, async () => {
      // So often that the index is not put off any more. Its reader has forgotten the view, and cannot take the index that comes now.
      if (asked === 4 || rig.viewsOf(reader).length <= before + asked || !isSearched(main)) return
      asked += 1
      rig.loop.unwant(reader)
      rig.loop.want(reader)
    })
    const { loop, clock, store, viewsOf, searchesOf } = rig
    const document = (url: string) => {
      const text = JSON.stringify({ name: 'x/a', version: '1.0.0', remotes: [{ type: 'sse', url }] })
      return { source: 'own', name: 'x/a', version: '1.0.0', text }
    }
    await store.publish(document('https://a.example/'))
    loop.want(reader)
    await eventually(clock, () => searchesOf(reader).length > 0)
    before = viewsOf(reader).length
    const searches = searchesOf(reader).length
    await store.replaceDocument(document('https://b.example/'))
    await eventually(clock, () => viewsOf(reader).length === before + 5)
    await eventually(clock, () => searchesOf(reader).length === searches + 2)
    expect(searchesOf(reader).at(-1)?.index).toBeDefined()
  })

  it('serves no revision in part, also from a store that ends its reading at the revision with which it began', async () => {
    const whole: RegistryStore = await openSqliteStore({ clock: new TestClock() })
    open.push(whole)
    const document = (name: string, round: number) => ({ source: 'own', name, version: '1.0.0', text: JSON.stringify({ name, round }) })
    await whole.reconcileConfig({ sources: [own], registries: [{ name: 'main', sources: ['own'] }] })
    for (const name of ['x/a', 'x/b', 'x/c']) await whole.publish(document(name, 0))
    let reading = 0
    const store = new Proxy(whole, {
      get(target, key) {
        if (key === 'entriesAfter') return entriesAfter
        const value: unknown = Reflect.get(target, key)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    // As PostgreSQL's: somebody writes between two pages, and what he has written is left to the next reading.
    async function* entriesAfter(after: number, signal: AbortSignal) {
      const { data: until } = await whole.revision()
      reading += 1
      if (reading === 1) await whole.replaceDocument(document('x/a', 1))
      for await (const batch of whole.entriesAfter(after, signal)) yield batch.filter(({ revision }) => revision <= until)
    }
    const { clock, viewsOf } = await rigOf(store)
    await eventually(clock, () => viewsOf({ registry: 'main', visible: undefined }).length > 0)
    expect(viewsOf({ registry: 'main', visible: undefined })[0]?.snapshot.count).toBe(3)
  })
})

async function rigOf(given?: RegistryStore, pause = async () => {}) {
  const clock = new TestClock()
  const store = given ?? (await openSqliteStore({ clock }))
  if (!given) {
    open.push(store)
    await store.reconcileConfig({ sources: [own], registries: [{ name: 'main', sources: ['own'] }] })
  }
  const published: Publication[] = []
  const loop = startViewLoop({
    store,
    clock,
    log: silentLog,
    publish: (publication) => published.push(publication),
    pause,
    onStatus: () => {},
  })
  open.push(loop)
  const viewsOf = (wanted: ViewTarget): ViewPublication[] =>
    published.filter(
      (one): one is ViewPublication =>
        one.kind === 'view' && one.targets.some((target) => JSON.stringify(target) === JSON.stringify(wanted)),
    )
  const searchesOf = (wanted: ViewTarget): SearchPublication[] =>
    published.filter(
      (one): one is SearchPublication =>
        one.kind === 'search' && one.targets.some((target) => JSON.stringify(target) === JSON.stringify(wanted)),
    )
  return { clock, loop, store, viewsOf, searchesOf }
}
