import { configMaps, type KubeClient, secrets } from '@thv/kube'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type EmbeddedPlane, startEmbeddedPlane } from '../scenarios/testing/embedded-plane.ts'
import { garbageCollector } from './garbage-collector.ts'

/** How long it may take on a busy machine; what is judged is the number of requests. */
const LIMIT_MS = 180_000
const namespace = 'default'

describe('an owner with many dependents', () => {
  let plane: EmbeddedPlane
  beforeEach(async () => {
    plane = await startEmbeddedPlane([garbageCollector])
  })
  afterEach(async () => {
    await plane[Symbol.asyncDispose]()
    expect(plane.errors).toEqual([])
  })

  async function createFamily(client: KubeClient, count: number): Promise<void> {
    const { metadata } = await client.create(configMaps, { metadata: { namespace, name: 'owner' } })
    const reference = { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: metadata.uid ?? '', blockOwnerDeletion: true }
    const names = Array.from({ length: count }, (_, index) => `dependent-${index}`)
    const create = async () => {
      for (let name = names.pop(); name; name = names.pop())
        await client.create(secrets, { metadata: { namespace, name, ownerReferences: [reference] } })
    }
    await Promise.all(Array.from({ length: 10 }, create))
  }

  const left = async (client: KubeClient) => (await client.list(secrets, { namespace })).items.length
  const owner = (client: KubeClient) => client.list(configMaps, { namespace }).then(({ items }) => items.length)

  it.each([
    { policy: 'Background', count: 1_000 },
    { policy: 'Foreground', count: 200 },
  ] as const)(
    '$policy: each of $count is deleted by one request, and hardly another is needed',
    { timeout: 2 * LIMIT_MS },
    async ({ policy, count }) => {
      const { env, requests } = plane
      await createFamily(env.client, count)
      requests.clear()
      await env.client.delete(configMaps, { namespace, name: 'owner' }, { propagationPolicy: policy })
      await expect.poll(() => left(env.client), { timeout: LIMIT_MS, interval: 200 }).toBe(0)
      await expect.poll(() => owner(env.client)).toBe(0)
      expect(requests.get('delete')).toBe(count + 1)
      const others = [...requests].filter(([verb]) => verb !== 'delete').reduce((sum, [, count]) => sum + count, 0)
      expect(others).toBeLessThan(20)
    },
  )

  it('Orphan: each is released by one request', { timeout: 2 * LIMIT_MS }, async () => {
    const { env, requests } = plane
    const count = 200
    await createFamily(env.client, count)
    requests.clear()
    await env.client.delete(configMaps, { namespace, name: 'owner' }, { propagationPolicy: 'Orphan' })
    await expect.poll(() => owner(env.client), { timeout: LIMIT_MS, interval: 200 }).toBe(0)
    const { items } = await env.client.list(secrets, { namespace })
    expect(items).toHaveLength(count)
    expect(items.filter(({ metadata }) => metadata.ownerReferences !== undefined)).toEqual([])
    expect(requests.get('patch')).toBeLessThan(count + 20)
  })
})
