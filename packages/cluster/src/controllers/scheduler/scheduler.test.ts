import type { KubeNode, KubeObject, Pod } from '@thv/kube'
import { events, nodes, pods, serviceAccounts } from '@thv/kube'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type EmbeddedPlane, startEmbeddedPlane } from '../scenarios/testing/embedded-plane.ts'
import { misfit } from './node-fit.ts'
import { choose, scheduler } from './scheduler.ts'

const READY = { conditions: [{ type: 'Ready', status: 'True' }] }

function node(
  name: string,
  more: { labels?: Record<string, string>; spec?: KubeNode['spec']; status?: KubeNode['status'] } = {},
): KubeNode {
  const { labels, spec, status = READY } = more
  return { metadata: { name, ...(labels && { labels }) }, ...(spec && { spec }), status }
}

function pod(spec: Record<string, unknown> = {}, name = 'p'): Pod {
  return { metadata: { namespace: 'default', name }, spec: { containers: [{ name: 'main', image: 'example.com/none:1' }], ...spec } }
}

const TAINTED = { taints: [{ key: 'team', value: 'a', effect: 'NoSchedule' }] }

describe('whether a pod fits a node', () => {
  const affinity = (term: unknown) => ({
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } } },
  })

  it.each<[string, Record<string, unknown>, KubeNode, string | undefined]>([
    ['a ready node', {}, node('n'), undefined],
    ['a node that is not ready', {}, node('n', { status: { conditions: [{ type: 'Ready', status: 'False' }] } }), 'node(s) were not ready'],
    ['a node that nobody has heard of', {}, node('n', { status: {} }), 'node(s) were not ready'],
    ['a cordoned node', {}, node('n', { spec: { unschedulable: true } }), 'node(s) were unschedulable'],
    [
      'a cordoned node, tolerated',
      { tolerations: [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }] },
      node('n', { spec: { unschedulable: true } }),
      undefined,
    ],
    ['a taint', {}, node('n', { spec: TAINTED }), 'node(s) had untolerated taint {team: a}'],
    ['a taint, tolerated', { tolerations: [{ key: 'team', value: 'a' }] }, node('n', { spec: TAINTED }), undefined],
    ['a taint, all tolerated', { tolerations: [{ operator: 'Exists' }] }, node('n', { spec: TAINTED }), undefined],
    [
      'a taint of another value',
      { tolerations: [{ key: 'team', value: 'b' }] },
      node('n', { spec: TAINTED }),
      'node(s) had untolerated taint {team: a}',
    ],
    [
      'a taint of another effect',
      { tolerations: [{ key: 'team', operator: 'Exists', effect: 'NoExecute' }] },
      node('n', { spec: TAINTED }),
      'node(s) had untolerated taint {team: a}',
    ],
    ['a taint that only advises', {}, node('n', { spec: { taints: [{ key: 'x', effect: 'PreferNoSchedule' }] } }), undefined],
    ['a selector', { nodeSelector: { disk: 'ssd' } }, node('n', { labels: { disk: 'ssd' } }), undefined],
    [
      'a selector that does not match',
      { nodeSelector: { disk: 'ssd' } },
      node('n', { labels: { disk: 'hdd' } }),
      "node(s) didn't match Pod's node affinity/selector",
    ],
    [
      'an affinity by label',
      affinity({ matchExpressions: [{ key: 'disk', operator: 'In', values: ['ssd'] }] }),
      node('n', { labels: { disk: 'ssd' } }),
      undefined,
    ],
    [
      'an affinity by name',
      affinity({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['other'] }] }),
      node('n'),
      "node(s) didn't match Pod's node affinity/selector",
    ],
  ])('%s', (_, spec, candidate, expected) => {
    expect(misfit(pod(spec), candidate)).toBe(expected)
  })

  it('counts why no node fits, in the words of Kubernetes', () => {
    const all = [node('a', { spec: TAINTED }), node('b', { spec: { unschedulable: true } })]
    expect(choose(pod(), all).message).toBe(
      '0/2 nodes are available: 1 node(s) had untolerated taint {team: a}, 1 node(s) were unschedulable. no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.',
    )
    expect(choose(pod(), []).message).toBe('no nodes available to schedule pods')
  })
})

describe('the scheduler', () => {
  let plane: EmbeddedPlane
  beforeAll(async () => {
    plane = await startEmbeddedPlane([scheduler])
  })
  afterAll(async () => {
    await plane[Symbol.asyncDispose]()
    expect(plane.errors).toEqual([])
  })

  const get = (name: string) => plane.env.client.get(pods, { namespace: 'default', name })
  const nodeOf = async (name: string) => (await get(name)).spec?.nodeName
  const scheduled = async (name: string) => (await get(name)).status?.conditions?.find(({ type }) => type === 'PodScheduled')
  const eventsOf = async (name: string) =>
    (await plane.env.client.listAll(events, { namespace: 'default' })).items
      .filter(({ regarding }) => regarding?.name === name)
      .map(({ reason, note, type, action }) => ({ reason, note, type, action }))

  it('says why a pod waits, and binds it when a node comes; spreads pods; leaves the rest alone', async () => {
    const { client } = plane.env
    const create = async (object: KubeObject & Pod) => await client.create(pods, object)
    const addNode = async (object: KubeNode) => {
      await client.create(nodes, object)
      await client.patch(nodes, object.metadata, { kind: 'merge', body: { status: object.status } }, { subresource: 'status' })
    }
    await client.create(serviceAccounts, { metadata: { namespace: 'default', name: 'default' } })
    await create(pod({}, 'early'))
    await create(pod({ schedulerName: 'somebody-else' }, 'foreign'))
    await expect
      .poll(() => scheduled('early'))
      .toMatchObject({
        status: 'False',
        reason: 'Unschedulable',
        message: 'no nodes available to schedule pods',
      })
    await expect
      .poll(() => eventsOf('early'))
      .toEqual([{ type: 'Warning', reason: 'FailedScheduling', note: 'no nodes available to schedule pods', action: 'Scheduling' }])

    const said = { type: 'PodScheduled', status: 'True' }
    await client.patch(
      pods,
      pod({}, 'early').metadata,
      { kind: 'merge', body: { status: { conditions: [said] } } },
      { subresource: 'status' },
    )
    await create(pod({}, 'later'))
    await expect.poll(() => scheduled('later')).toMatchObject({ reason: 'Unschedulable' })
    expect(await scheduled('early'), 'what another one writes into the status stays').toMatchObject(said)
    await client.delete(pods, { namespace: 'default', name: 'later' })

    await addNode(node('one'))
    await expect.poll(() => nodeOf('early')).toBe('one')
    await expect.poll(async () => (await scheduled('early'))?.status).toBe('True')
    await expect
      .poll(() => eventsOf('early'))
      .toContainEqual({
        type: 'Normal',
        reason: 'Scheduled',
        note: 'Successfully assigned default/early to one',
        action: 'Binding',
      })
    await addNode(node('two', { labels: { disk: 'ssd' } }))
    await expect.poll(() => plane.env.caches.of(nodes).store.get({ name: 'two' })?.status?.conditions).toBeDefined()
    for (const name of ['a', 'b', 'c']) await create(pod({}, name))
    await expect
      .poll(async () => (await Promise.all(['early', 'a', 'b', 'c'].map(nodeOf))).toSorted())
      .toEqual(['one', 'one', 'two', 'two'])
    await create(pod({ nodeSelector: { disk: 'ssd' } }, 'picky'))
    await create(pod({ nodeName: 'elsewhere' }, 'bound'))
    await expect.poll(() => nodeOf('picky')).toBe('two')
    expect(await nodeOf('bound')).toBe('elsewhere')
    expect(await nodeOf('foreign')).toBeUndefined()
    expect(await scheduled('foreign')).toBeUndefined()
  })
})
