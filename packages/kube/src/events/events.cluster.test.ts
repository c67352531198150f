import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createKubeClient, type KubeClient } from '../client/client.ts'
import { bearerToken } from '../client/connection.ts'
import { configMaps, events, namespaces } from '../objects/resource-types.ts'
import { eventually } from '../testing/watched-kind.ts'
import { createEventRecorder, type EventRecorder } from './events.ts'

const note = { type: 'Normal', reason: 'Applied', note: 'all children are there' } as const

describeCluster('event recorder on the API server', () => {
  let client: KubeClient
  let namespace: string
  let errors: unknown[]
  let recorder: EventRecorder

  beforeAll(async () => {
    const { url, caPem, adminToken } = sharedCluster()
    client = createKubeClient({ server: url, tls: { ca: caPem }, auth: bearerToken(adminToken) })
    namespace = await testNamespace('events')
    errors = []
    recorder = createEventRecorder({
      client,
      controller: 'test.dev/recorder',
      instance: 'pod-1',
      seriesIntervalMs: 200,
      onError: (error) => errors.push(error),
    })
  })
  afterAll(() => client?.close())

  const eventsOf = async (name: string, where = namespace) =>
    (await client.listAll(events, { namespace: where })).items.filter(({ regarding }) => regarding?.name === name)

  test('an event, its repeats, and a note that is too long are taken as they are written', async () => {
    const object = await client.create(configMaps, { metadata: { namespace, name: 'repeated' } })
    recorder.record(configMaps, object, { ...note, related: { type: configMaps, object } })
    await eventually('the event is there', async () => (await eventsOf('repeated')).length === 1)
    for (let n = 0; n < 9; n++) recorder.record(configMaps, object, { ...note, related: { type: configMaps, object } })
    await eventually('the count is there', async () => (await eventsOf('repeated'))[0]?.series?.count === 10)
    expect(await eventsOf('repeated')).toMatchObject([
      {
        action: 'Reconcile',
        reportingController: 'test.dev/recorder',
        reportingInstance: 'pod-1',
        regarding: { kind: 'ConfigMap', uid: object.metadata.uid },
        related: { kind: 'ConfigMap' },
      },
    ])

    recorder.record(configMaps, object, { ...note, type: 'Warning', reason: 'R'.repeat(200), note: 'ü'.repeat(2_000), action: 'Wait' })
    await eventually('the long one is there', async () => (await eventsOf('repeated')).length === 2)
    expect(errors).toEqual([])
  })

  test('an object without a namespace has its events in default', async () => {
    const object = await client.get(namespaces, { name: namespace })
    recorder.record(namespaces, object, note)
    await recorder.flush(AbortSignal.timeout(60_000))
    expect(await eventsOf(namespace, 'default')).toHaveLength(1)
    expect(errors).toEqual([])
  })

  test('an Event deleted by hand comes back with its count', async () => {
    const object = await client.create(configMaps, { metadata: { namespace, name: 'deleted' } })
    recorder.record(configMaps, object, note)
    await recorder.flush(AbortSignal.timeout(60_000))
    const [first] = await eventsOf('deleted')
    await client.delete(events, { namespace, name: first?.metadata.name ?? '' })
    recorder.record(configMaps, object, note)
    await recorder.flush(AbortSignal.timeout(60_000))
    expect((await eventsOf('deleted')).map(({ series }) => series?.count)).toEqual([2])
    expect(errors).toEqual([])
  })

  test('a namespace that is being deleted, or was never there: dropped, counted, no error', async () => {
    const dying = await testNamespace('events-dying')
    const object = await client.create(configMaps, { metadata: { namespace: dying, name: 'last' } })
    await client.delete(namespaces, { name: dying })
    const before = recorder.stats.terminating
    recorder.record(configMaps, object, note)
    recorder.record(configMaps, { metadata: { namespace: 'nowhere-at-all', name: 'x', uid: 'u' } }, note)
    await recorder.flush(AbortSignal.timeout(60_000))
    expect(recorder.stats.terminating - before).toBe(2)
    expect(errors).toEqual([])
  })
})
