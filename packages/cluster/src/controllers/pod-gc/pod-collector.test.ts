import { nodes, type Pod, pods, serviceAccounts } from '@thv/kube'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type EmbeddedPlane, startEmbeddedPlane } from '../scenarios/testing/embedded-plane.ts'
import { podCollector } from './pod-collector.ts'

describe('pods of nodes that are gone', () => {
  let plane: EmbeddedPlane
  beforeAll(async () => {
    plane = await startEmbeddedPlane([(env) => podCollector(env, { lostNodeGraceMs: 200 })])
    await plane.env.client.create(serviceAccounts, { metadata: { namespace: 'default', name: 'default' } })
  })
  afterAll(async () => {
    await plane[Symbol.asyncDispose]()
    expect(plane.errors).toEqual([])
  })

  const pod = (name: string, nodeName: string, finalizers?: string[]): Pod => ({
    metadata: { namespace: 'default', name, ...(finalizers && { finalizers }) },
    spec: { nodeName, containers: [{ name: 'main', image: 'example.com/none:1' }] },
  })
  const get = (name: string) => plane.env.client.tryGet(pods, { namespace: 'default', name })

  it('are deleted, with the reason while something holds them; others stay', async () => {
    const { client } = plane.env
    for (const name of ['stays', 'goes']) await client.create(nodes, { metadata: { name } })
    await client.create(pods, pod('kept', 'stays'))
    await client.create(pods, pod('lost', 'goes'))
    await client.create(pods, pod('held', 'goes', ['example.com/hold']))
    await client.delete(nodes, { name: 'goes' })
    await expect.poll(() => get('lost')).toBeUndefined()
    await expect.poll(async () => (await get('held'))?.metadata.deletionTimestamp).toBeDefined()
    const held = await get('held')
    expect(held?.status?.phase).toBe('Failed')
    expect(held?.status?.conditions?.find(({ type }) => type === 'DisruptionTarget')).toMatchObject({
      status: 'True',
      reason: 'DeletionByPodGC',
      message: 'PodGC: node no longer exists',
    })
    expect((await get('kept'))?.metadata.deletionTimestamp).toBeUndefined()
  })

  it('a node that comes back in time keeps its pods', async () => {
    const { client } = plane.env
    await client.create(pods, pod('early', 'late-node'))
    await client.create(nodes, { metadata: { name: 'late-node' } })
    await client.create(pods, pod('sentinel', 'never'))
    await expect.poll(() => get('sentinel')).toBeUndefined()
    expect(await get('early')).toBeDefined()
  })
})
