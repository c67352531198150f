import { type KubeObject, type Pod, pods } from '@thv/kube'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { newSetName } from '../deployment/newest-replica-set.ts'
import { deployment, replicaSet, statefulSet, template } from './parity/testing/objects.ts'
import { type OurPlane, startOurPlane } from './parity/testing/our-plane.ts'
import type { StageOptions } from './parity/testing/stage.ts'
import { controllerRevisions, type Deployment, deployments, replicaSets, statefulSets } from './workload-kinds.ts'

const LIMIT = { timeout: 15_000, interval: 20 }

describe('workload controllers on our own server', () => {
  let plane: OurPlane
  let count = 0

  beforeAll(async () => {
    plane = await startOurPlane()
  })
  afterAll(async () => {
    await plane[Symbol.asyncDispose]()
    expect(plane.errors).toEqual([])
  })

  async function stage(): Promise<StageOptions> {
    return await plane.stage(`own-${++count}`)
  }
  const placed = <T extends KubeObject>(object: T, namespace: string): T => ({ ...object, metadata: { ...object.metadata, namespace } })

  it('a name that is taken by a set with another template is not used', async () => {
    const { client, namespace } = await stage()
    const paused = await client.create(deployments, placed(deployment({ replicas: 1, paused: true }), namespace) as Deployment)
    // The hash is that of the template as the server has it.
    const taken = newSetName(paused)
    const other = replicaSet({ replicas: 0, selector: { matchLabels: { app: 'other' } }, template: template({ labels: { app: 'other' } }) })
    await client.create(replicaSets, { ...other, metadata: { name: taken, namespace } })
    await client.patch(deployments, { namespace, name: 'web' }, { kind: 'merge', body: { spec: { paused: false } } })
    await vi.waitFor(async () => {
      const { status } = await client.get(deployments, { namespace, name: 'web' })
      expect(status).toMatchObject({ collisionCount: 1, updatedReplicas: 1 })
    }, LIMIT)
    const { items } = await client.listAll(replicaSets, { namespace })
    expect(items).toHaveLength(2)
    expect(items.find(({ metadata }) => metadata.name === taken)?.metadata.ownerReferences).toBeUndefined()
  })

  it('a set that wants volume claims gets no pods, and an event that says why', async () => {
    const { client, namespace, list } = await stage()
    const claims = [{ metadata: { name: 'data' }, spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } }]
    await client.create(statefulSets, placed(statefulSet({ volumeClaimTemplates: claims }), namespace))
    await vi.waitFor(async () => {
      const events = (await list?.({ group: '', version: 'v1', kind: 'Event', plural: 'events', namespaced: true })) ?? []
      expect(events).toMatchObject([
        { type: 'Warning', reason: 'FailedCreate', message: expect.stringContaining('PersistentVolumeClaims') },
      ])
    }, LIMIT)
    expect((await client.get(statefulSets, { namespace, name: 'web' })).status).toMatchObject({ replicas: 0, observedGeneration: 1 })
    expect((await client.listAll(pods, { namespace })).items).toEqual([])
  })

  it('names revisions of a set as the real controller does', async () => {
    const { client, namespace } = await stage()
    const spec = {
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'c', image: 'x<1', ports: [{ containerPort: 80 }], env: [{ name: 'Z', value: 'a&b' }] }],
    }
    await client.create(statefulSets, placed(statefulSet({ template: { metadata: { labels: { app: 'web' } }, spec } }), namespace))
    // As seen on Kubernetes 1.34.
    await vi.waitFor(async () => {
      const { items } = await client.listAll(controllerRevisions, { namespace })
      expect(items).toMatchObject([{ metadata: { name: 'web-7cd67f8689', labels: { 'controller.kubernetes.io/hash': '7cd67f8689' } } }])
    }, LIMIT)
  })

  it('a pod that is somebody else’s is left alone', async () => {
    const { client, namespace } = await stage()
    const foreign: Pod = {
      metadata: {
        name: 'foreign',
        namespace,
        labels: { app: 'web' },
        ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'some-uid', controller: true }],
      },
      spec: { containers: [{ name: 'main', image: 'app:v1' }] },
    }
    await client.create(pods, foreign)
    await client.create(replicaSets, placed(replicaSet({ replicas: 1 }), namespace))
    await vi.waitFor(async () => {
      expect((await client.get(replicaSets, { namespace, name: 'web' })).status).toMatchObject({ replicas: 1, observedGeneration: 1 })
    }, LIMIT)
    const { items } = await client.listAll(pods, { namespace })
    expect(items.filter(({ metadata }) => metadata.name === 'foreign')).toMatchObject([
      { metadata: { ownerReferences: [{ uid: 'some-uid' }] } },
    ])
    expect(items).toHaveLength(2)
  })

  it('makes no requests when nothing changes', async () => {
    const { client, namespace } = await stage()
    await client.create(deployments, placed(deployment({ replicas: 2 }), namespace) as Deployment)
    await client.create(statefulSets, placed({ ...statefulSet(), metadata: { name: 'db' } }, namespace))
    const revisions: number[] = []
    await vi.waitFor(
      () => {
        revisions.push(plane.server.store.revision)
        expect(revisions.at(-1)).toBe(revisions.at(-20))
      },
      { timeout: 15_000, interval: 50 },
    )
  })
})
