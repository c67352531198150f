import { type ConfigMap, configMaps, type KubeClient, type Service, services } from '@thv/kube'
import { type MCPServer, mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { adminClient, installCrds } from '@thv/resources/testing/install-crds'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { KindCache } from '../caches/kind-cache.ts'
import { APPLIED_HASH_ANNOTATION, createChildApplier, FIELD_MANAGER, type Owner } from './child-applier.ts'

describeCluster('the child applier', () => {
  let admin: KubeClient
  let namespace: string
  let owner: Owner
  const signal = new AbortController().signal
  /** As it is a moment after somebody has made an object: the watch has not brought it yet. */
  const behind = { get: () => undefined }

  beforeAll(async () => {
    admin = adminClient(sharedCluster())
    await installCrds(admin)
    namespace = await testNamespace('applier')
    const server: MCPServer = { metadata: { namespace, name: 'web' }, spec: { image: 'example.test/server:1' } }
    owner = { object: await admin.create(mcpServerType, server), type: mcpServerType }
  })
  afterAll(async () => await admin?.close())

  const ensureConfig = async (object: ConfigMap, cache: object = behind, isLarge = false) =>
    await createChildApplier(admin).ensure(owner, { type: configMaps, cache: cache as KindCache<ConfigMap>, object, isLarge }, signal)

  test('leaves a foreign object alone that was created a moment before, also when no field of it is in the way', async () => {
    const theirs = await admin.create(configMaps, { metadata: { namespace, name: 'theirs' }, data: { note: 'theirs' } })
    const outcome = await ensureConfig({ metadata: { namespace, name: 'theirs' }, data: { 'runconfig.json': '{}' } })
    expect(outcome).toEqual({ kind: 'foreign', name: 'theirs', childKind: 'ConfigMap', controller: undefined })
    expect(await admin.get(configMaps, { namespace, name: 'theirs' })).toEqual(theirs)

    const service: Service = { metadata: { namespace, name: 'theirs' }, spec: { ports: [{ name: 'a', port: 1 }] } }
    const before = await admin.create(services, service)
    const wanted: Service = { metadata: { namespace, name: 'theirs' }, spec: { ports: [{ name: 'b', port: 2 }] } }
    const cache = behind as unknown as KindCache<Service>
    expect(await createChildApplier(admin).ensure(owner, { type: services, cache, object: wanted }, signal)).toMatchObject({
      kind: 'foreign',
    })
    expect(await admin.get(services, { namespace, name: 'theirs' })).toEqual(before)
  })

  test.each([false, true])('leaves a foreign object alone that took the place of its own a moment before (large: %s)', async (isLarge) => {
    const key = { namespace, name: `swapped-${isLarge}` }
    const wanted = { metadata: key, data: { a: '1' } }
    expect(await ensureConfig(wanted, behind, isLarge)).toEqual({ kind: 'applied' })
    const own = await admin.get(configMaps, key)
    await admin.delete(configMaps, key)
    const theirs = await admin.create(configMaps, { metadata: key, data: { note: 'theirs' } })
    await expect(ensureConfig({ ...wanted, data: { a: '2' } }, { get: () => own }, isLarge)).rejects.toThrow()
    expect(await admin.get(configMaps, key)).toEqual(theirs)
    // Nor is one made again from a half that is known.
    await admin.delete(configMaps, key)
    await expect(ensureConfig({ ...wanted, data: { a: '2' } }, { get: () => own }, isLarge)).rejects.toThrow()
    expect(await admin.tryGet(configMaps, key)).toBeUndefined()
  })

  test('a large one has exactly the data that are wanted, and one manager of the operator', async () => {
    const key = { namespace, name: 'large' }
    const annotations = { 'toolhive.stacklok.dev/old': 'yes' }
    expect(await ensureConfig({ metadata: { ...key, annotations }, data: { a: '1' } }, behind, true)).toEqual({ kind: 'applied' })
    const body = { data: { extra: 'theirs' }, binaryData: { blob: 'AA==' }, metadata: { labels: { team: 'theirs' } } }
    const live = await admin.patch(configMaps, key, { kind: 'merge', body })
    expect(await ensureConfig({ metadata: key, data: { a: '2' } }, { get: () => live }, true)).toEqual({ kind: 'applied' })
    const { data, binaryData, metadata } = await admin.get(configMaps, key)
    expect([data, binaryData, metadata.labels]).toEqual([{ a: '2' }, undefined, { team: 'theirs' }])
    expect(Object.keys(metadata.annotations ?? {})).toEqual([APPLIED_HASH_ANNOTATION])
    expect(metadata.ownerReferences?.map(({ uid }) => uid)).toEqual([owner.object.metadata.uid])
    const managers = (metadata.managedFields ?? []) as { manager: string; operation: string }[]
    expect(managers.filter(({ manager }) => manager === FIELD_MANAGER).map(({ operation }) => operation)).toEqual(['Update'])
  })

  test('makes what is missing, and takes its own object back when only the cache is behind', async () => {
    const wanted = { metadata: { namespace, name: 'own' }, data: { a: '1' } }
    expect(await ensureConfig(wanted)).toEqual({ kind: 'applied' })
    expect(await ensureConfig({ ...wanted, data: { b: '2' } })).toEqual({ kind: 'applied' })
    const { data, metadata } = await admin.get(configMaps, { namespace, name: 'own' })
    expect(data).toEqual({ b: '2' })
    expect(metadata.ownerReferences?.map(({ uid }) => uid)).toEqual([owner.object.metadata.uid])
  })
})
