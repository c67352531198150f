import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createSharedCaches } from './cache/shared-caches.ts'
import { createKubeClient, type KubeClient } from './client/client.ts'
import { bearerToken } from './client/connection.ts'
import { isNotFound, KubeApiError } from './client/kube-api-error.ts'
import { dropFinalizer, ensureFinalizer, hasFinalizer } from './controller/finalizers.ts'
import { writeStatus } from './controller/status-writer.ts'
import { setCondition } from './objects/conditions.ts'
import { labelSelectorProblem, parseLabelSelector } from './objects/label-selector.ts'
import { configMaps, customResourceDefinitions } from './objects/resource-types.ts'
import type { KubeObject, ResourceType } from './objects/types.ts'
import { eventually } from './testing/watched-kind.ts'

interface Widget extends KubeObject {
  status?: { count?: number; note?: string; conditions?: unknown }
}

const widgets: ResourceType<Widget> = { group: 'runtime.test', version: 'v1', kind: 'Widget', plural: 'widgets', namespaced: true }

describeCluster('runtime on the API server', () => {
  let client: KubeClient
  let namespace: string

  beforeAll(async () => {
    const { url, caPem, adminToken } = sharedCluster()
    client = createKubeClient({ server: url, tls: { ca: caPem }, auth: bearerToken(adminToken) })
    namespace = await testNamespace('runtime')
    await client.apply(customResourceDefinitions, widgetCrd(), { fieldManager: 'test', force: true })
    await eventually('widgets are served', () =>
      client.list(widgets, { namespace }).then(
        () => true,
        (error) => {
          if (isNotFound(error)) return false
          throw error
        },
      ),
    )
  })
  afterAll(() => client?.close())

  const makeWidget = (name: string) =>
    client.create<Widget>(widgets, { apiVersion: 'runtime.test/v1', kind: 'Widget', metadata: { namespace, name } })

  test('label selectors select what the server selects, and refuse what it refuses', async () => {
    const labelSets: Record<string, string>[] = [
      {},
      { a: '1' },
      { a: '2' },
      { a: '' },
      { a: '10', b: 'x' },
      { b: 'y' },
      { 'example.com/c': 'z', b: 'x' },
      { in: 'in' },
      { notin: 'notin' },
    ]
    const objects = await Promise.all(
      labelSets.map((labels, n) => client.create(configMaps, { metadata: { namespace, name: `selected-${n}`, labels } })),
    )
    const selectors = [
      ...[
        '',
        ' ',
        'a',
        '!a',
        '! a',
        'a=1',
        'a==1',
        'a!=1',
        'a=',
        'a==',
        'a!=',
        'a in (1,2)',
        'a in()',
        'a in (,1)',
        'a in (1,)',
        'a in (1,,2)',
        'a notin (1,2)',
        'a notin ()',
      ],
      ...[
        'a>1',
        'a<5',
        'a > 1',
        'a>x',
        'a>',
        'in',
        'notin',
        'in in (in)',
        'in notin (in)',
        'notin notin (x)',
        'in=in',
        'a=in',
        'example.com/c',
        'example.com/c=z',
        '!example.com/c',
      ],
      ...[
        'a,b',
        'a=1,b',
        'a!=1,!b',
        'b in (x,y),a',
        ' a = 10 , b = x ',
        'a=1,a=2',
        'a=1,',
        ',a',
        'a,,b',
        ',',
        'a=1 b=2',
        'a b',
        '=1',
        '!',
        '!!a',
        '!a=1',
        '!a in (1)',
      ],
      ...[
        'a===1',
        'a=!1',
        'a=b=c',
        'a in 1',
        'a in (1',
        'a in 1)',
        'a in (1 2)',
        'a in ((1))',
        '()',
        '(a)',
        'a=(1)',
        'a=-',
        '-a',
        'a-',
        'a=b_',
        'A/B/c',
        'UP.com/x=1',
        '/x',
        'x/',
        `${'a'.repeat(64)}`,
        `a=${'b'.repeat(64)}`,
        `${'a'.repeat(63)}=${'b'.repeat(63)}`,
        'a=é',
        'a<1,a>0',
        'a>+1',
        'a<-1',
        'a>1.5',
        'a\tin\n(1)',
      ],
    ]
    const differences: string[] = []
    for (const selector of selectors) {
      const theirs = await client.list(configMaps, { namespace, labelSelector: selector || undefined }).then(
        ({ items }) => items.map(({ metadata }) => metadata.name).sort(),
        (error) => {
          if (error instanceof KubeApiError && error.status === 400) return 'refused'
          throw error
        },
      )
      const ours = labelSelectorProblem(selector)
        ? 'refused'
        : objects
            .filter(({ metadata }) => parseLabelSelector(selector).matches(metadata.labels))
            .map(({ metadata }) => metadata.name)
            .sort()
      if (JSON.stringify(ours) !== JSON.stringify(theirs)) differences.push(`${JSON.stringify(selector)}: ours ${ours}, theirs ${theirs}`)
    }
    expect(differences).toEqual([])
  })

  test('finalizers of many writers that start from the same state are all kept, and all go', async () => {
    const object = await makeWidget('finalized')
    const names = Array.from({ length: 6 }, (_, n) => `runtime.test/f${n}`)
    const patient = { maxAttempts: 30 }
    await Promise.all(names.map((name) => ensureFinalizer(client, { type: widgets, object, name }, patient)))
    const full = await client.get(widgets, { namespace, name: 'finalized' })
    expect([...(full.metadata.finalizers ?? [])].sort()).toEqual(names)

    await client.delete(widgets, { namespace, name: 'finalized' })
    const deleting = await client.get(widgets, { namespace, name: 'finalized' })
    expect(deleting.metadata.deletionTimestamp).toBeDefined()
    const refused = await ensureFinalizer(client, { type: widgets, object: deleting, name: 'runtime.test/late' })
    expect(refused && hasFinalizer(refused, 'runtime.test/late')).toBe(false)

    await Promise.all(names.map((name) => dropFinalizer(client, { type: widgets, object: full, name }, patient)))
    expect(await client.tryGet(widgets, { namespace, name: 'finalized' })).toBeUndefined()
    expect(await dropFinalizer(client, { type: widgets, object: full, name: 'runtime.test/f0' })).toBeUndefined()
  })

  test('a finalizer name that the server refuses is an error, not an endless race', async () => {
    const object = await makeWidget('bad-finalizer')
    await expect(ensureFinalizer(client, { type: widgets, object, name: 'not a name' })).rejects.toMatchObject({ status: 422 })
  })

  test('statuses computed by many writers at once: no update is lost', async () => {
    await makeWidget('counted')
    const key = { namespace, name: 'counted' }
    const increment = (current: Widget) => ({ ...current.status, count: (current.status?.count ?? 0) + 1 })
    await Promise.all(Array.from({ length: 8 }, () => writeStatus(client, { type: widgets, key }, { mutate: increment, maxAttempts: 50 })))
    expect((await client.get(widgets, key)).status).toEqual({ count: 8 })
  })

  test('a status that would not change is not written; one that lost a field loses it', async () => {
    const created = await makeWidget('quiet')
    const key = { namespace, name: 'quiet' }
    const conditions = setCondition(
      [],
      { type: 'Ready', status: 'True', reason: 'Fine', message: 'x'.repeat(40_000) },
      new Date().toISOString(),
    )
    const first = await writeStatus(
      client,
      { type: widgets, key, cached: created },
      { mutate: () => ({ note: 'a', count: 1, conditions }) },
    )
    expect(first).toMatchObject({ written: true, object: { status: { note: 'a', count: 1 } } })
    const again = await writeStatus(client, { type: widgets, key }, { mutate: () => ({ conditions, count: 1, note: 'a' }) })
    expect(again).toMatchObject({ written: false, object: { metadata: { resourceVersion: first.object?.metadata.resourceVersion } } })
    const fewer = await writeStatus(client, { type: widgets, key, cached: created }, { mutate: () => ({ count: 1 }) })
    expect(fewer.object?.status).toEqual({ count: 1 })
    expect(fewer.object?.metadata.generation).toBe(created.metadata.generation)
    await client.delete(widgets, key)
    expect(await writeStatus(client, { type: widgets, key, cached: fewer.object }, { mutate: () => ({ count: 2 }) })).toEqual({
      written: false,
      object: undefined,
    })
  })

  test('shared caches with selectors follow objects into and out of their selection', async () => {
    const caches = createSharedCaches(client)
    try {
      const on = caches.of(configMaps, {
        namespace,
        labelSelector: { matchExpressions: [{ key: 'stage', operator: 'In', values: ['on', 'half'] }] },
      })
      const one = caches.metadataOf(configMaps, { namespace, fieldSelector: 'metadata.name=moving' })
      await caches.waitForSync(AbortSignal.timeout(60_000))
      const key = { namespace, name: 'moving' }
      const stages: string[] = []
      on.addHandler(({ type }) => stages.push(type))
      await client.create(configMaps, { metadata: { ...key, labels: { stage: 'off' } }, data: { secret: 'content' } })
      for (const stage of ['on', 'half', 'off', 'on'])
        await client.patch(configMaps, key, { kind: 'merge', body: { metadata: { labels: { stage } } } })
      await eventually('all moves are seen', () => stages.length === 4)
      expect(stages).toEqual(['ADDED', 'MODIFIED', 'DELETED', 'ADDED'])
      await client.delete(configMaps, key)
      await eventually('the deletion is seen', () => on.store.size === 0 && one.store.size === 0)
      expect(one.stats.events).toBeGreaterThanOrEqual(6)
    } finally {
      await caches.close()
    }
  })
})

function widgetCrd() {
  const schema = {
    openAPIV3Schema: {
      type: 'object',
      properties: { status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
    },
  }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.runtime.test' },
    spec: {
      group: 'runtime.test',
      scope: 'Namespaced',
      names: { kind: 'Widget', plural: 'widgets' },
      versions: [{ name: 'v1', served: true, storage: true, subresources: { status: {} }, schema }],
    },
  }
}
