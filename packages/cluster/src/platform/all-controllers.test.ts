import { type Deployment, deployments, endpointSlices, namespaces, nodes, pods, serviceAccounts, services } from '@thv/kube'
import { describe, expect, it } from 'vitest'
import { startEmbeddedPlane } from '../controllers/scenarios/testing/embedded-plane.ts'
import { startControllers } from './all-controllers.ts'

const WAIT = { timeout: 10_000, interval: 50 }

describe('all controllers together', () => {
  it('make a Deployment reachable, clear its namespace away, and end', async () => {
    await using plane = await startEmbeddedPlane([])
    const { client } = plane.env
    const stop = new AbortController()
    const { done } = await startControllers(plane.env, stop.signal, { rootCaPem: 'PEM' })
    const namespace = 'whole'
    await client.create(nodes, { metadata: { name: 'here' } })
    const ready = { status: { conditions: [{ type: 'Ready', status: 'True' }] } }
    await client.patch(nodes, { name: 'here' }, { kind: 'merge', body: ready }, { subresource: 'status' })
    await client.create(namespaces, { metadata: { name: namespace } })
    await expect.poll(() => client.tryGet(serviceAccounts, { namespace, name: 'default' }), WAIT).toBeDefined()

    const labels = { app: 'web' }
    const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'example.com/none:1' }] } }
    const deployment: Deployment = {
      metadata: { namespace, name: 'web' },
      spec: { replicas: 2, selector: { matchLabels: labels }, template },
    }
    await client.create(deployments, deployment)
    await client.create(services, { metadata: { namespace, name: 'web' }, spec: { selector: labels, ports: [{ port: 80 }] } })
    const bound = async () => (await client.list(pods, { namespace })).items.filter(({ spec }) => spec?.nodeName === 'here')
    await expect.poll(async () => (await bound()).length, WAIT).toBe(2)

    for (const [index, { metadata }] of (await bound()).entries()) {
      const status = { phase: 'Running', podIP: `10.0.0.${index + 1}`, conditions: [{ type: 'Ready', status: 'True' }] }
      await client.patch(pods, { namespace, name: metadata.name }, { kind: 'merge', body: { status } }, { subresource: 'status' })
    }
    const addresses = async () =>
      (await client.list(endpointSlices, { namespace })).items
        .flatMap(({ endpoints = [] }) => endpoints ?? [])
        .filter(({ conditions }) => conditions?.ready)
        .flatMap((endpoint) => endpoint.addresses)
    await expect.poll(async () => (await addresses()).toSorted(), WAIT).toEqual(['10.0.0.1', '10.0.0.2'])
    await expect.poll(async () => (await client.get(deployments, { namespace, name: 'web' })).status?.readyReplicas, WAIT).toBe(2)

    await client.delete(namespaces, { name: namespace })
    // As the node does when a pod has ended.
    const end = async () => {
      for (const { metadata } of await bound())
        await client.delete(pods, { namespace, name: metadata.name }, { gracePeriodSeconds: 0 }).catch(() => undefined)
      return await client.tryGet(namespaces, { name: namespace })
    }
    await expect.poll(end, WAIT).toBeUndefined()
    expect((await client.list(services, { namespace })).items).toEqual([])

    stop.abort()
    await done
    expect(plane.errors).toEqual([])
  })
})
