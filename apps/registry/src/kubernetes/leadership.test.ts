import type { SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import { TestClock } from '@thv/kernel/clock'
import { KubeApiError, type KubeClient } from '@thv/kube'
import { LeaseApi } from '@thv/kube/testing/lease-api'
import { expect, it } from 'vitest'
import { silentLog } from '../engine/testing/engine-fixture.ts'
import { createLeadership } from './leadership.ts'

const POD = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' }
const source = (name: string, kubernetes: SourceConfig['kubernetes'] = {}): SourceConfig => ({ name, kubernetes: kubernetes ?? {} })

function setUp(sources: readonly SourceConfig[], env: Record<string, string> = POD) {
  const api = new LeaseApi()
  const line = api.line()
  const clock = new TestClock()
  const leadership = createLeadership({
    clock,
    log: silentLog,
    random: () => 0.5,
    env,
    connect: async () => ({ client: { ...line.client, close: async () => {} } as unknown as KubeClient, namespace: 'toolhive-system' }),
    onChange: () => {},
  })
  leadership.set(sources)
  return { api, line, clock, leadership }
}

it('takes a Lease in the namespace of the pod, with the defaults of client-go [001-097] [001-098]', async () => {
  const { api, line, clock, leadership } = setUp([source('a')])
  expect([leadership.mayTake('a'), leadership.withheld]).toEqual([false, ['a']])
  await clock.advance(0)
  expect([leadership.mayTake('a'), leadership.withheld]).toEqual([true, []])
  expect(api.lease).toMatchObject({
    metadata: { namespace: 'toolhive-system', name: 'toolhive-registry-kubernetes-source' },
    spec: { leaseDurationSeconds: 15 },
  })
  const written = api.writes
  await clock.advance(2_000)
  expect(api.writes).toBe(written + 1)
  line.down = true
  await clock.advance(9_900)
  expect(leadership.mayTake('a')).toBe(true)
  await clock.advance(200)
  expect(leadership.mayTake('a')).toBe(false)
  line.down = false
  const end = leadership[Symbol.asyncDispose]()
  await clock.advance(60_000)
  await end
})

it('leads through a storm of conflicts and through clocks that jump, and stops when no renewal gets through for ten seconds', async () => {
  const api = new LeaseApi()
  const { client } = api.line()
  const clock = new TestClock()
  let conflicts = 0
  const update: typeof client.update = async (...args) => {
    if (conflicts-- > 0) throw new KubeApiError({ status: 409, call: { verb: 'update', target: 'leases' }, body: { reason: 'Conflict' } })
    return await client.update(...args)
  }
  const leadership = createLeadership({
    clock,
    log: silentLog,
    random: () => 0.5,
    env: POD,
    connect: async () => ({ client: { ...client, update, close: async () => {} } as unknown as KubeClient, namespace: 'toolhive-system' }),
    onChange: () => {},
  })
  leadership.set([source('a')])
  await clock.advance(0)
  for (const jump of [0, 86_400_000, -172_800_000]) {
    clock.jump(jump)
    conflicts = 3
    await clock.advance(8_000)
    expect([conflicts <= 0, leadership.mayTake('a')]).toEqual([true, true])
    await clock.advance(4_000)
    expect([jump, leadership.mayTake('a')]).toEqual([jump, true])
  }
  conflicts = 1_000
  await clock.advance(12_100)
  expect(leadership.mayTake('a')).toBe(false)
  conflicts = 0
  await clock.advance(60_000)
  expect(leadership.mayTake('a')).toBe(true)
  const end = leadership[Symbol.asyncDispose]()
  await clock.advance(60_000)
  await end
})

it('may take nothing while its calls hang, as those of a frozen process, and writes nothing when they go on', async () => {
  const { api, line, clock, leadership } = setUp([source('a')])
  await clock.advance(0)
  line.frozen = Promise.withResolvers<void>()
  await clock.advance(10_100)
  expect(leadership.mayTake('a')).toBe(false)
  api.steal('heir')
  line.frozen.resolve()
  line.frozen = undefined
  await clock.advance(4_000)
  expect([api.lease?.spec?.holderIdentity, leadership.mayTake('a')]).toEqual(['heir', false])
  const end = leadership[Symbol.asyncDispose]()
  await clock.advance(60_000)
  await end
})

it('gives the Lease back when it resigns, and asks for none again', async () => {
  const { api, clock, leadership } = setUp([source('a')])
  await clock.advance(0)
  const resigned = leadership.resign()
  await clock.advance(5_000)
  await resigned
  expect(api.lease?.spec?.holderIdentity ?? '').toBe('')
  await clock.advance(60_000)
  expect([api.lease?.spec?.holderIdentity ?? '', leadership.mayTake('a')]).toEqual(['', false])
})

it('waits a while for another replica to lead before it goes [001-108]', async () => {
  const { api, clock, leadership } = setUp([source('a')])
  await clock.advance(0)
  const line = api.line()
  const heir = createLeadership({
    clock,
    log: silentLog,
    random: () => 0.5,
    env: POD,
    connect: async () => ({ client: { ...line.client, close: async () => {} } as unknown as KubeClient, namespace: 'toolhive-system' }),
    onChange: () => {},
  })
  heir.set([source('a')])
  await clock.advance(1_000)
  let gone = false
  const resigned = leadership.resign().then(() => {
    gone = true
  })
  await clock.advance(0)
  expect([api.lease?.spec?.holderIdentity ?? '', gone]).toEqual(['', false])
  await clock.advance(3_000)
  await resigned
  expect([leadership.mayTake('a'), heir.mayTake('a'), gone]).toEqual([false, true, true])
  const end = heir[Symbol.asyncDispose]()
  await clock.advance(60_000)
  await end
})

it.each([
  ['outside of a pod', {}, {}],
  ['with a kubeconfig', POD, { kubeconfig: { path: '/k' } }],
  ['where it is switched off', POD, { leaderElection: { enabled: false } }],
])('has no election %s', (_, env: Record<string, string>, kubernetes) => {
  const { leadership } = setUp([source('a', kubernetes)], env)
  expect([leadership.mayTake('a'), leadership.status]).toEqual([true, undefined])
})

it('names the Lease by the variable, for releases that share a namespace', async () => {
  const { api, clock, leadership } = setUp([source('a')], { ...POD, THV_REGISTRY_LEADER_ELECTION_ID: 'mine' })
  await clock.advance(0)
  expect(api.lease?.metadata.name).toBe('mine')
  const end = leadership[Symbol.asyncDispose]()
  await clock.advance(60_000)
  await end
})
