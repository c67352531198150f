import { virtualMcpServerType as type } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { fixturesOf } from '@thv/resources/testing/fixtures'
import { describeCluster } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, type OperatorUnderTest, startOperator } from '../../testing/operator-harness.ts'

describeCluster('a kind that nothing is run for yet', () => {
  let operator: OperatorUnderTest

  beforeAll(async () => {
    operator = await startOperator()
  })
  afterAll(async () => await operator?.stop())

  test('says so, follows new generations and can be deleted', async () => {
    const { admin, namespace } = operator
    const key = { namespace, name: 'catalog' }
    const [fixture] = fixturesOf('virtualmcpservers')
    await admin.create(type, { metadata: key, spec: fixture?.manifest.spec } as never)
    const ready = async (generation: number) =>
      await eventually(`the condition of generation ${generation}`, async () => {
        const { status } = await admin.get(type, key)
        const found = status?.conditions?.find(({ type }) => type === 'Ready')
        if (found?.observedGeneration !== generation) throw new Error(JSON.stringify(status))
        return found
      })
    const told = await ready(1)
    expect(told).toMatchObject({ status: 'False', reason: 'NotImplemented' })
    expect(told.message).toContain('nothing runs for this object')
    await admin.patch(type, key, { kind: 'merge', body: { spec: { config: { metadata: { note: 'changed' } } } } })
    expect(await ready(2)).toMatchObject({ reason: 'NotImplemented', lastTransitionTime: told.lastTransitionTime })
    await admin.delete(type, key)
    await eventually('it is gone', async () => (await admin.tryGet(type, key)) === undefined)
  })
})
