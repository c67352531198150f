import { type KubeClient, roleBindings, roles } from '@thv/kube'
import { type MCPRegistry, mcpRegistryType } from '@thv/resources/kinds/mcp-registry/schema'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, type OperatorUnderTest, startOperator } from '../../apps/operator/src/testing/operator-harness.ts'
import { type Manifest, put, typeOf } from '../../apps/registry/src/kubernetes/testing/cluster-world.ts'
import { startRegistryPod } from './export-world.ts'

/* MCPRegistry, operator and registry server together: annotations on resources become entries of the registry API. */

const annotation = (name: string) => `toolhive.stacklok.dev/${name}`
const exported = (url: string) => ({ [annotation('registry-export')]: 'true', [annotation('registry-url')]: url })

describeCluster('an MCPRegistry that exports the cluster', () => {
  let operator: OperatorUnderTest
  let admin: KubeClient
  let namespace: string
  let other: string
  let closed: string

  beforeAll(async () => {
    other = await testNamespace('export-other')
    closed = await testNamespace('export-closed')
    const own = await testNamespace('export')
    const env = { WATCH_NAMESPACE: `${own},${other},${closed}`, TOOLHIVE_REGISTRY_EXPORT_NAMESPACES: other }
    operator = await startOperator({ namespace: own, env, exportDebounceMs: 100 })
    ;({ admin, namespace } = operator)
  })
  afterAll(async () => await operator?.stop())

  const key = (name: string) => ({ namespace, name })
  const server = (name: string, annotations: Record<string, string>, place = namespace): Manifest => ({
    kind: 'MCPServer',
    metadata: { name, namespace: place, annotations },
    spec: { image: 'x.example/y:1', transport: 'sse' },
  })
  const entry = (name: string, place = namespace) => `dev.stacklok.toolhive/${place}.${name}`
  const registries: MCPRegistry['spec']['registries'] = [{ name: 'published', managed: {} }]
  const apply = async (name: string, spec: MCPRegistry['spec']) =>
    await admin.apply(mcpRegistryType, { metadata: key(name), spec } as MCPRegistry, { fieldManager: 'test', force: true })
  const condition = (name: string, reason: string) =>
    eventually(`RegistryExport of ${name} has the reason ${reason}`, async () => {
      const { status, metadata } = await admin.get(mcpRegistryType, key(name))
      const found = status?.conditions?.find(({ type }) => type === 'RegistryExport')
      if (status?.observedGeneration !== metadata.generation || found?.reason !== reason) throw new Error(JSON.stringify(status))
      return found
    })

  test('lists an annotated server of its own namespace, with rights there and nowhere else [000-001] [001-002]', async () => {
    await put(admin, server('shown', exported('https://shown.example/')))
    await put(admin, server('silent', {}))
    await put(admin, server('elsewhere', exported('https://elsewhere.example/'), closed))
    await apply('live', { registries, export: {} })
    const role = await eventually('the Role', () => admin.tryGet(roles, key('live-registry-export')))
    expect(role.metadata.ownerReferences).toMatchObject([{ kind: 'MCPRegistry', name: 'live' }])
    await using registry = await startRegistryPod(sharedCluster(), admin, key('live'))
    const servers = await registry.untilServers('the annotated server', (found) => entry('shown') in found)
    expect(Object.keys(servers)).toEqual([entry('shown')])
    expect(servers[entry('shown')]?.remotes).toEqual([{ type: 'sse', url: 'https://shown.example/' }])
    await admin.delete(typeOf(server('shown', {})), key('shown'))
    await registry.untilServers('no server', (found) => Object.keys(found).length === 0)
  })

  test('exports another namespace only as the administrator allows, and takes the rights back', async () => {
    await put(admin, server('neighbor', exported('https://neighbor.example/'), other))
    await apply('wide', { registries, export: { namespaces: [namespace, other] } })
    const foreign = { namespace: other, name: `${namespace}.wide.registry-export` }
    await eventually('the RoleBinding in the other namespace', () => admin.tryGet(roleBindings, foreign))
    {
      await using registry = await startRegistryPod(sharedCluster(), admin, key('wide'))
      const servers = await registry.untilServers('the server of the other namespace', (found) => entry('neighbor', other) in found)
      expect(servers[entry('neighbor', other)]?.remotes).toEqual([{ type: 'sse', url: 'https://neighbor.example/' }])
    }
    await apply('wide', { registries, export: { namespaces: [namespace, closed] } })
    expect((await condition('wide', 'ExportNamespaceNotAllowed')).message).toContain(closed)
    await eventually('no RoleBinding', async () => (await admin.tryGet(roleBindings, foreign)) === undefined)
    await eventually('no Role', async () => (await admin.tryGet(roles, foreign)) === undefined)
    expect(await admin.tryGet(roles, { ...foreign, namespace: closed })).toBeUndefined()

    await apply('wide', { registries, export: { namespaces: [other] } })
    await eventually('the RoleBinding again', () => admin.tryGet(roleBindings, foreign))
    await admin.delete(mcpRegistryType, key('wide'))
    await eventually('the registry is gone', async () => (await admin.tryGet(mcpRegistryType, key('wide'))) === undefined)
    expect(await admin.tryGet(roles, foreign)).toBeUndefined()
    expect(await admin.tryGet(roleBindings, foreign)).toBeUndefined()
  })
})
