import { TestClock } from '@thv/kernel/clock'
import { KubeApiError, type KubeClient, type KubeObject, type ObjectEvent, type ObjectKey } from '@thv/kube'
import { createLogger } from '@thv/telemetry/log'
import { expect, it } from 'vitest'
import type { KindCache } from '../caches/kind-cache.ts'
import { ExportFollower } from './export-follower.ts'
import type { GatewayKind, GatewayWatchesOptions } from './gateway-watches.ts'

/** A cache that a test fills. */
class TestCache {
  readonly #objects = new Map<string, KubeObject>()
  readonly #handlers: ((event: ObjectEvent) => void)[] = []

  readonly cache = {
    list: () => [...this.#objects.values()],
    get: ({ namespace, name }: ObjectKey) => this.#objects.get(`${namespace}/${name}`),
    reflectors: [
      {
        addHandler: (handler: (event: ObjectEvent) => void) => {
          this.#handlers.push(handler)
          for (const object of this.#objects.values()) handler({ type: 'ADDED', object })
          return () => {}
        },
      },
    ],
  } as unknown as KindCache

  put(object: KubeObject, type: ObjectEvent['type'] = 'MODIFIED'): void {
    const id = `${object.metadata.namespace}/${object.metadata.name}`
    if (type === 'DELETED') this.#objects.delete(id)
    else this.#objects.set(id, object)
    for (const handler of this.#handlers) handler({ type, object })
  }
}

const annotation = (name: string) => `toolhive.stacklok.dev/${name}`
const optedIn = { [annotation('registry-export')]: 'true' }
const object = (namespace: string, name: string, more: object = {}, annotations: Record<string, string> = {}) =>
  ({ metadata: { namespace, name, uid: `uid-${name}`, annotations }, ...more }) as KubeObject
const registry = (namespace: string, policy?: object) =>
  object(namespace, 'main', { spec: { registries: [{ name: 'a', managed: {} }], ...(policy && { export: policy }) } })
const server = (namespace: string, name: string, annotations: Record<string, string> = {}) =>
  object(namespace, name, { spec: { image: 'x.example/y:1', transport: 'sse' } }, annotations)
const proxyService = (namespace: string, name: string) => ({
  ...object(namespace, `mcp-${name}-proxy`, {
    spec: { selector: { app: 'mcpserver', 'app.kubernetes.io/name': 'mcpserver', 'app.kubernetes.io/instance': name } },
  }),
  metadata: {
    namespace,
    name: `mcp-${name}-proxy`,
    ownerReferences: [{ apiVersion: 'toolhive.stacklok.dev/v1beta1', kind: 'MCPServer', name, uid: `uid-${name}`, controller: true }],
  },
})
const parent = { name: 'edge' }
const conditions = ['Accepted', 'ResolvedRefs'].map((type) => ({ type, status: 'True' }))
const route = (namespace: string, backend: string, accepted = true): KubeObject =>
  object(
    namespace,
    'r',
    {
      spec: { parentRefs: [parent], rules: [{ backendRefs: [{ name: `mcp-${backend}-proxy`, port: 8080 }] }] },
      status: { parents: accepted ? [{ parentRef: parent, conditions }] : [] },
    },
    optedIn,
  )
const gateway = (namespace: string, address: string) =>
  object(namespace, 'edge', {
    spec: { listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
    status: { addresses: [{ type: 'Hostname', value: address }] },
  })

/** With a client the Gateway API is watched by it, else as the test tells. */
function setUp(client?: object) {
  const clock = new TestClock()
  const caches = { registries: new TestCache(), services: new TestCache(), servers: new TestCache(), others: new TestCache() }
  let woken: string[] = []
  const recorded: string[] = []
  let watches: GatewayWatchesOptions | undefined
  const follower = new ExportFollower({
    client: (client ?? {}) as KubeClient,
    clock,
    random: () => 0.5,
    log: createLogger({ level: 'error', format: 'json', write: () => {} }),
    settings: { watchNamespaces: undefined, registryExport: { namespaces: [], clusterRole: undefined } },
    caches: {
      registries: caches.registries.cache,
      services: caches.services.cache,
      resources: { MCPServer: caches.servers.cache, MCPRemoteProxy: caches.others.cache, VirtualMCPServer: caches.others.cache },
    },
    events: { record: ({ metadata }, { reason }) => void recorded.push(`${metadata.name} ${reason}`) },
    wake: (kind, key) => void woken.push(`${kind} ${key.namespace}/${key.name}`),
    ...(client === undefined && {
      openWatches: (options: GatewayWatchesOptions) => {
        watches = options
        return {
          isReady: true,
          problems: [],
          changes: 0,
          close: async () => {
            watches = undefined
          },
        }
      },
    }),
  })
  return {
    follower,
    caches,
    recorded,
    isWatching: () => watches !== undefined,
    tell: (kind: GatewayKind, each: KubeObject, type: ObjectEvent['type'] = 'MODIFIED') => watches?.onEvent(kind, { type, object: each }),
    /** In steps, since timers follow from others. */
    async pass(ms: number) {
      for (let left = ms; left > 0; left -= 250) await clock.advance(Math.min(left, 250))
    },
    /** Objects woken by what happened since the last call. */
    async woken() {
      await clock.advance(1_000)
      const list = woken.sort()
      woken = []
      return list
    },
  }
}

it('wakes the registries and resources whose export changed, and no others [000-072] [000-074]', async () => {
  const { caches, follower, woken } = setUp()
  for (const namespace of ['a', 'b']) {
    caches.registries.put(registry(namespace, {}))
    caches.servers.put(server(namespace, 'one'))
  }
  expect(await woken()).toEqual(['MCPRegistry a/main', 'MCPRegistry b/main'])
  caches.servers.put(server('a', 'one', { ...optedIn, [annotation('registry-url')]: 'https://one.example/' }))
  expect(await woken()).toEqual(['MCPRegistry a/main', 'MCPServer a/one'])
  expect(follower.outcomeOf('MCPServer', { namespace: 'a', name: 'one' })).toMatchObject({
    registries: ['a/main'],
    urls: ['https://one.example/'],
  })
  caches.servers.put(server('a', 'one', { ...optedIn, [annotation('registry-url')]: 'https://one.example/', other: 'x' }))
  expect(await woken()).toEqual([])
})

it('wakes one registry and one resource for one changed URL among 500, and neither for a change of no URL', async () => {
  const { caches, woken } = setUp()
  const urlOf = (index: number, word: string) => ({ ...optedIn, [annotation('registry-url')]: `https://s${index}.example/${word}` })
  const described = { [annotation('registry-description')]: 'A server' }
  caches.registries.put(registry('a', {}))
  for (let index = 0; index < 500; index++) caches.servers.put(server('a', `s${index}`, { ...urlOf(index, 'first'), ...described }))
  expect(await woken()).toHaveLength(501)
  for (const word of ['second', 'third']) {
    caches.servers.put(server('a', 's7', { ...urlOf(7, word), ...described }))
    expect(await woken()).toEqual(['MCPRegistry a/main', 'MCPServer a/s7'])
  }
  caches.servers.put(server('a', 's7', { ...urlOf(7, 'third'), ...described, other: 'x' }))
  expect(await woken()).toEqual([])
})

it('reaches registries through annotated routes only, and not through others [000-073] [000-108]', async () => {
  const { caches, tell, woken } = setUp()
  for (const namespace of ['a', 'b']) {
    caches.registries.put(registry(namespace, {}))
    caches.servers.put(server(namespace, 'one'))
    caches.services.put(proxyService(namespace, 'one'))
  }
  await woken()
  // As a watch keeps a route that does not opt in.
  tell('HTTPRoute', { metadata: { namespace: 'b', name: 'r' } }, 'ADDED')
  tell('Gateway', gateway('b', 'b.example'), 'ADDED')
  expect(await woken()).toEqual([])
  tell('Gateway', gateway('a', 'a.example'), 'ADDED')
  tell('HTTPRoute', route('a', 'one'), 'ADDED')
  expect(await woken()).toEqual(['MCPRegistry a/main', 'MCPServer a/one'])
  tell('Gateway', gateway('a', 'new.example'))
  expect(await woken()).toEqual(['MCPRegistry a/main', 'MCPServer a/one'])
  tell('HTTPRoute', { metadata: { namespace: 'a', name: 'r' } })
  expect(await woken()).toEqual(['MCPRegistry a/main', 'MCPServer a/one'])
})

it('watches the Gateway API only while a registry exports', async () => {
  const { caches, isWatching, woken } = setUp()
  caches.registries.put(registry('a'))
  await woken()
  expect(isWatching()).toBe(false)
  caches.registries.put(registry('a', {}))
  expect(isWatching()).toBe(true)
  caches.registries.put(registry('a', { mode: 'none' }))
  expect(isWatching()).toBe(false)
})

it('records a reason on a route once, and again after it was gone', async () => {
  const { caches, tell, recorded, woken } = setUp()
  caches.registries.put(registry('a', {}))
  tell('HTTPRoute', route('a', 'one', false), 'ADDED')
  await woken()
  tell('Gateway', gateway('a', 'a.example'))
  await woken()
  expect(recorded.filter((line) => line === 'r RouteNotAccepted')).toHaveLength(1)
  tell('HTTPRoute', route('a', 'one', false), 'DELETED')
  await woken()
  tell('HTTPRoute', route('a', 'one', false), 'ADDED')
  await woken()
  expect(recorded.filter((line) => line === 'r RouteNotAccepted')).toHaveLength(2)
})

it('says of a marked resource that no registry exports its namespace', async () => {
  const { caches, follower, woken } = setUp()
  caches.servers.put(server('a', 'one', optedIn))
  caches.registries.put(registry('b', {}))
  expect(follower.outcomeOf('MCPServer', { namespace: 'a', name: 'one' })).toBe('unknown')
  await woken()
  expect(follower.outcomeOf('MCPServer', { namespace: 'a', name: 'one' })).toMatchObject({ isCovered: false, registries: [] })
})

it('gives the result of mode operator only after images were looked up', async () => {
  const { caches, follower, woken } = setUp()
  const key = { namespace: 'a', name: 'main' }
  caches.registries.put(registry('a', { mode: 'operator' }))
  await woken()
  expect(follower.read(key)).toBeUndefined()
  follower.setKnown(key, { find: () => undefined, versions: () => [] })
  expect(follower.read(key)).toBeUndefined()
  expect(await woken()).toEqual(['MCPRegistry a/main'])
  expect(follower.read(key)).toEqual({ result: { entries: [], warnings: [] }, problems: [] })
})

it('computes an export again only for objects that it depends on, and judges only the resources behind them', async () => {
  const { caches, tell, woken, follower } = setUp()
  for (const namespace of ['a', 'b']) {
    caches.registries.put(registry(namespace, {}))
    caches.servers.put(server(namespace, 'one'))
    caches.services.put(proxyService(namespace, 'one'))
  }
  tell('Gateway', gateway('a', 'a.example'), 'ADDED')
  tell('HTTPRoute', route('a', 'one'), 'ADDED')
  await woken()
  const [before, other] = ['a', 'b'].map((namespace) => follower.read({ namespace, name: 'main' })?.result)
  caches.services.put(proxyService('a', 'two'))
  tell('Gateway', gateway('b', 'b.example'), 'ADDED')
  expect(follower.isSettled).toBe(true)
  tell('Gateway', gateway('a', 'new.example'))
  expect(follower.isSettled).toBe(false)
  expect(await woken()).toEqual(['MCPRegistry a/main', 'MCPServer a/one'])
  expect(follower.read({ namespace: 'a', name: 'main' })?.result).not.toBe(before)
  expect(follower.read({ namespace: 'b', name: 'main' })?.result).toBe(other)
  // A Gateway of a namespace that the registry server may not read, and no longer named.
  const away = { namespace: 'far', name: 'edge' }
  const elsewhere = object('a', 'r2', { spec: { parentRefs: [away], rules: [] }, status: { parents: [] } }, optedIn)
  tell('HTTPRoute', elsewhere, 'ADDED')
  tell('HTTPRoute', elsewhere, 'DELETED')
  await woken()
  expect(follower.outcomeOf('MCPServer', { namespace: 'a', name: 'one' })).toMatchObject({ urls: ['http://new.example/'] })
})

it('watches each kind of the Gateway API once, however many registries export, and the others through the shared caches [000-071]', async () => {
  const watched: string[] = []
  const { caches, follower, woken } = setUp({
    list: async () => ({ metadata: { resourceVersion: '1' }, items: [] }),
    async *listPages() {
      yield { metadata: { resourceVersion: '1' }, items: [] }
    },
    async *watch({ plural }: { plural: string }, { signal }: { signal?: AbortSignal }) {
      watched.push(plural)
      await new Promise((resolve) => signal?.addEventListener('abort', resolve, { once: true }))
    },
  })
  for (const namespace of ['a', 'b', 'c']) {
    caches.registries.put(registry(namespace, {}))
    caches.servers.put(server(namespace, 'one', { ...optedIn, [annotation('registry-url')]: 'https://one.example/' }))
    caches.services.put(proxyService(namespace, 'one'))
  }
  await woken()
  await expect.poll(() => watched.toSorted()).toEqual(['gateways', 'httproutes', 'referencegrants'])
  for (const namespace of ['a', 'b', 'c'])
    await expect
      .poll(async () => {
        await woken()
        return follower.read({ namespace, name: 'main' })?.result.entries.length
      })
      .toBe(1)
  expect(watched).toHaveLength(3)
  await follower.close()
})

/** The Gateway API of a cluster that may not have it. */
class FickleGateways {
  isInstalled = false
  readonly objects = new Map<string, KubeObject[]>()
  readonly #watches = new Set<() => void>()
  #version = 1

  readonly client = {
    list: async ({ plural }: { plural: string }) => this.#page(plural),
    listPages: (type: { plural: string }) => this.#pages(type),
    watch: (_: unknown, options: { signal?: AbortSignal }) => this.#watch(options),
  }

  install(isInstalled: boolean): void {
    this.isInstalled = isInstalled
    for (const end of this.#watches) end()
    this.#watches.clear()
  }

  #page(plural: string) {
    if (!this.isInstalled)
      throw new KubeApiError({ status: 404, call: { verb: 'list', target: plural }, body: { message: 'the server could not find it' } })
    return { metadata: { resourceVersion: String(++this.#version) }, items: this.objects.get(plural) ?? [] }
  }

  async *#pages({ plural }: { plural: string }) {
    yield this.#page(plural)
  }

  async *#watch({ signal }: { signal?: AbortSignal }) {
    if (!this.isInstalled) this.#page('')
    await new Promise<void>((resolve) => {
      this.#watches.add(resolve)
      signal?.addEventListener('abort', () => resolve(), { once: true })
    })
    yield* []
  }
}

it('follows the Gateway API that is missing, installed, removed under load and installed again, and is ready all the time', async () => {
  const gateways = new FickleGateways()
  gateways.objects.set('gateways', [gateway('a', 'a.example')])
  gateways.objects.set('httproutes', [route('a', 'routed')])
  const { caches, follower, pass } = setUp(gateways.client)
  caches.registries.put(registry('a', {}))
  caches.servers.put(server('a', 'routed'))
  caches.services.put(proxyService('a', 'routed'))
  const direct = (url: string) => caches.servers.put(server('a', 'direct', { ...optedIn, [annotation('registry-url')]: url }))
  const urls = () => {
    const { result, problems } = follower.read({ namespace: 'a', name: 'main' }) ?? {}
    expect(problems).toEqual([])
    return result?.entries.map(({ text }) => (JSON.parse(text) as { remotes: { url: string }[] }).remotes.map(({ url }) => url).join())
  }
  direct('https://direct.example/')
  await pass(5_000)
  expect([follower.isSettled, urls()]).toEqual([true, ['https://direct.example/']])

  expect(follower.kindChanges).toBe(3)
  gateways.install(true)
  await pass(40_000)
  expect(follower.kindChanges).toBe(6)
  expect(urls()).toEqual(['https://direct.example/', 'http://a.example/'])

  for (let round = 0; round < 3; round++) {
    gateways.install(false)
    for (let change = 0; change < 20; change++) {
      direct(`https://direct.example/${round}/${change}`)
      await pass(500)
    }
    await pass(2_000)
    expect([follower.isSettled, urls()]).toEqual([true, [`https://direct.example/${round}/19`]])
    expect(follower.outcomeOf('MCPServer', { namespace: 'a', name: 'routed' })).toBeUndefined()
    gateways.install(true)
    await pass(40_000)
    expect(urls()).toEqual([`https://direct.example/${round}/19`, 'http://a.example/'])
  }
  const closed = follower.close()
  await pass(60_000)
  await closed
})
