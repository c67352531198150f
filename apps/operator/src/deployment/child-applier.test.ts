import { type ConfigMap, configMaps, KubeApiError, type KubeClient, type ObjectKey } from '@thv/kube'
import { mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { beforeEach, describe, expect, test } from 'vitest'
import type { KindCache } from '../caches/kind-cache.ts'
import { APPLIED_HASH_ANNOTATION, type Child, createChildApplier, type Owner } from './child-applier.ts'

const owner: Owner = { object: { metadata: { name: 'web', namespace: 'team', uid: 'uid-1' } }, type: mcpServerType }
const wanted: ConfigMap = { metadata: { name: 'web-runconfig', namespace: 'team' }, data: { a: '1' } }
const signal = new AbortController().signal

let server: Map<string, ConfigMap>
let cached: ConfigMap | undefined
let calls: string[]
/** Thrown by an apply that may only create. */
let refuse: KubeApiError | undefined

const client = {
  async apply(_type: unknown, object: ConfigMap) {
    const creates = object.metadata.resourceVersion === '1'
    calls.push(creates ? 'create' : `update ${object.metadata.uid}`)
    if (refuse && creates) throw refuse
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(calls.length), uid: 'u' } }
    server.set(object.metadata.name, stored)
    return stored
  },
  async create(_type: unknown, object: ConfigMap) {
    calls.push('plain create')
    if (server.has(object.metadata.name))
      throw new KubeApiError({ status: 409, call: { verb: 'create', target: 'x' }, body: { reason: 'AlreadyExists' } })
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(calls.length), uid: 'u' } }
    server.set(object.metadata.name, stored)
    return stored
  },
  async patch(_type: unknown, key: ObjectKey, { body }: { body: ConfigMap }) {
    calls.push(`patch ${body.metadata.uid}`)
    const before = server.get(key.name)
    const stored = merged(before, body) as ConfigMap
    server.set(key.name, { ...stored, metadata: { ...stored.metadata, resourceVersion: String(calls.length) } })
    return server.get(key.name)
  },
  async tryGet(_type: unknown, key: ObjectKey) {
    calls.push('get')
    return server.get(key.name)
  },
  async delete(_type: unknown, key: ObjectKey) {
    calls.push('delete')
    server.delete(key.name)
    return {}
  },
} as unknown as KubeClient

/** RFC 7396. */
function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
  const result: Record<string, unknown> = { ...(target as object | undefined) }
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name]
    else result[name] = merged(result[name], value)
  }
  return result
}

const cache = { get: () => cached } as unknown as KindCache<ConfigMap>
const child: Child<ConfigMap> = { type: configMaps, cache, object: wanted }
const conflict = new KubeApiError({ status: 409, call: { verb: 'apply', target: 'x' }, body: { reason: 'Conflict' } })

beforeEach(() => {
  server = new Map()
  cached = undefined
  calls = []
  refuse = undefined
})

describe('createChildApplier', () => {
  test('makes a child that is missing, owned by its workload, and only if it is missing', async () => {
    expect(await createChildApplier(client).ensure(owner, child, signal)).toEqual({ kind: 'applied' })
    expect(calls).toEqual(['create'])
    expect(server.get('web-runconfig')?.metadata.ownerReferences?.[0]).toMatchObject({ uid: 'uid-1', controller: true })
  })

  test('creates a large child without server-side apply, and updates or leaves one that the cache did not show', async () => {
    const applier = createChildApplier(client)
    const large = { ...child, isLarge: true }
    expect(await applier.ensure(owner, large, signal)).toEqual({ kind: 'applied' })
    expect(server.get('web-runconfig')?.metadata.ownerReferences?.[0]).toMatchObject({ uid: 'uid-1', controller: true })
    expect(calls.splice(0)).toEqual(['plain create'])
    expect(await createChildApplier(client).ensure(owner, large, signal)).toEqual({ kind: 'applied' })
    expect(calls.splice(0)).toEqual(['plain create', 'get', 'patch u'])
    server.set('web-runconfig', { ...wanted, metadata: { ...wanted.metadata, uid: 'other' } })
    expect(await createChildApplier(client).ensure(owner, large, signal)).toMatchObject({ kind: 'foreign' })
    expect(calls).toEqual(['plain create', 'get'])
    expect(server.get('web-runconfig')?.data).toEqual(wanted.data)
  })

  test('makes the data of a large child exactly those that are wanted, and keeps labels, annotations and owners of others', async () => {
    const applier = createChildApplier(client)
    const large = { ...child, isLarge: true }
    const annotations = { 'toolhive.stacklok.dev/format': 'old', 'toolhive.stacklok.dev/kept': 'yes' }
    await applier.ensure(owner, { ...large, object: { ...wanted, metadata: { ...wanted.metadata, annotations } } }, signal)
    const live = server.get('web-runconfig') as ConfigMap
    const theirs = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u9' }
    cached = {
      ...live,
      data: { a: '1', extra: 'theirs' },
      binaryData: { blob: 'AA==' },
      metadata: {
        ...live.metadata,
        resourceVersion: '9',
        labels: { team: 'theirs' },
        annotations: { ...live.metadata.annotations, note: 'theirs' },
        ownerReferences: [theirs, ...ownerReferences()],
      },
    }
    server.set('web-runconfig', cached)
    const next = {
      ...wanted,
      metadata: { ...wanted.metadata, labels: { app: 'web' }, annotations: { 'toolhive.stacklok.dev/kept': 'yes' } },
    }
    expect(await applier.ensure(owner, { ...large, object: next }, signal)).toEqual({ kind: 'applied' })
    const after = server.get('web-runconfig')
    expect(after).toMatchObject({ data: { a: '1' }, metadata: { labels: { team: 'theirs', app: 'web' } } })
    expect([after?.data, after?.binaryData]).toEqual([{ a: '1' }, undefined])
    expect(after?.metadata.annotations).toEqual({
      note: 'theirs',
      'toolhive.stacklok.dev/kept': 'yes',
      [APPLIED_HASH_ANNOTATION]: expect.any(String),
    })
    expect(after?.metadata.ownerReferences).toEqual([theirs, ...ownerReferences()])
    cached = after
    expect(await applier.ensure(owner, { ...large, object: next }, signal)).toEqual({ kind: 'unchanged' })
    cached = { ...after, data: { ...after?.data, more: 'x' } } as ConfigMap
    expect(await applier.ensure(owner, { ...large, object: next }, signal)).toEqual({ kind: 'applied' })
    expect(calls).toEqual(['plain create', 'patch u', 'patch u'])
  })

  test('sends nothing while the cache shows what was applied', async () => {
    const applier = createChildApplier(client)
    await applier.ensure(owner, child, signal)
    cached = server.get('web-runconfig')
    expect(await applier.ensure(owner, child, signal)).toEqual({ kind: 'unchanged' })
    expect(await createChildApplier(client).ensure(owner, child, signal)).toEqual({ kind: 'unchanged' })
    expect(calls).toEqual(['create'])
  })

  test('heals what somebody edited, and keeps what somebody added', async () => {
    const applier = createChildApplier(client)
    await applier.ensure(owner, child, signal)
    const live = server.get('web-runconfig') as ConfigMap
    cached = { ...live, data: { ...live.data, extra: 'theirs' } }
    expect(await applier.ensure(owner, child, signal)).toEqual({ kind: 'unchanged' })
    cached = { ...live, data: { a: 'edited' } }
    expect(await applier.ensure(owner, child, signal)).toEqual({ kind: 'applied' })
    expect(calls).toEqual(['create', 'update u'])
  })

  test('applies when something must be taken away, which a look at the live object cannot tell', async () => {
    const applier = createChildApplier(client)
    await applier.ensure(owner, { ...child, object: { ...wanted, data: { a: '1', b: '2' } } }, signal)
    cached = server.get('web-runconfig')
    expect(await applier.ensure(owner, child, signal)).toEqual({ kind: 'applied' })
  })

  test('does not apply again what the server stores in its own form', async () => {
    const applier = createChildApplier({
      ...client,
      apply: async (_type: unknown, object: ConfigMap) => {
        calls.push('apply')
        return { ...object, data: { a: 'as the server likes it' }, metadata: { ...object.metadata, uid: 'u', generation: 1 } }
      },
    } as unknown as KubeClient)
    await applier.ensure(owner, child, signal)
    const hash = { [APPLIED_HASH_ANNOTATION]: hashOf() }
    cached = {
      ...wanted,
      data: { a: 'as the server likes it' },
      metadata: { ...wanted.metadata, uid: 'u', generation: 1, annotations: hash, ownerReferences: ownerReferences() },
    }
    expect(await applier.ensure(owner, child, signal)).toEqual({ kind: 'unchanged' })
    cached = { ...cached, metadata: { ...cached.metadata, generation: 2 } }
    expect(await applier.ensure(owner, child, signal)).toEqual({ kind: 'applied' })
  })

  test("never touches somebody else's object", async () => {
    cached = { metadata: { name: 'web-runconfig', namespace: 'team', uid: 'other' } }
    expect(await createChildApplier(client).ensure(owner, child, signal)).toEqual({
      kind: 'foreign',
      name: 'web-runconfig',
      childKind: 'ConfigMap',
      controller: undefined,
    })
    expect(calls).toEqual([])
  })

  test('nor one that the cache does not know yet', async () => {
    refuse = conflict
    server.set('web-runconfig', {
      metadata: { name: 'web-runconfig', ownerReferences: [{ apiVersion: 'v1', kind: 'Other', name: 'o', uid: 'x', controller: true }] },
    })
    expect(await createChildApplier(client).ensure(owner, child, signal)).toMatchObject({ kind: 'foreign', controller: 'Other o' })
    expect(calls).toEqual(['create', 'get'])
  })

  test('takes its own object back when only the cache is behind', async () => {
    refuse = conflict
    server.set('web-runconfig', { metadata: { name: 'web-runconfig', uid: 'v', ownerReferences: ownerReferences() } })
    expect(await createChildApplier(client).ensure(owner, child, signal)).toEqual({ kind: 'applied' })
    expect(calls).toEqual(['create', 'get', 'update v'])
  })

  test('takes what was left behind when its workload was deleted without it', async () => {
    cached = { metadata: { name: 'web-runconfig', namespace: 'team', uid: 'o', annotations: { [APPLIED_HASH_ANNOTATION]: 'old' } } }
    expect(await createChildApplier(client).ensure(owner, child, signal)).toEqual({ kind: 'applied' })
    expect(calls).toEqual(['update o'])
  })

  test('sees its own writes before the cache does, and forgets them when it does', async () => {
    const applier = createChildApplier(client)
    const stored = (version: string, data: Record<string, string>): ConfigMap => ({
      ...wanted,
      data,
      metadata: { ...wanted.metadata, uid: 'u', resourceVersion: version, ownerReferences: ownerReferences() },
    })
    cached = stored('0', { a: 'old' })
    await applier.ensure(owner, { ...child, object: { ...wanted, metadata: { ...wanted.metadata, uid: 'u' } } }, signal)
    expect(applier.latest(child, { namespace: 'team', name: 'web-runconfig' })?.data).toEqual({ a: '1' })
    expect(await applier.ensure(owner, { ...child, object: { ...wanted, metadata: { ...wanted.metadata, uid: 'u' } } }, signal)).toEqual({
      kind: 'unchanged',
    })
    expect(calls).toEqual(['update u'])
    cached = stored('2', { a: 'edited since' })
    expect(applier.latest(child, { namespace: 'team', name: 'web-runconfig' })?.data).toEqual({ a: 'edited since' })
    cached = stored('0', { a: 'old' })
    expect(applier.latest(child, { namespace: 'team', name: 'web-runconfig' })?.data).toEqual({ a: 'old' })
  })

  test('creates an object again that is gone from the cache, although it was applied', async () => {
    const applier = createChildApplier(client)
    await applier.ensure(owner, child, signal)
    expect(applier.latest(child, { namespace: 'team', name: 'web-runconfig' })).toBeUndefined()
    await applier.ensure(owner, child, signal)
    expect(calls).toEqual(['create', 'create'])
  })

  test('removes only what the workload owns', async () => {
    const applier = createChildApplier(client)
    const target = { type: configMaps, cache, name: 'web-runconfig' }
    await applier.remove(owner, target, signal)
    cached = { metadata: { name: 'web-runconfig', namespace: 'team', uid: 'other' } }
    await applier.remove(owner, target, signal)
    expect(calls).toEqual([])
    cached = { ...cached, metadata: { ...cached.metadata, ownerReferences: ownerReferences() } }
    await applier.remove(owner, target, signal)
    expect(calls).toEqual(['delete'])
    cached = { ...cached, metadata: { ...cached.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }
    await applier.remove(owner, target, signal)
    expect(calls).toEqual(['delete'])
  })
})

function ownerReferences() {
  return [
    {
      apiVersion: 'toolhive.stacklok.dev/v1beta1',
      kind: 'MCPServer',
      name: 'web',
      uid: 'uid-1',
      controller: true,
      blockOwnerDeletion: true,
    },
  ]
}

/** The object that the applier writes for this child. */
function hashOf(): string {
  let hash = ''
  const spy = {
    ...client,
    async apply(_type: unknown, object: ConfigMap) {
      hash = object.metadata.annotations?.[APPLIED_HASH_ANNOTATION] ?? ''
      return object
    },
  } as unknown as KubeClient
  void createChildApplier(spy).ensure(owner, { ...child, cache: { get: () => undefined } as unknown as KindCache<ConfigMap> }, signal)
  return hash
}
