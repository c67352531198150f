import { type ConfigMap, type Deployment, type KubeClient, setControllerReference } from '@thv/kube'
import type { CanonicalRegistryEntry } from '@thv/resources/kinds/mcp-registry/normalise'
import { type MCPRegistry, mcpRegistryType } from '@thv/resources/kinds/mcp-registry/schema'
import { describe, expect, it } from 'vitest'
import { registryEvents } from '../events.ts'
import type { RegistryPlan } from '../plan/plan.ts'
import { registryStatus } from '../status/registry-status.ts'
import { planOf } from '../testing/plan-registry.ts'
import type { EntryAggregate } from './aggregate-entry.ts'
import { ContributionReader, SELECTION_BYTES } from './contribution-reader.ts'
import { EntryMerges } from './entry-merges.ts'
import { isSelected } from './selected-maps.ts'

const selector = { matchLabels: { part: 'yes' }, key: 'registry.json', conflictStrategy: 'prefix' } as const
const entry: CanonicalRegistryEntry = { name: 'teams', format: 'toolhive', configMapSelector: selector }
const spec: MCPRegistry['spec'] = { registries: [{ name: 'teams', configMapSelector: { matchLabels: { part: 'yes' } } }] }
const registry = { metadata: { name: 'demo', namespace: 'team', uid: 'uid-demo', generation: 3 }, spec } as MCPRegistry

const image = (tag: string) => ({ image: `example.com/server:${tag}` })
const text = (servers: object) => JSON.stringify({ servers })
let version = 0
const mapOf = (name: string, content: object): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'team', uid: `uid-${name}`, resourceVersion: String(++version), labels: { part: 'yes' } },
  ...content,
})
const good = (name: string, servers: object) => mapOf(name, { data: { 'registry.json': text(servers) } })

/** Every kind of bad ConfigMap, and a piece of what the status says about it. */
const BAD: readonly (readonly [title: string, content: object, error: string])[] = [
  ['broken JSON', { data: { 'registry.json': '{"servers":' } }, 'not JSON'],
  ['a text', { data: { 'registry.json': '"c4n4ry"' } }, 'neither an object nor a list'],
  ['one name twice', { data: { 'registry.json': '{"servers":{"a":{"image":"x"},"a":{"image":"y"}}}' } }, 'twice'],
  ['a list of a million lists', { data: { 'registry.json': '['.repeat(1_000_000) } }, 'not JSON'],
  [
    'an entry of nested lists',
    { data: { 'registry.json': `{"servers":{"deep":${'['.repeat(400_000)}${']'.repeat(400_000)}}}` } },
    'left out',
  ],
  ['another key', { data: { 'other.json': '{}' } }, 'has no key registry.json'],
  ['no text', { data: { 'registry.json': '' } }, 'is empty'],
  ['bytes', { binaryData: { 'registry.json': Buffer.from([0xff, 0xfe, 0]).toString('base64') } }, 'not UTF-8'],
  ['an entry that is no server', { data: { 'registry.json': '{"servers":{"a":{"token":"c4n4ry"}}}' } }, 'left out'],
  ['no data', {}, 'has no key registry.json'],
]

/** A namespace whose ConfigMaps are read and merged as a reconcile does it, with the status that follows. */
class Namespace {
  readonly maps = new Map<string, ConfigMap>()
  readonly #merges = new EntryMerges()
  readonly #reader: ContributionReader
  #before = registry

  constructor() {
    const client = {
      list: async (_type: unknown, { limit, continue: start = '0' }: { limit: number; continue?: string }) => {
        const all = this.selected()
        const end = Number(start) + limit
        return { items: all.slice(Number(start), end), metadata: end < all.length ? { continue: String(end) } : {} }
      },
      tryGet: async (_type: unknown, { name }: { name: string }) => this.maps.get(name),
    }
    this.#reader = new ContributionReader(client as unknown as KubeClient)
  }

  put(...maps: readonly ConfigMap[]): void {
    for (const map of maps) this.maps.set(map.metadata.name, map)
  }

  selected(): ConfigMap[] {
    return [...this.maps.values()].filter((map) => isSelected(map, selector)).sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  }

  async reconcile(change: Partial<CanonicalRegistryEntry> = {}) {
    const options = { signal: new AbortController().signal, budget: { left: SELECTION_BYTES } }
    const maps = await this.#reader.read(this.selected(), { ...entry, configMapSelector: selector }, options)
    const aggregate = this.#merges.aggregate('team/demo', { ...entry, ...change }, maps)
    const plan = planOf(spec, { aggregates: [aggregate] })
    const status = statusOf(this.#before, plan)
    const after = { ...registry, status } as MCPRegistry
    const events = registryEvents(this.#before, after)
    this.#before = after
    const valid = status.conditions?.find(({ type }) => type === 'SourcesValid')
    return { aggregate, plan, status, valid, events, names: namesOf(aggregate), visible: JSON.stringify([status, events, plan.data]) }
  }
}

function statusOf(before: MCPRegistry, plan: RegistryPlan) {
  return registryStatus(before, {
    plan,
    deployment: { metadata: { name: 'demo-api' }, status: { replicas: 1, readyReplicas: 1 } } as Deployment,
    podProblem: undefined,
    conflict: undefined,
    sync: { status: undefined, conditions: [], neverSucceeded: false, pending: false },
    url: 'http://demo-api.team.svc.cluster.local:8080',
    generation: 3,
    mayWriteTimes: true,
    now: 0,
  })
}

function namesOf({ texts }: EntryAggregate): string[] | undefined {
  return texts?.flatMap((each) => Object.keys(JSON.parse(each ?? '{}').servers ?? {}))
}

describe('selected ConfigMaps', () => {
  it.each(BAD)('that hold %s stay alone and are named', async (_title, content, error) => {
    const namespace = new Namespace()
    namespace.put(good('good', { fetch: image('1') }), mapOf('bad', content))
    const { names, status, valid, visible } = await namespace.reconcile()
    expect(names).toEqual(['fetch'])
    expect(status.configMaps?.[0]).toMatchObject({ registry: 'teams', name: 'bad', servers: 0, error: expect.stringContaining(error) })
    expect(valid).toMatchObject({ status: 'False', reason: 'PartialSyncFailure' })
    expect(status.phase).toBe('Ready')
    expect(visible).not.toContain('c4n4ry')
    namespace.put(good('bad', { time: image('1') }))
    const healed = await namespace.reconcile()
    expect([healed.names, healed.valid?.status]).toEqual([['fetch', 'time'], 'True'])
  })

  it('may be 500 of which 100 are bad: the others are served, the bad ones come first in the status', async () => {
    const namespace = new Namespace()
    for (let index = 0; index < 500; index++) {
      const [, content = {}] = BAD[index % 3] ?? []
      const name = `map-${String(index).padStart(3, '0')}`
      namespace.put(index % 5 === 0 ? mapOf(name, content) : good(name, { [`server-${index}`]: image('1') }))
    }
    const { names, status, valid, events } = await namespace.reconcile()
    expect(names).toHaveLength(400)
    expect(status.configMaps).toHaveLength(500)
    expect(status.configMaps?.filter(({ error }) => error !== undefined)).toHaveLength(100)
    expect(status.configMaps?.slice(0, 100).every(({ error }) => error !== undefined)).toBe(true)
    expect(valid).toMatchObject({ status: 'False', reason: 'PartialSyncFailure' })
    expect(valid?.message).toContain('100 of 500 ConfigMaps failed: map-000, map-005')
    expect(valid?.message.length).toBeLessThan(500)
    expect(events).toMatchObject([{ type: 'Warning', reason: 'PartialSyncFailure' }])
    // The same failures again are no news.
    expect((await namespace.reconcile()).events).toEqual([])
  })

  it('with names of 253 characters keep their servers, but for those that a conflict makes too long', async () => {
    const [a, b] = [`${'m'.repeat(252)}a`, `${'m'.repeat(252)}b`]
    const namespace = new Namespace()
    namespace.put(good(a, { x: image('1'), only: image('1') }), good(b, { x: image('2') }))
    const { names, status, valid } = await namespace.reconcile()
    expect(names).toEqual(['only'])
    expect(valid).toMatchObject({ status: 'False', reason: 'PartialSyncFailure' })
    for (const { error } of status.configMaps ?? []) expect(error).toContain('200 characters')
  })

  it('that all break keep the last good data, and name the reason', async () => {
    const namespace = new Namespace()
    namespace.put(good('a', { x: image('1') }))
    expect((await namespace.reconcile()).names).toEqual(['x'])
    namespace.put(mapOf('a', { data: { 'registry.json': '{' } }))
    const broken = await namespace.reconcile()
    expect([broken.aggregate.texts, broken.plan.data.wanted, broken.plan.data.unwanted]).toEqual([undefined, [], []])
    expect(broken.valid).toMatchObject({ status: 'False', reason: 'InvalidData', message: expect.stringContaining('last good data') })
    namespace.put(good('a', { y: image('1') }))
    expect(await namespace.reconcile()).toMatchObject({ names: ['y'], valid: { status: 'True' } })
  })

  it('are none of the own output, none that is being deleted, and may be none at all', async () => {
    const namespace = new Namespace()
    const output = setControllerReference(good('demo-teams-aggregated', { loop: image('1') }), { object: registry, type: mcpRegistryType })
    const going = good('going', { gone: image('1') })
    namespace.put(output, { ...going, metadata: { ...going.metadata, deletionTimestamp: '2026-03-01T10:00:00Z' } })
    const none = await namespace.reconcile()
    expect([none.names, none.valid?.reason, none.status.configMaps]).toEqual([[], 'NoConfigMaps', undefined])
    namespace.put(good('a', { x: image('1') }))
    expect(await namespace.reconcile()).toMatchObject({ names: ['x'], valid: { status: 'True' } })
  })

  it('give an empty registry, and the count, when all servers are filtered out', async () => {
    const namespace = new Namespace()
    namespace.put(good('a', { x: image('1') }))
    const { names, valid } = await namespace.reconcile({ filter: { names: { include: ['nothing-*'] } } })
    expect([names, valid?.message]).toEqual([[], '0 servers from 1 ConfigMaps'])
  })

  it('that are too much for 16 ConfigMaps keep the last good data until they fit again', async () => {
    const namespace = new Namespace()
    const large = (name: string, bytes: number) => good(name, { [name]: { ...image('1'), description: 'x'.repeat(bytes) } })
    namespace.put(good('a', { x: image('1') }))
    await namespace.reconcile()
    const many = Array.from({ length: 100 }, (_, index) => large(`large-${index}`, 250_000))
    namespace.put(...many)
    const refused = await namespace.reconcile()
    expect([refused.aggregate.texts, refused.valid?.reason]).toEqual([undefined, 'AggregateTooLarge'])
    for (const { metadata } of many.slice(10)) namespace.maps.delete(metadata.name)
    const again = await namespace.reconcile()
    expect([again.names?.length, again.valid?.status]).toEqual([11, 'True'])
  })
})
