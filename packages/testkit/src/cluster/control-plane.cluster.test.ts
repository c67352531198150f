import { expect, test, vi } from 'vitest'
import { apiRequest } from './http-request.ts'
import { describeCluster, sharedCluster, testNamespace } from './test-cluster.ts'

/** How long a chain of controllers may take on a busy machine. */
const patience = { timeout: 60_000, interval: 200 }

describeCluster('control plane', () => {
  test('a Deployment makes a ReplicaSet, that a pod, and the scheduler finds no node for it', async () => {
    const namespace = await testNamespace()
    await create(`/apis/apps/v1/namespaces/${namespace}/deployments`, workload('web', {}))
    await vi.waitFor(async () => {
      const [pod] = await list<Pod>(`/api/v1/namespaces/${namespace}/pods`)
      expect(pod?.metadata.ownerReferences?.[0]?.kind).toBe('ReplicaSet')
      expect(pod?.spec.serviceAccountName).toBe('default')
      expect(pod?.status.phase).toBe('Pending')
      expect(pod?.status.conditions).toContainEqual(expect.objectContaining({ type: 'PodScheduled', reason: 'Unschedulable' }))
    }, patience)
  })

  test('a StatefulSet makes the pod with its name and number', async () => {
    const namespace = await testNamespace()
    await create(`/apis/apps/v1/namespaces/${namespace}/statefulsets`, workload('db', { serviceName: 'db' }))
    await vi.waitFor(async () => expect((await get(`/api/v1/namespaces/${namespace}/pods/db-0`)).status).toBe(200), patience)
  })

  test('an owned object is deleted with its owner', async () => {
    const namespace = await testNamespace()
    const maps = `/api/v1/namespaces/${namespace}/configmaps`
    const owner = await create(maps, { metadata: { name: 'owner' } })
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: owner.metadata.uid }]
    await create(maps, { metadata: { name: 'owned', ownerReferences } })
    await create(maps, { metadata: { name: 'free' } })
    await apiRequest(sharedCluster(), `${maps}/owner`, { method: 'DELETE' })
    await vi.waitFor(async () => expect((await get(`${maps}/owned`)).status).toBe(404), patience)
    expect((await get(`${maps}/free`)).status).toBe(200)
  })

  test('a namespace ends with all that is in it', async () => {
    const namespace = await testNamespace()
    await create(`/api/v1/namespaces/${namespace}/configmaps`, { metadata: { name: 'inside' } })
    await apiRequest(sharedCluster(), `/api/v1/namespaces/${namespace}`, { method: 'DELETE' })
    await vi.waitFor(async () => expect((await get(`/api/v1/namespaces/${namespace}`)).status).toBe(404), patience)
  })

  test('a pod with an unknown account is refused, and a known one gets a token volume', async () => {
    const namespace = await testNamespace()
    const pods = `/api/v1/namespaces/${namespace}/pods`
    const pod = (serviceAccountName: string) => ({ metadata: { name: 'x' }, spec: { serviceAccountName, containers } })
    const refused = await apiRequest(sharedCluster(), pods, { method: 'POST', body: pod('missing') })
    expect(refused.json()).toMatchObject({ code: 403, message: expect.stringContaining('serviceaccount "missing" not found') })
    const made = (await create(pods, pod('default'))) as unknown as Pod
    expect(made.spec.volumes).toEqual([expect.objectContaining({ projected: expect.anything() })])
  })
})

interface Pod {
  metadata: { uid: string; ownerReferences?: { kind: string }[] }
  spec: { serviceAccountName?: string; volumes?: object[] }
  status: { phase?: string; conditions?: object[] }
}

const containers = [{ name: 'main', image: 'example.test/none:1' }]

function workload(name: string, spec: object): object {
  const labels = { app: name }
  const template = { metadata: { labels }, spec: { containers } }
  return { metadata: { name }, spec: { replicas: 1, selector: { matchLabels: labels }, template, ...spec } }
}

function get(path: string) {
  return apiRequest(sharedCluster(), path)
}

async function list<T>(path: string): Promise<T[]> {
  return (await get(path)).json<{ items: T[] }>().items
}

async function create(path: string, body: object): Promise<{ metadata: { uid: string } }> {
  const answer = await apiRequest(sharedCluster(), path, { method: 'POST', body })
  expect(answer.status, answer.text).toBe(201)
  return answer.json()
}
