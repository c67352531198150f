import type { KubeClient } from '@thv/kube'
import { virtualMcpCompositeToolDefinitionType as type } from '@thv/resources/kinds/virtual-mcp-composite-tool-definition/schema'
import { virtualMcpServerType } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { describeCluster } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { kubectlApply } from '../../testing/kubectl.ts'
import { eventually, type OperatorUnderTest, startOperator } from '../../testing/operator-harness.ts'
import { createFresh, removeLeft } from '../../testing/second-try.ts'
import { standstill } from '../../testing/standstill.ts'

type Spec = Parameters<typeof create>[2]

async function create(admin: KubeClient, key: { namespace: string; name: string }, spec: object) {
  return await createFresh(admin, type, { metadata: key, spec } as never)
}

describeCluster('VirtualMCPCompositeToolDefinition', () => {
  let operator: OperatorUnderTest
  const at = (name: string) => ({ namespace: operator.namespace, name })
  const valid = (changes: object = {}): Spec => ({
    name: 'order',
    description: 'Orders.',
    steps: [{ id: 'one', tool: 'echo' }],
    ...changes,
  })
  const settled = async (name: string, status: string) =>
    await eventually(`${name} is ${status}`, async () => {
      const found = await operator.admin.get(type, at(name))
      return found.status?.observedGeneration === found.metadata.generation && found.status?.validationStatus === status && found.status
    })
  const reasonOf = (status: { conditions?: readonly { type: string; reason: string }[] }) =>
    status.conditions?.find((condition) => condition.type === 'WorkflowValidated')?.reason

  beforeAll(async () => {
    operator = await startOperator()
  })
  afterAll(async () => await operator?.stop())

  test('[002-189] a sound one is Valid; one with faults becomes Valid when it is repaired', async () => {
    await create(operator.admin, at('sound'), valid())
    expect(await settled('sound', 'Valid')).not.toHaveProperty('validationErrors')
    await create(operator.admin, at('repaired'), valid({ steps: [{ id: 'one', tool: 'echo', condition: '{{if}}' }] }))
    expect(reasonOf(await settled('repaired', 'Invalid'))).toBe('TemplateInvalid')
    await operator.admin.patch(type, at('repaired'), { kind: 'merge', body: { spec: valid() } })
    expect(await settled('repaired', 'Valid')).not.toHaveProperty('validationErrors')
  })

  test('[002-039] faults that no schema can see are listed by step, field and column', async () => {
    const steps = [
      { id: 'find', tool: 'orders.find', arguments: { number: 'no {{.params.number}}' } },
      { id: 'track', tool: 'parcels.track', arguments: { code: '{{.steps.find.output.parcel}}' } },
    ]
    await create(operator.admin, at('faulty'), valid({ steps }))
    expect((await settled('faulty', 'Invalid')).validationErrors).toEqual([
      'spec.steps[0].arguments.number (step find): column 6: the tool has no parameter "number"',
      'spec.steps[1].arguments.code (step track): column 3: step find may not be done yet: add it to dependsOn',
    ])
  })

  test('[002-182] a dependency cycle that kubectl applied without a webhook is Invalid with a reason of its own', async () => {
    const steps = [
      { id: 'a', tool: 'echo', dependsOn: ['b'] },
      { id: 'b', tool: 'echo', dependsOn: ['a'] },
    ]
    const { group, version, kind } = type
    await removeLeft(operator.admin, type, at('cycle'))
    const applied = await kubectlApply({ apiVersion: `${group}/${version}`, kind, metadata: at('cycle'), spec: valid({ steps }) })
    expect(applied).toMatchObject({ code: 0, stdout: expect.stringContaining('cycle created') })
    const status = await settled('cycle', 'Invalid')
    expect(reasonOf(status)).toBe('DependencyCycle')
    expect(status.validationErrors).toEqual([expect.stringContaining('a → b → a')])
  })

  test('[002-190] names exactly the VirtualMCPServers that use it, and only their definitions are written again', async () => {
    const { admin, namespace } = operator
    for (const name of ['first', 'second']) await removeLeft(admin, virtualMcpServerType, at(name))
    await create(admin, at('shared'), valid())
    await create(admin, at('unused'), valid())
    await settled('unused', 'Valid')
    const users = async (expected: readonly string[] | undefined) =>
      await eventually(`the users are ${expected}`, async () => {
        const { status } = await admin.get(type, at('shared'))
        return JSON.stringify(status?.referencingVirtualServers) === JSON.stringify(expected)
      })
    const server = (name: string, spec: object) =>
      admin.create(virtualMcpServerType, {
        metadata: at(name),
        spec: { groupRef: { name: 'none' }, incomingAuth: { type: 'anonymous' }, ...spec },
      } as never)
    await standstill({ ...operator, namespaces: [namespace] })
    operator.calls.clear()
    await server('second', { compositeToolRefs: [{ name: 'shared' }] })
    await server('first', { config: { compositeToolRefs: [{ name: 'shared' }] } })
    await users(['first', 'second'])
    await admin.delete(virtualMcpServerType, at('first'))
    await users(['second'])
    await admin.patch(virtualMcpServerType, at('second'), { kind: 'merge', body: { spec: { compositeToolRefs: null } } })
    await users(undefined)
    const written = operator.calls.writes.filter(({ plural }) => plural === type.plural).map(({ name }) => name)
    expect(new Set(written)).toEqual(new Set(['shared']))
    await admin.delete(type, at('shared'))
    await eventually('it is gone', async () => (await admin.tryGet(type, at('shared'))) === undefined)
  })
})
