import {
  configMaps,
  type Deployment,
  deployments,
  isInvalid,
  type KubeClient,
  type KubeObject,
  namespaces,
  type ResourceType,
  serviceAccounts,
  services,
} from '@thv/kube'
import { mcpRemoteProxyType } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import { mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { describeCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { failureLimit } from '../../testing/failure-limit.ts'
import { eventually, type OperatorUnderTest, startOperator } from '../../testing/operator-harness.ts'
import { type WorkloadSteps, workloadSteps } from '../../testing/workload-steps.ts'

const image = 'example.test/server:1'
const http = { image, transport: 'streamable-http' }

describeCluster('MCPServer in trouble', () => {
  let operator: OperatorUnderTest
  let admin: KubeClient
  let namespace: string
  let doomed: string
  let steps: WorkloadSteps

  beforeAll(async () => {
    namespace = await testNamespace('faults')
    doomed = await testNamespace('doomed')
    operator = await startOperator({ namespace, env: { WATCH_NAMESPACE: `${namespace},${doomed}` } })
    admin = operator.admin
    steps = workloadSteps(operator, 'MCPServer')
  })
  afterAll(async () => {
    await steps?.cleanUp()
    await operator?.stop()
  })

  const at = (name: string) => ({ namespace, name })
  const warnings = () => operator.log.filter((line) => line.includes('"a reconcile failed'))
  const gone = async (type: ResourceType, name: string) =>
    await eventually(`${type.kind} ${name} is gone`, async () => (await admin.tryGet(type, at(name))) === undefined)

  test.each([
    [
      'template',
      { podTemplateSpec: { spec: { containers: [{ name: 'mcp', resources: { limits: { cpu: 'lots' } } }] } } },
      'PodTemplateValid',
      'InvalidPodTemplateSpec',
    ],
    ['account', { podTemplateSpec: { spec: { serviceAccountName: 'mine' } } }, 'PodTemplateValid', 'InvalidPodTemplateSpec'],
    ['cedar', { authzConfig: { type: 'inline', inline: { policies: ['permit('] } } }, 'ConfigurationValid', 'AuthzPolicySyntaxInvalid'],
    ['group', { groupRef: 5 }, 'ConfigurationValid', 'InvalidSpec'],
  ])(
    'says what is wrong (%s), makes nothing, is mended by an edit, and can be deleted at any time [002-070] [002-200]',
    async (name, wrong, which, reason) => {
      const server = `wrong-${name}`
      await steps.create(server, { ...http, ...wrong })
      const told = await steps.hasReason(server, which, reason)
      expect(told.status).toBe('False')
      await steps.settled(server, 'Failed')
      expect(await steps.owned(server)).toEqual([])
      const mended = Object.fromEntries(Object.keys(wrong).map((key) => [key, null]))
      await steps.edit(server, mended)
      await steps.deployment(server)
      await steps.edit(server, wrong)
      await steps.hasReason(server, which, reason)
      await admin.delete(mcpServerType, at(server))
      await gone(mcpServerType, server)
    },
  )

  test('a CA bundle that is none is refused', async () => {
    await admin.create(configMaps, { metadata: at('no-bundle'), data: { 'ca.crt': 'not a certificate' } })
    const caBundleRef = { configMapRef: { name: 'no-bundle', key: 'ca.crt' } }
    await steps.create('pem', { ...http, oidcConfig: { type: 'inline', inline: { issuer: 'https://idp.example.com', caBundleRef } } })
    const told = await steps.hasReason('pem', 'CABundleRefValidated', 'CABundleRefInvalid')
    expect(told.message).not.toContain('not a certificate')
    await steps.settled('pem', 'Failed')
    expect(await steps.owned('pem')).toEqual([])
  })

  test('two spellings that differ, and names that no pod could have, do not get in', async () => {
    await expect(steps.create('twice', { image, proxyPort: 1000, port: 2000 })).rejects.toSatisfy(isInvalid)
    await expect(steps.create('x'.repeat(47), { image })).rejects.toSatisfy(isInvalid)
    await expect(steps.create('1st', { image })).rejects.toSatisfy(isInvalid)
    await steps.create('y'.repeat(46), { image })
    await steps.settled('y'.repeat(46), 'Pending')
  })

  const strangers: [string, ResourceType, string, object][] = [
    [
      'deployment',
      deployments,
      'x',
      {
        spec: {
          replicas: 0,
          selector: { matchLabels: { a: 'b' } },
          template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'example.test/c:1' }] } },
        },
      },
    ],
    ['account', serviceAccounts, 'x-proxy-runner', {}],
    ['service', services, 'mcp-x-proxy', { spec: { ports: [{ port: 80 }] } }],
    ['configmap', configMaps, 'x-runconfig', { data: { a: 'b' } }],
  ]
  test.each(strangers)('does not touch the %s of somebody else that has a name we need', async (kind, type, pattern, content) => {
    const server = `stranger-${kind}`
    const name = pattern.replace('x', server)
    const before = await admin.create(type, { metadata: at(name), ...content } as KubeObject)
    await steps.seen()
    await steps.create(server, http)
    const told = await steps.hasReason(server, 'NameConflict', 'NameTakenByOtherWorkload')
    expect(told.message).toContain(`${type.kind} ${name}`)
    await steps.settled(server, 'Failed')
    expect(await steps.owned(server)).toEqual([])
    const after = await admin.get(type, at(name))
    expect(after.metadata.generation).toBe(before.metadata.generation)
    expect(JSON.stringify(after.metadata)).not.toContain('toolhive.stacklok')
    expect(after.metadata.ownerReferences).toBeUndefined()
    await admin.delete(type, at(name))
    await steps.settled(server, 'Pending')
    expect(await steps.condition(server, 'NameConflict')).toBeUndefined()
  })

  test('a Service of somebody else with its name costs it the alias only', async () => {
    await admin.create(services, { metadata: at('aliased'), spec: { ports: [{ port: 80 }] } })
    await steps.seen()
    await steps.create('aliased', http)
    const told = await steps.hasReason('aliased', 'ServiceAliasSkipped', 'ServiceNameTaken')
    expect(told.message).toContain('mcp-aliased-proxy')
    await steps.deployment('aliased')
    expect((await admin.get(services, at('aliased'))).metadata.ownerReferences).toBeUndefined()
    await admin.delete(services, at('aliased'))
    await eventually('the alias is made', async () => (await admin.tryGet(services, at('aliased')))?.metadata.ownerReferences !== undefined)
    await eventually('nothing is said any more', async () => (await steps.condition('aliased', 'ServiceAliasSkipped')) === undefined)
    await steps.create('mcp-reserved', http)
    await steps.hasReason('mcp-reserved', 'ServiceAliasSkipped', 'ServiceNameReserved')
    expect(await admin.tryGet(services, at('mcp-reserved'))).toBeUndefined()
  })

  test('a namespace that goes takes its servers along without a storm of errors', async () => {
    for (let index = 0; index < 5; index++)
      await admin.create(mcpServerType, { metadata: { name: `s${index}`, namespace: doomed }, spec: { image } })
    await eventually('all report it', async () =>
      (await admin.list(mcpServerType, { namespace: doomed })).items.every(({ status }) => status?.phase === 'Pending'),
    )
    await steps.quiet()
    const before = warnings().length
    const began = performance.now()
    await admin.delete(namespaces, { name: doomed })
    await eventually('the namespace is gone', async () => (await admin.tryGet(namespaces, { name: doomed })) === undefined, 180_000)
    await steps.quiet()
    // Its Role goes with the namespace, perhaps first, so some calls are refused; they are tried again after ever longer times.
    const said = warnings().slice(before)
    expect(said.filter((line) => line.includes('being terminated'))).toEqual([])
    expect(said.length).toBeLessThanOrEqual(failureLimit(5, performance.now() - began))
  })

  test('the last of many quick edits is what counts', async () => {
    await steps.create('hasty', http)
    for (let tag = 2; tag <= 20; tag++) await steps.edit('hasty', { image: `example.test/server:${tag}`, proxyPort: 8000 + tag })
    const { url } = await steps.settled('hasty')
    await steps.quiet()
    expect(url).toMatch(/:8020\/mcp$/)
    expect(await steps.runConfig('hasty')).toMatchObject({ image: 'example.test/server:20', port: 8020 })
    const ports = (await steps.deployment('hasty')).spec?.template?.spec?.containers[0]?.['ports']
    expect(ports).toMatchObject([{ containerPort: 8020 }])
    expect((await admin.get(services, at('mcp-hasty-proxy'))).spec?.ports).toMatchObject([{ port: 8020 }])
  })

  test('somebody who writes the same status all the time does not keep it from being written [002-248]', async () => {
    await steps.create('contested', http)
    await steps.settled('contested')
    const stop = new AbortController()
    let writes = 0
    const storm = async () => {
      for (; !stop.signal.aborted; writes++) {
        const body = { status: { message: `storm ${writes}` } }
        await admin.patch(mcpServerType, at('contested'), { kind: 'merge', body }, { subresource: 'status' })
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    }
    const writers = [storm(), storm()]
    try {
      for (const port of [9001, 9002]) {
        await steps.edit('contested', { proxyPort: port })
        await eventually(`the URL has port ${port}`, async () => (await steps.get('contested')).status?.url?.endsWith(`:${port}/mcp`))
      }
    } finally {
      stop.abort()
      await Promise.all(writers)
    }
    expect(writes).toBeGreaterThan(10)
    // A status wakes no controller, so the message of the storm stays until something else happens.
    await steps.edit('contested', { proxyPort: 9006 })
    const { message } = await steps.settled('contested')
    expect(message).not.toContain('storm')
  })

  test('conditions of others in the status stay [002-248]', async () => {
    await steps.create('annexed', http)
    await steps.settled('annexed')
    await steps.quiet()
    const theirs = {
      type: 'example.com/Approved',
      status: 'True',
      reason: 'Approved',
      message: 'by them',
      lastTransitionTime: '2026-03-01T10:00:00Z',
    }
    await admin.patch(
      mcpServerType,
      at('annexed'),
      { kind: 'json', ops: [{ op: 'add', path: '/status/conditions/-', value: theirs }] },
      { subresource: 'status' },
    )
    await steps.edit('annexed', { proxyPort: 9100 })
    await steps.settled('annexed')
    expect(await steps.condition('annexed', 'example.com/Approved')).toMatchObject({ reason: 'Approved' })
  })

  test('an operator that ends between a closing RunConfig and its Deployment still rolls without overlap', async () => {
    const own = await testNamespace('halfway')
    let isDying = false
    const dying = await startOperator({
      namespace: own,
      beforeCall({ plural, verb }) {
        if (isDying && plural === 'deployments' && verb !== 'get') throw new Error('killed')
      },
    })
    const before = workloadSteps(dying, 'MCPServer')
    const strategy = async () => (await before.deployment('halfway')).spec?.['strategy']
    await before.create('halfway', http)
    await before.settled('halfway', 'Pending')
    expect(await strategy()).toMatchObject({ type: 'RollingUpdate' })
    isDying = true
    await before.edit('halfway', { tools: ['echo'] })
    await eventually('the RunConfig is closed', async () => JSON.stringify(await before.runConfig('halfway')).includes('tools_filter'))
    expect(await strategy()).toMatchObject({ type: 'RollingUpdate' })
    await dying.stop()
    const applied: unknown[] = []
    const next = await startOperator({
      namespace: own,
      beforeCall({ plural, verb }, sent) {
        if (plural === 'deployments' && verb === 'apply') applied.push((sent as Deployment).spec?.['strategy'])
      },
    })
    const after = workloadSteps(next, 'MCPServer')
    try {
      await eventually('the Deployment is applied', async () => applied.length > 0)
      expect(applied[0]).toEqual({ type: 'Recreate' })
    } finally {
      await after.cleanUp()
      await next.stop()
    }
  })

  test('of an MCPServer and an MCPRemoteProxy with one name the first has it; the second comes up when the first goes', async () => {
    await steps.create('both', http)
    await steps.settled('both', 'Pending')
    const remote = workloadSteps(operator, 'MCPRemoteProxy')
    await steps.seen()
    await remote.create('both', { remoteUrl: 'https://mcp.example.com/mcp' })
    const told = await remote.hasReason('both', 'NameConflict', 'NameTakenByOtherWorkload')
    expect(told).toMatchObject({ status: 'True', message: expect.stringContaining('MCPServer both') })
    await remote.settled('both', 'Failed')
    expect(await remote.owned('both')).toEqual([])
    expect(await steps.condition('both', 'NameConflict')).toBeUndefined()
    await admin.delete(mcpServerType, at('both'))
    await remote.settled('both', 'Pending')
    expect(await remote.condition('both', 'NameConflict')).toBeUndefined()
    expect((await steps.deployment('both')).metadata.ownerReferences?.[0]?.kind).toBe('MCPRemoteProxy')
    await admin.delete(mcpRemoteProxyType, at('both'))
  })
})
