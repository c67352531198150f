import { noKnownServers } from '@thv/catalog/discover/entry/known-servers'
import { discoverWorld, exportWorld, annotation as named } from '@thv/catalog/discover/testing/export-world'
import type { FetchState } from '@thv/catalog/sources/fetch/registry-handler'
import { namesOf, testContext } from '@thv/catalog/sources/testing/fetch-context'
import { TestClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { KubeApiError, type KubeClient, type KubeObject, type ListOptions, type ResourceType, type WatchOptions } from '@thv/kube'
import { FakeApi } from '@thv/kube/testing/fake-api'
import { describe, expect, it } from 'vitest'
import { ClusterWatch } from './cluster-watch.ts'
import { createKubernetesHandler } from './kubernetes-handler.ts'

/* Faults of the API server, by a clock of the test: after each the export is that of a fresh reading, two windows after the watches are back. */

const DEBOUNCE_MS = 1_000
const NAMESPACE = 'mcp-servers'

const failure = (status: number) => new KubeApiError({ status, call: { verb: 'list', target: 'mcpservers' }, body: { message: 'no' } })
const annotations = (url: string) => ({ [named('registry-export')]: 'true', [named('registry-url')]: url })

/** A cluster of MCPServers whose API can answer anything; the other kinds have no objects. */
class Cluster extends FakeApi {
  status = 200
  readonly empty = new FakeApi()

  client(): KubeClient {
    const of = ({ plural }: ResourceType) => {
      if (this.status !== 200) throw failure(this.status)
      return plural === 'mcpservers' ? this : this.empty
    }
    return {
      list: async (type: ResourceType, options: ListOptions) => await of(type).list(type, options),
      listPages: async function* (type: ResourceType, options: ListOptions) {
        yield* of(type).listPages(type, options)
      },
      listAll: async (type: ResourceType, options: ListOptions) => await of(type).list(type, options),
      watch: async function* (type: ResourceType, options: WatchOptions) {
        yield* of(type).watch(type, options)
      },
      close: async () => {},
    } as unknown as KubeClient
  }

  export(name: string, url: string): void {
    this.put(name, 1, { namespace: NAMESPACE, annotations: annotations(url) })
  }

  /** All watches end, of every kind. */
  break(error?: unknown): void {
    this.endWatches(error)
    this.empty.endWatches(error)
  }

  /** Texts of the entries that a fresh computation over all objects gives. */
  fresh(): string[] {
    const world = exportWorld()
    const servers = [...this.objects.values()] as KubeObject[]
    const options = { mode: 'server', crossNamespaceGateway: 'accepted' } as const
    return discoverWorld({ ...world, servers, services: [], routes: [], gateways: [], grants: [], options }).entries.map(({ text }) => text)
  }
}

function setUp() {
  const cluster = new Cluster()
  const clock = new TestClock()
  let changes = 0
  const kinds: string[] = []
  for (let index = 0; index < 5; index++) cluster.export(`s${index}`, `https://s${index}.example/`)
  const watch = new ClusterWatch({
    source: {},
    exportOptions: { mode: 'server', crossNamespaceGateway: 'accepted' },
    intervalMs: 3_600_000,
    debounceMs: DEBOUNCE_MS,
    probeMs: 30_000,
    clock,
    random: () => 0.5,
    connect: async () => cluster.client(),
    onChange: () => void changes++,
    onKind: (kind, state) => void kinds.push(`${kind} ${state}`),
  })
  const held = new Map<string, string>()
  let since: string | undefined
  /** As a store does: all at first, then the changes since the last reading. */
  const read = async () => {
    const { id, content } = await watch.read(noKnownServers, { signal: new AbortController().signal, since })
    expect('changes' in content).toBe(since !== undefined)
    const { entries, gone = [] } = 'changes' in content ? content.changes : { entries: content.entries }
    for (const { name } of gone) held.delete(name)
    for (const { name, text } of entries) held.set(name, text)
    since = id
    return [...held].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => text)
  }
  return {
    cluster,
    clock,
    watch,
    kinds,
    read,
    /** Times that a sync was asked for since the last call. */
    taken: () => {
      const count = changes
      changes = 0
      return count
    },
    /** In steps, as many timers follow from others. */
    async pass(ms: number) {
      for (let left = ms; left > 0; left -= 250) await clock.advance(Math.min(left, 250))
    },
  }
}

type World = ReturnType<typeof setUp>

/** The fault and its end. Changes come while it lasts. */
const FAULTS: readonly (readonly [string, (world: World) => void, (world: World) => void])[] = [
  ['connections are cut', ({ cluster }) => cluster.break(), () => {}],
  [
    'the history is compacted while the watches are away',
    ({ cluster }) => {
      cluster.status = 503
      cluster.break()
    },
    ({ cluster }) => {
      cluster.compact()
      cluster.empty.compact()
      cluster.status = 200
    },
  ],
  ['an open watch expires', ({ cluster }) => cluster.break(new ThvError('kube_watch_expired', 'too old resource version')), () => {}],
  ...([401, 403, 404, 409, 429, 500, 503] as const).map(
    (status) =>
      [
        { 401: 'the token is revoked', 403: 'rights are taken away', 404: 'the kinds are removed' }[status as number] ??
          `every call is answered with ${status}`,
        ({ cluster }: World) => {
          cluster.status = status
          cluster.break()
        },
        ({ cluster }: World) => {
          cluster.status = 200
        },
      ] as const,
  ),
]

describe('ClusterWatch under faults', () => {
  it.each(FAULTS)('%s: the export equals a fresh one within two debounce windows of the watches being back', async (name, begin, end) => {
    const world = setUp()
    const { cluster, watch, kinds, read, pass, taken } = world
    const state = { 'rights are taken away': 'forbidden', 'the kinds are removed': 'absent' }[name]
    const told = state === undefined ? [] : [`MCPServer ${state}`, 'MCPServer synced']
    await pass(3_000)
    expect(await read()).toEqual(cluster.fresh())
    taken()
    begin(world)
    cluster.export('s0', 'https://changed.example/')
    cluster.drop('s1', NAMESPACE)
    cluster.export('new', 'https://new.example/')
    await pass(20_000)
    end(world)
    // Back-offs and looks for a kind are over after that; then the watches are there.
    for (let at = 0; at < 200 && (cluster.openWatches === 0 || cluster.empty.openWatches < 6); at++) await pass(250)
    expect(cluster.openWatches).toBeGreaterThan(0)
    await pass(2 * DEBOUNCE_MS)
    expect(taken()).toBeGreaterThan(0)
    expect(kinds.filter((line) => line.startsWith('MCPServer '))).toEqual(told)
    const entries = await read()
    expect(entries).toEqual(cluster.fresh())
    expect(entries.join()).toContain('https://changed.example/')
    // And it goes on.
    cluster.export('later', 'https://later.example/')
    await pass(2 * DEBOUNCE_MS)
    expect(taken()).toBe(1)
    expect(await read()).toEqual(cluster.fresh())
    const closed = watch.close()
    await pass(60_000)
    await closed
  })

  it('gives a sync the changes since the reading that the store has, and everything to a store that has another', async () => {
    const { cluster, watch, pass } = setUp()
    await pass(3_000)
    const handler = createKubernetesHandler({
      known: async () => noKnownServers,
      connect: async () => cluster.client(),
      watchOf: () => watch,
    })
    const source = { name: 'live', kubernetes: { watch: { enabled: true } } }
    const fetchWith = (state: FetchState | undefined) => handler.fetchRegistry(source, testContext({ state }))
    const first = await fetchWith(undefined)
    expect([first.kind, namesOf(first).length]).toEqual(['full', 5])
    expect(await fetchWith(first.state)).toMatchObject({ kind: 'unchanged', hash: first.hash })
    // That reading was not stored: the state is the one from before.
    const whole = await fetchWith(first.state)
    expect([whole.kind, whole.hash]).toEqual(['full', first.hash])
    cluster.export('s0', 'https://changed.example/')
    cluster.drop('s1', NAMESPACE)
    await pass(2 * DEBOUNCE_MS)
    const delta = await fetchWith(whole.state)
    expect([delta.kind, namesOf(delta)]).toEqual(['delta', ['dev.stacklok.toolhive/mcp-servers.s0@1.0.0']])
    expect(delta).toMatchObject({ gone: [{ name: 'dev.stacklok.toolhive/mcp-servers.s1', version: '1.0.0' }] })
    const polled = createKubernetesHandler({ known: async () => noKnownServers, connect: async () => cluster.client() })
    expect((await polled.fetchRegistry(source, testContext())).hash).toBe(delta.hash)
    expect(delta.hash).not.toBe(first.hash)
    const closed = watch.close()
    await pass(60_000)
    await closed
  })

  it('a clock that jumps changes nothing', async () => {
    const { cluster, clock, watch, read, pass, taken } = setUp()
    await pass(3_000)
    await read()
    taken()
    for (const [index, jump] of [86_400_000, -172_800_000].entries()) {
      clock.jump(jump)
      cluster.export('s0', `https://jump-${index}.example/`)
      await pass(2 * DEBOUNCE_MS)
      expect([jump, taken()]).toEqual([jump, 1])
      expect(await read()).toEqual(cluster.fresh())
    }
    const closed = watch.close()
    await pass(60_000)
    await closed
  })

  it('a storm of changes asks for a sync once in five windows, and for one when it is over', async () => {
    const { cluster, watch, read, pass, taken } = setUp()
    await pass(3_000)
    await read()
    taken()
    for (let round = 0; round < 40; round++) {
      cluster.export('s0', `https://storm-${round}.example/`)
      await pass(250)
    }
    const during = taken()
    await pass(2 * DEBOUNCE_MS)
    expect([during <= 2, taken() <= 1]).toEqual([true, true])
    expect(await read()).toEqual(cluster.fresh())
    const closed = watch.close()
    await pass(60_000)
    await closed
  })
})
