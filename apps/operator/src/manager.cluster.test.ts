import { deployments, type KubeClient, leases } from '@thv/kube'
import { mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { adminClient, installCrds } from '@thv/resources/testing/install-crds'
import { type FaultyProxy, startFaultyProxy } from '@thv/testkit/cluster/faults/faulty-proxy'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { LEASE_NAME } from './operator-settings.ts'
import { eventually, type OperatorUnderTest, startOperator } from './testing/operator-harness.ts'
import { type WorkloadSteps, workloadSteps } from './testing/workload-steps.ts'

const image = 'example.test/server:1'

interface Candidate extends OperatorUnderTest {
  readonly network: FaultyProxy
}

describeCluster('two operators', () => {
  let admin: KubeClient
  let namespace: string
  let steps: WorkloadSteps
  const candidates: Candidate[] = []

  beforeAll(async () => {
    admin = adminClient(sharedCluster())
    await installCrds(admin)
    namespace = await testNamespace('managers')
    // Each has a network of its own: cut off it is as good as killed.
    for (const name of ['first', 'second']) {
      const network = await startFaultyProxy(sharedCluster().url)
      const operator = await startOperator({
        namespace,
        cluster: { ...sharedCluster(), url: network.url },
        flags: { leaderElect: true, leaseDuration: 6_000 },
        env: { POD_NAME: name },
      })
      candidates.push({ ...operator, network, manager: operator.manager })
    }
    steps = workloadSteps({ admin, namespace, manager: leaderOrFirst().manager, hasControllers: true }, 'MCPServer')
  })
  afterAll(async () => {
    await steps?.cleanUp()
    for (const { network } of candidates) network.heal()
    for (const candidate of candidates) await candidate.stop()
    for (const { network } of candidates) await network.close()
    await admin?.close()
  })

  const leaderOrFirst = () => candidates.find(({ manager }) => manager.isLeader) ?? (candidates[0] as Candidate)
  const at = (name: string) => ({ namespace, name })
  const make = async (name: string) => {
    await steps.create(name, { image })
    await steps.settled(name, 'Pending')
  }
  const roles = async (): Promise<[leader: Candidate, standby: Candidate]> =>
    await eventually('one of them leads', async () => {
      const [leader, ...more] = candidates.filter(({ manager }) => manager.isLeader)
      const standby = candidates.find((each) => each !== leader)
      return leader !== undefined && standby !== undefined && more.length === 0 && ([leader, standby] as [Candidate, Candidate])
    })
  const writesOf = ({ calls }: Candidate) => calls.writes.filter(({ plural }) => plural !== 'leases')
  const holder = async () => (await admin.tryGet(leases, at(LEASE_NAME)))?.spec?.holderIdentity ?? ''

  test('only the one that holds the Lease works; the other is ready', async () => {
    const [leader, standby] = await roles()
    await make('one')
    expect(writesOf(leader).length).toBeGreaterThan(0)
    expect(writesOf(standby)).toEqual([])
    expect(standby.manager.isReady).toBe(true)
    expect(standby.manager.controllers).toEqual([])
    expect(await holder()).toMatch(leader === candidates[0] ? /^first_/ : /^second_/)
  })

  test('a leader that is cut off stops by itself, and the other takes over', async () => {
    const [old, next] = await roles()
    old.network.blackhole()
    await eventually('the old one stops', async () => !old.manager.isLeader)
    await eventually('the other leads', async () => next.manager.isLeader)
    old.calls.clear()
    await make('two')
    old.network.heal()
    await make('three')
    expect(old.manager.isLeader).toBe(false)
    expect(writesOf(old)).toEqual([])
    expect(old.log.join('')).toContain('the lease is lost')
  })

  test('an operator that loses the Lease stops; none works until it is free', async () => {
    const [leader] = await roles()
    const now = new Date().toISOString().replace('Z', '000Z')
    // Not tied to a version: the leader writes it all the time.
    const body = { spec: { holderIdentity: 'stranger', acquireTime: now, renewTime: now } }
    await admin.patch(leases, at(LEASE_NAME), { kind: 'merge', body })
    await eventually('the leader stops', async () => !leader.manager.isLeader)
    for (const { calls } of candidates) calls.clear()
    await steps.create('four', { image })
    expect(await admin.tryGet(deployments, at('four'))).toBeUndefined()
    expect(candidates.flatMap(writesOf)).toEqual([])
    expect(await holder()).toBe('stranger')
    await roles()
    await steps.settled('four', 'Pending')
  })

  test('a leader that stops in good order hands over, and its successor finds nothing to do', async () => {
    const [leader, next] = await roles()
    await eventually('quiet', async () =>
      (await admin.list(mcpServerType, { namespace })).items.every(({ status }) => status?.phase === 'Pending'),
    )
    await workloadSteps({ admin, namespace, manager: leader.manager, hasControllers: true }, 'MCPServer').quiet()
    next.calls.clear()
    candidates.splice(candidates.indexOf(leader), 1)
    await leader.stop()
    await leader.network.close()
    await eventually('the other leads', async () => next.manager.isLeader)
    await workloadSteps({ admin, namespace, manager: next.manager, hasControllers: true }, 'MCPServer').quiet()
    // The scheduler may change the status of a pod meanwhile; nothing may be created again.
    expect(writesOf(next).filter(({ subresource }) => subresource !== 'status')).toEqual([])
    await make('five')
  })
})
