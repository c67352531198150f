import { deployments, isAlreadyExists, type KubeClient } from '@thv/kube'
import { mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { type ApiServer, startApiServer } from '@thv/testkit/cluster/api-server'
import { describeCluster } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, type OperatorUnderTest, startOperator } from './testing/operator-harness.ts'
import { OWNED_TYPES, workloadSteps } from './testing/workload-steps.ts'

const image = 'example.test/server:1'
const COUNT = 50

/** An API server of its own, which no other test misses. */
describeCluster('an API server that goes away', () => {
  let server: ApiServer
  let operator: OperatorUnderTest
  let admin: KubeClient
  let namespace: string

  beforeAll(async () => {
    server = await startApiServer()
    operator = await startOperator({ cluster: server })
    ;({ admin, namespace } = operator)
  }, 120_000)
  afterAll(async () => {
    await operator?.stop()
    await server?.stop()
  })

  const names = Array.from({ length: COUNT }, (_, index) => `server-${index}`)
  /** As somebody would who does not give up. */
  const insist = async (name: string) =>
    await eventually(`${name} is created`, async () => {
      try {
        return await admin.create(mcpServerType, { metadata: { name, namespace }, spec: { image } })
      } catch (error) {
        if (isAlreadyExists(error)) return true
        throw error
      }
    })
  const allTold = async () =>
    await eventually(
      'all servers are told',
      async () => {
        const { items } = await admin.list(mcpServerType, { namespace })
        return items.length === COUNT && items.every(({ status }) => status?.phase === 'Pending')
      },
      90_000,
    )

  test('in the middle of much work: all of it is done in the end, and nothing twice', async () => {
    const creating = names.map(insist)
    await eventually('some are made', async () => operator.calls.writes.length > 100)
    await server.kill()
    await server.restart()
    await Promise.all(creating)
    await allTold()
    const counts = await Promise.all(
      OWNED_TYPES.map(async (type) => (await admin.list(type, { namespace, labelSelector: '' })).items.length),
    )
    // One account and one ConfigMap more are not ours; neither are the operator's own account and role.
    expect((await admin.list(deployments, { namespace })).items).toHaveLength(COUNT)
    expect(counts.every((count) => count === 0 || count >= COUNT)).toBe(true)
    expect(operator.log.join('')).not.toContain('the operator failed')
  })

  test('it goes on watching afterwards', async () => {
    await admin.patch(mcpServerType, { namespace, name: 'server-7' }, { kind: 'merge', body: { spec: { proxyPort: 9000 } } })
    await workloadSteps(operator, 'MCPServer').settled('server-7')
    await admin.delete(deployments, { namespace, name: 'server-8' })
    await eventually('it is made again', () => admin.tryGet(deployments, { namespace, name: 'server-8' }))
  })

  test('an operator that starts anew finds everything as it should be and writes nothing', async () => {
    const again = await startOperator({ cluster: server, namespace })
    try {
      await workloadSteps(again, 'MCPServer').quiet()
      expect(again.manager.controllers.find(({ name }) => name === 'mcpserver')?.stats.reconciles).toBeGreaterThanOrEqual(COUNT)
      expect(again.calls.writes).toEqual([])
    } finally {
      await again.stop()
    }
  })
})
