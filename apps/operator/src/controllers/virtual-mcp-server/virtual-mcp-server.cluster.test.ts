import { configMaps, deployments, type KubeClient, type ResourceType, roles, secrets, serviceAccounts, services } from '@thv/kube'
import { type MCPGroup, mcpGroupType } from '@thv/resources/kinds/mcp-group/schema'
import { mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { virtualMcpCompositeToolDefinitionType } from '@thv/resources/kinds/virtual-mcp-composite-tool-definition/schema'
import { virtualMcpServerType as type } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { describeCluster } from '@thv/testkit/cluster/test-cluster'
import { readVmcpConfig } from '@thv/vmcpconfig/read-vmcp-config'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, type OperatorUnderTest, startOperator } from '../../testing/operator-harness.ts'
import { createFresh, removeLeft } from '../../testing/second-try.ts'
import { standstill } from '../../testing/standstill.ts'

const anonymous = { type: 'anonymous' }

describeCluster('VirtualMCPServer', () => {
  let operator: OperatorUnderTest
  let admin: KubeClient

  beforeAll(async () => {
    operator = await startOperator()
    ;({ admin } = operator)
    for (const group of ['desk', 'other']) await admin.create(mcpGroupType as ResourceType<MCPGroup>, { metadata: at(group) })
    for (const name of ['orders', 'parcels']) await member(name, 'desk')
  })
  afterAll(async () => await operator?.stop())

  const at = (name: string) => ({ namespace: operator.namespace, name })
  const member = async (name: string, group: string) =>
    await admin.create(mcpServerType, {
      metadata: at(name),
      spec: { image: 'example.test/server:1', transport: 'streamable-http', groupRef: { name: group } },
    } as never)
  const create = async (name: string, spec: object) =>
    await createFresh(admin, type, {
      metadata: at(name),
      spec: { incomingAuth: anonymous, outgoingAuth: { source: 'inline' }, ...spec },
    } as never)
  const hasReason = async (name: string, condition: string, reason: string) =>
    await eventually(`${condition} of ${name} is ${reason}`, async () => {
      const { status } = await admin.get(type, at(name))
      const found = status?.conditions?.find((each) => each.type === condition)
      if (found?.reason !== reason) throw new Error(JSON.stringify(status))
      return found
    })
  const configOf = async (name: string) => {
    const { data } = await admin.get(configMaps, at(`${name}-vmcp-config`))
    const read = readVmcpConfig(data?.['config.yaml'] ?? '')
    if (!read.ok) throw new Error(JSON.stringify(read.problems))
    return read.config
  }
  const quiet = async () => await standstill({ ...operator, namespaces: [operator.namespace] })
  const reconciles = () => operator.reconciled.filter((each) => each.startsWith('virtualmcpserver '))

  test('becomes a Deployment, a Service, an alias, a file and a seal, and no StatefulSet [002-030] [002-165]', async () => {
    await create('joined', { groupRef: { name: 'desk' } })
    await quiet()
    const { spec } = await eventually('there is a Deployment', async () => await admin.tryGet(deployments, at('joined')))
    const [container] = spec?.template?.spec?.containers ?? []
    expect(container).toMatchObject({
      name: 'vmcp',
      image: 'toolhive-test:1',
      command: ['vmcp'],
      args: ['serve', '--config=/etc/vmcp-config/config.yaml', '--host=0.0.0.0', '--port=4483'],
    })
    expect(spec?.template?.spec?.['automountServiceAccountToken']).toBe(true)
    expect((await configOf('joined')).backends).toMatchObject(
      ['orders', 'parcels'].map((name) => ({
        name,
        url: `http://mcp-${name}-proxy.${operator.namespace}.svc.cluster.local:8080/mcp`,
      })),
    )
    expect((await admin.get(services, at('vmcp-joined'))).spec?.ports).toMatchObject([{ name: 'http', port: 4483 }])
    expect((await admin.get(services, at('joined'))).spec?.type).toBe('ClusterIP')
    await admin.get(serviceAccounts, at('joined-vmcp'))
    // A server with inline backends reads nothing of others.
    const { rules = [] } = await admin.get(roles, at('joined-vmcp'))
    expect(rules.flatMap(({ resources = [] }) => resources)).not.toContain('secrets')
    expect(rules.flatMap(({ resources = [] }) => resources)).not.toContain('mcpservers')
    const { data } = await admin.get(secrets, at('joined-hmac-secret'))
    expect(Buffer.from(Buffer.from(data?.['hmac-secret'] ?? '', 'base64').toString(), 'base64')).toHaveLength(32)
    const { status } = await admin.get(type, at('joined'))
    expect(status).toMatchObject({
      phase: 'Pending',
      group: 'desk',
      url: `http://vmcp-joined.${operator.namespace}.svc.cluster.local:4483/mcp`,
    })
    await quiet()
    operator.calls.clear()
    for (const controller of operator.manager.controllers) controller.enqueue(at('joined'))
    await quiet()
    expect(operator.calls.writes).toEqual([])
  })

  test('a missing group is named, and found when it comes [002-041]', async () => {
    await removeLeft(admin, mcpServerType, at('late'))
    await removeLeft(admin, mcpGroupType, at('later'))
    await create('lonely', { groupRef: { name: 'later' } })
    expect(await hasReason('lonely', 'GroupRefValidated', 'GroupRefNotFound')).toMatchObject({ status: 'False' })
    await eventually('it is Failed', async () => (await admin.get(type, at('lonely'))).status?.phase === 'Failed')
    expect(await admin.tryGet(deployments, at('lonely'))).toBeUndefined()
    await admin.create(mcpGroupType as ResourceType<MCPGroup>, { metadata: at('later') })
    await hasReason('lonely', 'GroupRefValidated', 'GroupRefValid')
    // An empty group has nothing to serve; the first member begins it.
    await hasReason('lonely', 'BackendsDiscovered', 'BackendDiscoveryFailed')
    await eventually('it waits', async () => (await admin.get(type, at('lonely'))).status?.phase === 'Pending')
    await member('late', 'later')
    await hasReason('lonely', 'BackendsDiscovered', 'BackendsDiscoveredSuccessfully')
    await eventually('there is a Deployment', async () => await admin.tryGet(deployments, at('lonely')))
  })

  test('a missing composite definition is reported and the rest is served [002-042]', async () => {
    await removeLeft(admin, virtualMcpCompositeToolDefinitionType, at('answer'))
    await create('composed', { groupRef: { name: 'desk' }, compositeToolRefs: [{ name: 'answer' }] })
    expect(await hasReason('composed', 'CompositeToolRefsValidated', 'CompositeToolRefNotFound')).toMatchObject({ status: 'False' })
    await eventually('there is a Deployment', async () => await admin.tryGet(deployments, at('composed')))
    const spec = { name: 'answer', description: 'Answers.', steps: [{ id: 'one', tool: 'orders.find' }] }
    await admin.create(virtualMcpCompositeToolDefinitionType, { metadata: at('answer'), spec } as never)
    await hasReason('composed', 'CompositeToolRefsValidated', 'CompositeToolRefsValid')
    await eventually('the file has the tool', async () => (await configOf('composed')).compositeTools[0]?.name === 'answer')
  })

  test('a part that is not built stops the server and is named; without it the server runs', async () => {
    await create('asking', { groupRef: { name: 'desk' }, config: { optimizer: { embeddingService: 'http://vectors' } } })
    const { message } = await hasReason('asking', 'MiddlewareUnsupported', 'MiddlewareUnsupported')
    expect(message).toContain('spec.config.optimizer.embeddingService')
    await eventually('no pod may run', async () => (await admin.tryGet(deployments, at('asking')))?.spec?.replicas === 0)
    await admin.patch(type, at('asking'), { kind: 'merge', body: { spec: { config: null } } })
    await eventually('one pod may run', async () => (await admin.get(deployments, at('asking'))).spec?.replicas === 1)
  })

  test('variables of a pod template cause no drift, a wrong template is named, and kubectl scale sets the replicas', async () => {
    const template = (container: object) => ({ spec: { containers: [{ name: 'vmcp', ...container }] } })
    await create('patched', { groupRef: { name: 'desk' }, podTemplateSpec: template({ env: [{ name: 'EXTRA', value: '1' }] }) })
    await hasReason('patched', 'PodTemplateSpecValid', 'PodTemplateSpecValid')
    const found = await eventually('there is a Deployment', async () => await admin.tryGet(deployments, at('patched')))
    expect(found.spec?.template?.spec?.containers[0]?.['env']).toContainEqual({ name: 'EXTRA', value: '1' })
    await quiet()
    operator.calls.clear()
    for (const controller of operator.manager.controllers) controller.enqueue(at('patched'))
    await quiet()
    expect(operator.calls.writes).toEqual([])
    await admin.patch(type, at('patched'), { kind: 'merge', body: { spec: { replicas: 2 } } }, { subresource: 'scale' })
    await eventually('two pods may run', async () => (await admin.get(deployments, at('patched'))).spec?.replicas === 2)
    await admin.patch(type, at('patched'), { kind: 'merge', body: { spec: { podTemplateSpec: template({ env: 'none' }) } } })
    expect(await hasReason('patched', 'PodTemplateSpecValid', 'InvalidPodTemplateSpec')).toMatchObject({
      status: 'False',
      message: expect.stringContaining('spec.podTemplateSpec'),
    })
  })

  test('an object of somebody else is not taken over', async () => {
    await createFresh(admin, secrets, { metadata: at('robbed-hmac-secret'), stringData: { 'hmac-secret': 'theirs' } })
    await create('robbed', { groupRef: { name: 'desk' } })
    const { message } = await hasReason('robbed', 'NameConflict', 'NameTakenByOtherWorkload')
    expect(message).toContain('Secret robbed-hmac-secret')
    expect(await admin.tryGet(deployments, at('robbed'))).toBeUndefined()
    expect((await admin.get(secrets, at('robbed-hmac-secret'))).metadata.ownerReferences ?? []).toEqual([])
  })

  test('a change of a member wakes the virtual servers of its group and no others [002-173]', async () => {
    await create('bystander', { groupRef: { name: 'other' } })
    await hasReason('bystander', 'GroupRefValidated', 'GroupRefValid')
    await quiet()
    const before = reconciles().length
    // Another one than that of a first try.
    const proxyPort = ((await admin.get(mcpServerType, at('orders'))).spec.proxyPort ?? 9089) + 1
    await admin.patch(mcpServerType, at('orders'), { kind: 'merge', body: { spec: { proxyPort } } })
    await eventually('the file follows', async () => JSON.stringify((await configOf('joined')).backends).includes(`:${proxyPort}/mcp`))
    await quiet()
    const woken = new Set(reconciles().slice(before))
    expect(woken).toContain('virtualmcpserver joined')
    expect(woken).not.toContain('virtualmcpserver bystander')
    expect(woken).not.toContain('virtualmcpserver lonely')
  })
})
