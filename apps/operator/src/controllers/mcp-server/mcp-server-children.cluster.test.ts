import {
  configMaps,
  deployments,
  type KubeClient,
  type KubeObject,
  networkPolicies,
  type ResourceType,
  roleBindings,
  roles,
  services,
} from '@thv/kube'
import { MCP_SERVER_FINALIZER } from '@thv/resources/kinds/mcp-server/constants'
import { type MCPServer, mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { describeCluster } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, type OperatorUnderTest, startOperator } from '../../testing/operator-harness.ts'
import { OWNED_TYPES, type WorkloadSteps, workloadSteps } from '../../testing/workload-steps.ts'

const image = 'example.test/server:1'
const http = { image, transport: 'streamable-http' }

describeCluster('the children of an MCPServer', () => {
  let operator: OperatorUnderTest
  let admin: KubeClient
  let namespace: string
  let steps: WorkloadSteps

  beforeAll(async () => {
    operator = await startOperator()
    ;({ admin, namespace } = operator)
    steps = workloadSteps(operator, 'MCPServer')
  })
  afterAll(async () => {
    await steps?.cleanUp()
    await operator?.stop()
  })

  const at = (name: string) => ({ namespace, name })
  const gone = async (type: ResourceType, name: string) =>
    await eventually(`${type.kind} ${name} is gone`, async () => (await admin.tryGet(type, at(name))) === undefined)

  test('children that are deleted come back [002-197]', async () => {
    await steps.create('robbed', { ...http, permissionProfile: { type: 'builtin', name: 'none' } })
    await steps.settled('robbed')
    const before = await steps.owned('robbed')
    const shape = (objects: readonly KubeObject[]) => objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    expect(before.length).toBeGreaterThan(4)
    for (const object of before) {
      const type = OWNED_TYPES.find(({ kind }) => kind === object.kind)
      if (type) await admin.delete(type, at(object.metadata.name))
    }
    await eventually('all are back', async () => {
      const now = await steps.owned('robbed')
      const old = new Set(before.map(({ metadata }) => metadata.uid))
      return now.every(({ metadata }) => !old.has(metadata.uid)) && JSON.stringify(shape(now)) === JSON.stringify(shape(before))
    })
    await steps.settled('robbed', 'Pending')
  })

  test('children that are edited are put right; what others added stays [002-198]', async () => {
    await steps.create('meddled', { ...http, replicas: 1 })
    await steps.settled('meddled')
    await steps.quiet()
    const ours = await steps.template('meddled')
    const foreign = { metadata: { labels: { 'example.com/team': 'a' }, annotations: { 'example.com/note': 'theirs' } } }
    const container = { name: 'toolhive', image: 'example.test/evil:1', env: [{ name: 'THEIRS', value: '1' }] }
    await admin.patch(deployments, at('meddled'), {
      kind: 'strategic',
      body: { ...foreign, spec: { replicas: 7, template: { ...foreign, spec: { priority: null, containers: [container] } } } },
    })
    await eventually('the image and the number are ours', async () => {
      const { spec } = await steps.deployment('meddled')
      return spec?.replicas === 1 && spec.template?.spec?.containers[0]?.image === 'toolhive-test:1'
    })
    const healed = await steps.deployment('meddled')
    expect(healed.metadata).toMatchObject(foreign.metadata)
    expect(healed.spec?.template?.metadata).toMatchObject(foreign.metadata)
    expect(healed.spec?.template?.spec?.containers[0]?.['env']).toContainEqual({ name: 'THEIRS', value: '1' })
    expect(ours).not.toContain('THEIRS')

    await admin.patch(configMaps, at('meddled-runconfig'), { kind: 'merge', body: { data: { 'runconfig.json': '{}', theirs: 'x' } } })
    await eventually('the RunConfig is ours', async () => (await steps.runConfig('meddled'))['image'] === image)
    expect((await admin.get(configMaps, at('meddled-runconfig'))).data).toMatchObject({ theirs: 'x' })

    await admin.patch(services, at('mcp-meddled-proxy'), { kind: 'merge', body: { spec: { selector: { app: 'evil' } } } })
    await eventually(
      'the selector is ours',
      async () => (await admin.get(services, at('mcp-meddled-proxy'))).spec?.selector?.['app'] === 'mcpserver',
    )

    // Without our label the cache no longer keeps it whole.
    await admin.patch(deployments, at('meddled'), { kind: 'merge', body: { metadata: { labels: { toolhive: null } } } })
    await eventually('the label is back', async () => (await steps.deployment('meddled')).metadata.labels?.['toolhive'] === 'true')
    await admin.patch(configMaps, at('meddled-runconfig'), {
      kind: 'merge',
      body: { metadata: { labels: { 'toolhive.stacklok.io/managed-by': null } } },
    })
    await eventually('that label is back', async () => {
      const { labels } = (await admin.get(configMaps, at('meddled-runconfig'))).metadata
      return labels?.['toolhive.stacklok.io/managed-by'] === 'toolhive-operator'
    })
  })

  test('its deletion takes all children along, and a finalizer that another operator left [002-201]', async () => {
    await steps.create('over', { ...http, permissionProfile: { type: 'builtin', name: 'none' } }, { finalizers: [MCP_SERVER_FINALIZER] })
    await steps.settled('over')
    const children = await steps.owned('over')
    expect(children.length).toBe(9)
    await admin.delete(mcpServerType, at('over'))
    await gone(mcpServerType, 'over')
    for (const { kind, metadata } of children) {
      const type = OWNED_TYPES.find((each) => each.kind === kind)
      if (type) await gone(type, metadata.name)
    }
    await steps.quiet()
    expect(await admin.tryGet(deployments, at('over'))).toBeUndefined()
  })

  test('one whose deletion others hold up makes nothing any more and says that it goes [002-071]', async () => {
    await steps.create('held', http, { finalizers: ['example.com/hold'] })
    await steps.settled('held')
    await admin.delete(mcpServerType, at('held'))
    await eventually('it says so', async () => (await steps.get('held')).status?.phase === 'Terminating')
    await admin.delete(deployments, at('held'))
    await gone(deployments, 'held')
    await steps.quiet()
    expect(await admin.tryGet(deployments, at('held'))).toBeUndefined()
    await admin.patch(mcpServerType, at('held'), { kind: 'merge', body: { metadata: { finalizers: null } } })
    await gone(mcpServerType, 'held')
  })

  test('manual changes of Roles, NetworkPolicies and Services are reverted', async () => {
    await admin.create(configMaps, { metadata: at('narrow'), data: { p: '{"network": {"outbound": {"allow_port": [443]}}}' } })
    await steps.create('narrow', { ...http, permissionProfile: { type: 'configmap', name: 'narrow', key: 'p' } })
    await steps.settled('narrow')
    await steps.quiet()
    const spec = async () => ({
      role: (await admin.get(roles, at('narrow-proxy-runner'))).rules,
      binding: (await admin.get(roleBindings, at('narrow-proxy-runner'))).subjects,
      policy: (await admin.get(networkPolicies, at('narrow-mcp'))).spec,
      service: (await admin.get(services, at('mcp-narrow-proxy'))).spec?.selector,
      alias: (await admin.get(services, at('narrow'))).spec?.selector,
    })
    const before = await spec()
    const add = async (type: ResourceType, name: string, path: string, value: unknown) =>
      await admin.patch(type, at(name), { kind: 'json', ops: [{ op: 'add', path, value }] })
    await add(roles, 'narrow-proxy-runner', '/rules/-', { apiGroups: [''], resources: ['secrets'], verbs: ['get'] })
    await add(roleBindings, 'narrow-proxy-runner', '/subjects/-', { kind: 'ServiceAccount', name: 'default', namespace })
    await add(networkPolicies, 'narrow-mcp', '/spec/egress/0/ports/-', { protocol: 'TCP', port: 22 })
    await add(services, 'mcp-narrow-proxy', '/spec/selector/evil', 'yes')
    await add(services, 'narrow', '/spec/selector/evil', 'yes')
    await eventually('all is as before', async () => JSON.stringify(await spec()) === JSON.stringify(before))
    await add(networkPolicies, 'narrow-mcp', '/spec/egress/-', {})
    await add(networkPolicies, 'narrow-mcp', '/spec/podSelector/matchLabels/evil', 'yes')
    await eventually('all is as before again', async () => JSON.stringify(await spec()) === JSON.stringify(before))
    await steps.quiet()
    operator.calls.clear()
    for (const controller of operator.manager.controllers) controller.enqueue(at('narrow'))
    await steps.quiet()
    expect(operator.calls.writes).toEqual([])
  })

  test('fields removed from the spec are removed from them', async () => {
    const full = {
      resources: { limits: { cpu: '1', memory: '1Gi' } },
      serviceType: 'LoadBalancer',
      sessionAffinity: 'None',
      resourceOverrides: {
        proxyDeployment: {
          labels: { team: 'a' },
          annotations: { note: 'a' },
          env: [{ name: 'EXTRA', value: '1' }],
          imagePullSecrets: [{ name: 'registry' }],
          podTemplateMetadataOverrides: { labels: { zone: 'a' }, annotations: { zone: 'a' } },
        },
        proxyService: { labels: { team: 'a' }, annotations: { note: 'a' } },
      },
    }
    await steps.create('plain', http)
    await steps.settled('plain')
    await steps.quiet()
    /** The number that tells newer pods from older ones only ever rises. */
    const objects = async () => (await steps.golden('plain')).replaceAll(/generation": "?\d+"?/g, 'generation')
    const before = await objects()
    await steps.edit('plain', full)
    await steps.settled('plain')
    expect(await objects()).toContain('EXTRA')
    await steps.edit('plain', Object.fromEntries(Object.keys(full).map((field) => [field, null])))
    await steps.settled('plain')
    await steps.quiet()
    expect(await objects()).toBe(before)
  })

  test('a server that is made again at once under its name gets children of its own', async () => {
    const first = await steps.create('again', http)
    await steps.settled('again')
    await admin.delete(mcpServerType, at('again'))
    const second = await steps.create('again', { ...http, proxyPort: 9000 })
    const { url } = await steps.settled('again', 'Pending')
    expect(url).toContain(':9000/')
    const { ownerReferences } = (await steps.deployment('again')).metadata
    expect(ownerReferences?.map(({ uid }) => uid)).toEqual([second.metadata.uid])
    expect(second.metadata.uid).not.toBe(first.metadata.uid)
    expect(await steps.condition('again', 'NameConflict')).toBeUndefined()
  })

  test('an object of the older API version is served alike', async () => {
    const older = { ...mcpServerType, version: 'v1alpha1' } as ResourceType<MCPServer>
    await admin.create(older, { metadata: at('older'), spec: { image, port: 9000, groupRef: 'g' } } as MCPServer)
    const { url } = await steps.settled('older', 'Pending')
    expect(url).toContain(':9000/mcp')
  })

  test('its deletion in the foreground waits for its children, which do not come back', async () => {
    await steps.create('front', http)
    await steps.settled('front')
    const children = await steps.owned('front')
    await steps.quiet()
    await admin.delete(mcpServerType, at('front'), { propagationPolicy: 'Foreground' })
    await gone(mcpServerType, 'front')
    await steps.quiet()
    for (const { kind, metadata } of children) {
      const type = OWNED_TYPES.find((each) => each.kind === kind)
      if (type) expect(await admin.tryGet(type, at(metadata.name))).toBeUndefined()
    }
  })
})
