import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { deployments, type KubeClient, networkPolicies, type ResourceType, secrets, serviceAccounts, services } from '@thv/kube'
import { MCPServerAnnotation } from '@thv/resources/kinds/mcp-server/constants'
import { mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { type MCPToolConfig, mcpToolConfigType } from '@thv/resources/kinds/mcp-tool-config/schema'
import { describeCluster, sharedCluster } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, type OperatorUnderTest, startOperator } from '../../testing/operator-harness.ts'
import { OWNED_TYPES, type WorkloadSteps, workloadSteps } from '../../testing/workload-steps.ts'

const image = 'example.test/server:1'
const http = { image, transport: 'streamable-http' }

describeCluster('MCPServer', () => {
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
  const generationOf = async (name: string) => (await steps.deployment(name)).metadata.generation
  /** Made, with one proxy pod, and nothing left to do. */
  const running = async (name: string, spec: object) => {
    await steps.create(name, spec)
    await steps.settled(name)
    const pod = await steps.onePod(name)
    await steps.quiet()
    return pod.metadata.name
  }

  test('makes everything that a server needs, with at most 12 requests until it has told so [002-011] [002-012] [002-013]', async () => {
    operator.calls.clear()
    await steps.create('minimal', { image })
    const status = await steps.settled('minimal', 'Pending')
    expect(status.url).toBe(`http://mcp-minimal-proxy.${namespace}.svc.cluster.local:8080/mcp`)
    const calls = operator.calls.all.filter(({ plural }) => plural !== 'events')
    const told = calls.findIndex(({ subresource }) => subresource === 'status')
    expect(told).toBeGreaterThan(0)
    expect(told + 1).toBeLessThanOrEqual(12)
    expect((await steps.owned('minimal')).map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
      'ConfigMap minimal-runconfig',
      'Deployment minimal',
      'Role minimal-proxy-runner',
      'RoleBinding minimal-proxy-runner',
      'Service mcp-minimal-proxy',
      'Service minimal',
      'ServiceAccount minimal-proxy-runner',
      'ServiceAccount minimal-sa',
    ])
    // The Deployment's pods could start as soon as it is there, so it comes last of what they need.
    const order = operator.calls.writes.map(({ plural }) => plural)
    for (const needed of ['serviceaccounts', 'roles', 'rolebindings', 'configmaps'])
      expect(order.lastIndexOf(needed)).toBeLessThan(order.indexOf('deployments'))
  })

  test('needs at most 12 requests for each of many servers, all that follows included', async () => {
    operator.calls.clear()
    const names = Array.from({ length: 10 }, (_, index) => `many-${index}`)
    await Promise.all(names.map((name) => steps.create(name, http)))
    for (const name of names) await steps.onePod(name)
    await steps.quiet()
    const calls = operator.calls.all.filter(({ plural }) => plural !== 'events')
    // Our own controllers take their steps so fast that the operator sees, and tells, each by itself.
    expect(calls.length / names.length).toBeLessThanOrEqual(sharedCluster().plane === 'embedded' ? 16 : 12)
    for (const name of names) await admin.delete(mcpServerType, at(name))
    await steps.quiet()
  })

  const golden = (name: string) => fileURLToPath(new URL(`./live-${name}.golden.json`, import.meta.url))

  test.each([
    ['stdio', { image }],
    ['sse', { image, transport: 'sse', proxyPort: 9090, mcpPort: 3000, serviceType: 'NodePort' }],
    [
      'streamable-http',
      {
        ...http,
        proxyPort: 8081,
        mcpPort: 9000,
        args: ['--verbose'],
        env: [{ name: 'LOG_LEVEL', value: 'debug' }],
        secrets: [{ name: 'weather', key: 'token', targetEnvName: 'API_TOKEN' }],
        resources: { limits: { cpu: '1000m', memory: '256Mi' } },
        permissionProfile: { type: 'builtin', name: 'none' },
        podTemplateSpec: { spec: { nodeSelector: { disk: 'fast' }, containers: [{ name: 'mcp', resources: { limits: { cpu: 1 } } }] } },
        resourceOverrides: {
          proxyDeployment: {
            labels: { team: 'weather' },
            annotations: { note: 'ours' },
            env: [{ name: 'HTTP_PROXY', value: 'http://proxy.example.com' }],
            imagePullSecrets: [{ name: 'registry' }],
            podTemplateMetadataOverrides: { labels: { zone: 'a' } },
          },
          proxyService: { annotations: { 'example.com/lb': 'internal' } },
        },
        toolConfigRef: { name: 'tools' },
        replicas: 2,
        backendReplicas: 2,
      },
    ],
  ])('all that a %s server has in the cluster is as its golden file says', async (name, spec) => {
    if (name === 'streamable-http') {
      await admin.create(secrets, { metadata: at('weather'), data: { token: 'c2VjcmV0' } })
      await admin.create(mcpToolConfigType as ResourceType<MCPToolConfig>, { metadata: at('tools'), spec: { toolsFilter: ['forecast'] } })
    }
    await steps.create(`golden-${name}`, spec)
    await steps.settled(`golden-${name}`)
    await steps.quiet()
    await expect(await steps.golden(`golden-${name}`)).toMatchFileSnapshot(golden(name))
  })

  test('a look at everything again writes nothing [002-196] [002-249]', async () => {
    await steps.quiet()
    operator.calls.clear()
    const objects = (await admin.list(mcpServerType, { namespace })).items
    const before = reconciles()
    for (const { metadata } of objects) {
      for (const controller of operator.manager.controllers) controller.enqueue(at(metadata.name))
    }
    // And as others touch what belongs to them.
    for (const type of OWNED_TYPES) {
      const touched = (await admin.list(type, { namespace })).items.find(({ metadata }) => metadata.ownerReferences !== undefined)
      if (touched) {
        const body = { metadata: { labels: { 'example.com/touched': 'yes' } } }
        await admin.patch(type, at(touched.metadata.name), { kind: 'merge', body })
      }
    }
    await steps.quiet()
    expect(reconciles() - before).toBeGreaterThan(objects.length)
    expect(operator.calls.writes).toEqual([])
  })

  test('creating, changing or deleting a server reconciles that server and no other [002-193]', async () => {
    for (const name of ['queued', 'bystander']) await running(name, http)
    const afterwards = async (change: () => Promise<unknown>) => {
      operator.reconciled.length = 0
      await change()
      await eventually('a reconcile', async () => operator.reconciled.length > 0)
      await steps.quiet()
      return new Set(operator.reconciled.filter((each) => each.startsWith('mcpserver ')))
    }
    expect(await afterwards(() => steps.create('newcomer', http))).toEqual(new Set(['mcpserver newcomer']))
    expect(await afterwards(() => steps.edit('queued', { args: ['--changed'] }))).toEqual(new Set(['mcpserver queued']))
    expect(await afterwards(() => admin.delete(mcpServerType, at('newcomer')))).toEqual(new Set(['mcpserver newcomer']))
  })

  const reconciles = () => operator.manager.controllers.reduce((sum, { stats }) => sum + stats.reconciles, 0)

  test('a new image and new variables reach the RunConfig and replace the pods', async () => {
    const pod = await running('edited', http)
    await steps.edit('edited', { image: 'example.test/server:2', env: [{ name: 'LEVEL', value: 'debug' }] })
    await eventually('another pod', async () => (await steps.proxyPods('edited')).some(({ metadata }) => metadata.name !== pod))
    expect(await steps.runConfig('edited')).toMatchObject({
      image: 'example.test/server:2',
      env_vars: { LEVEL: 'debug' },
      mcpserver_generation: 2,
    })
  })

  test('the URL, the Services and the container follow the port [002-207]', async () => {
    await running('ported', http)
    await steps.edit('ported', { proxyPort: 9191 })
    const { url } = await steps.settled('ported')
    expect(url).toBe(`http://mcp-ported-proxy.${namespace}.svc.cluster.local:9191/mcp`)
    for (const name of ['ported', 'mcp-ported-proxy']) {
      const { spec } = await admin.get(services, at(name))
      expect(spec?.ports).toMatchObject([{ port: 9191, targetPort: 9191 }])
      expect(spec?.ports).toHaveLength(1)
    }
    const ports = (await steps.deployment('ported')).spec?.template?.spec?.containers[0]?.['ports']
    expect(ports).toEqual([{ name: 'http', containerPort: 9191, protocol: 'TCP' }])
  })

  test('the strategy follows the transport in both directions', async () => {
    const strategy = async (expected: object) =>
      await eventually(`the strategy is ${JSON.stringify(expected)}`, async () =>
        isDeepStrictEqual((await steps.deployment('turned')).spec?.['strategy'], expected),
      )
    await running('turned', { image })
    await strategy({ type: 'Recreate' })
    await steps.edit('turned', { transport: 'streamable-http' })
    await steps.settled('turned')
    await strategy({ type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } })
    await steps.edit('turned', { transport: 'sse' })
    const { url } = await steps.settled('turned')
    expect(url).toMatch(/:8080\/sse#turned$/)
    await steps.edit('turned', { transport: 'stdio' })
    await steps.settled('turned')
    await strategy({ type: 'Recreate' })
    expect(await steps.runConfig('turned')).toMatchObject({ transport: 'stdio' })
  })

  test('replicas, group and Service type change without a new pod [002-209]', async () => {
    const pod = await running('calm', http)
    const template = await steps.template('calm')
    await steps.edit('calm', { groupRef: { name: 'missing' } })
    await steps.settled('calm')
    await steps.edit('calm', { serviceType: 'NodePort' })
    await steps.settled('calm')
    await steps.edit('calm', { replicas: 2 })
    await steps.settled('calm')
    await eventually('two pods', async () => (await steps.proxyPods('calm')).length === 2)
    expect((await admin.get(services, at('mcp-calm-proxy'))).spec?.type).toBe('NodePort')
    expect((await admin.get(services, at('calm'))).spec?.type).toBe('ClusterIP')
    expect(await steps.template('calm')).toBe(template)
    expect((await steps.proxyPods('calm')).map(({ metadata }) => metadata.name)).toContain(pod)
  })

  test('a permission profile comes with its NetworkPolicy, before the pods it is for, and goes with it [002-199]', async () => {
    await running('closed', http)
    operator.calls.clear()
    await steps.edit('closed', { permissionProfile: { type: 'builtin', name: 'none' } })
    await steps.settled('closed')
    const policy = await admin.get(networkPolicies, at('closed-mcp'))
    expect(policy.spec?.egress).toBeUndefined()
    const order = operator.calls.writes.map(({ plural }) => plural)
    expect(order.indexOf('networkpolicies')).toBeGreaterThanOrEqual(0)
    expect(order.indexOf('networkpolicies')).toBeLessThan(order.indexOf('deployments'))
    await steps.edit('closed', { permissionProfile: null })
    await eventually('it is gone', async () => (await admin.tryGet(networkPolicies, at('closed-mcp'))) === undefined)
  })

  test('an account of the user takes the place of ours [002-212]', async () => {
    await running('accounted', http)
    await admin.get(serviceAccounts, at('accounted-sa'))
    await steps.edit('accounted', { serviceAccount: 'default' })
    await eventually('ours is gone', async () => (await admin.tryGet(serviceAccounts, at('accounted-sa'))) === undefined)
    expect(await steps.runConfig('accounted')).toMatchObject({ k8s_pod_template_patch: { spec: { serviceAccountName: 'default' } } })
    await steps.edit('accounted', { serviceAccount: null })
    await eventually('ours is back', () => admin.tryGet(serviceAccounts, at('accounted-sa')))
  })

  test('is scaled through its scale subresource [004-076]', async () => {
    await running('scaled', http)
    const template = await steps.template('scaled')
    await admin.patch(mcpServerType, at('scaled'), { kind: 'merge', body: { spec: { replicas: 3 } } }, { subresource: 'scale' })
    await eventually('three pods', async () => (await steps.proxyPods('scaled')).length === 3)
    await eventually('the status counts them', async () => (await steps.get('scaled')).status?.replicas === 3)
    const scale = (await admin.raw('GET', `/apis/toolhive.stacklok.dev/v1beta1/namespaces/${namespace}/mcpservers/scaled/scale`)).json()
    expect(scale).toMatchObject({
      spec: { replicas: 3 },
      status: { replicas: 3, selector: expect.stringContaining('toolhive-name=scaled') },
    })
    expect(await steps.template('scaled')).toBe(template)
    await admin.patch(mcpServerType, at('scaled'), { kind: 'merge', body: { spec: { replicas: 0 } } }, { subresource: 'scale' })
    await steps.settled('scaled', 'Stopped')
    await eventually('no pod', async () => (await steps.proxyPods('scaled')).length === 0)
  })

  test('leaves the number of pods to autoscalers and kubectl scale', async () => {
    await running('autoscaled', http)
    await admin.patch(deployments, at('autoscaled'), { kind: 'merge', body: { spec: { replicas: 4 } } }, { subresource: 'scale' })
    await steps.quiet()
    await steps.edit('autoscaled', { image: 'example.test/server:2' })
    await steps.settled('autoscaled')
    await steps.quiet()
    expect((await steps.deployment('autoscaled')).spec?.replicas).toBe(4)
  })

  test('runs one proxy of a stdio server, whatever is asked for, and says so', async () => {
    await steps.create('capped', { image, replicas: 3 })
    const capped = await steps.hasReason('capped', 'StdioReplicaCapped', 'StdioTransportCapAt1')
    expect(capped).toMatchObject({ status: 'True', message: expect.stringContaining('3 proxy pods') })
    expect((await steps.deployment('capped')).spec?.replicas).toBe(1)
    await steps.edit('capped', { transport: 'streamable-http' })
    await steps.hasReason('capped', 'StdioReplicaCapped', 'StdioReplicaCapNotActive')
    expect((await steps.deployment('capped')).spec?.replicas).toBe(3)
    await steps.edit('capped', { transport: 'stdio', replicas: null })
    await steps.settled('capped')
    await admin.patch(deployments, at('capped'), { kind: 'merge', body: { spec: { replicas: 5 } } }, { subresource: 'scale' })
    await eventually('it is put back', async () => (await steps.deployment('capped')).spec?.replicas === 1)
  })

  test('restarts when the annotation says so, once for each value', async () => {
    await running('restarted', http)
    const generation = (await generationOf('restarted')) ?? 0
    await steps.annotate('restarted', { [MCPServerAnnotation.restartedAt]: 'yesterday' })
    await steps.quiet()
    expect(await generationOf('restarted')).toBe(generation)
    const time = '2026-03-01T10:00:00Z'
    await steps.annotate('restarted', { [MCPServerAnnotation.restartedAt]: time })
    await eventually('a new template', async () => (await generationOf('restarted')) === generation + 1)
    await steps.quiet()
    expect(await generationOf('restarted')).toBe(generation + 1)
    const annotations = (await steps.deployment('restarted')).spec?.template?.metadata?.annotations
    expect(annotations).toMatchObject({ [MCPServerAnnotation.restartedAt]: time })
  })

  test('an immediate restart deletes the old pods and leaves the new ones alone', async () => {
    const pod = await running('hurried', http)
    await steps.sayOfPod(await steps.onePod('hurried'), { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] })
    operator.calls.clear()
    await steps.annotate('hurried', {
      [MCPServerAnnotation.restartedAt]: '2026-03-01T10:00:00Z',
      [MCPServerAnnotation.restartStrategy]: 'immediate',
    })
    await eventually('the old one is gone', async () => !(await steps.proxyPods('hurried')).some(({ metadata }) => metadata.name === pod))
    // The Deployment has the old one replaced by its like until the new one is ready, which it never is here: those are left alone.
    await steps.quiet()
    expect(operator.calls.writes.filter(({ plural }) => plural === 'pods')).toEqual([{ verb: 'delete', plural: 'pods', name: pod }])
  })
})
