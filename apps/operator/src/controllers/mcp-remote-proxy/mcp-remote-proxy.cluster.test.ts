import { rootCertificates } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { configMaps, deployments, type KubeClient, type ResourceType, secrets, serviceAccounts } from '@thv/kube'
import { type MCPExternalAuthConfig, mcpExternalAuthConfigType } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { mcpRemoteProxyType } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import { type MCPToolConfig, mcpToolConfigType } from '@thv/resources/kinds/mcp-tool-config/schema'
import { describeCluster } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, type OperatorUnderTest, startOperator } from '../../testing/operator-harness.ts'
import { type WorkloadSteps, workloadSteps } from '../../testing/workload-steps.ts'

const remoteUrl = 'https://mcp.example.com/mcp'

describeCluster('MCPRemoteProxy', () => {
  let operator: OperatorUnderTest
  let admin: KubeClient
  let namespace: string
  let steps: WorkloadSteps

  beforeAll(async () => {
    operator = await startOperator()
    ;({ admin, namespace } = operator)
    steps = workloadSteps(operator, 'MCPRemoteProxy')
  })
  afterAll(async () => {
    await steps?.cleanUp()
    await operator?.stop()
  })

  const at = (name: string) => ({ namespace, name })
  const golden = (name: string) => fileURLToPath(new URL(`./live-${name}.golden.json`, import.meta.url))
  const putConfigMap = async (name: string, data: Record<string, string>) =>
    await admin.apply(configMaps, { metadata: at(name), data }, { fieldManager: 'test', force: true })

  test('makes what a proxy needs, with at most 12 requests, and no right on anything [002-029] [002-108] [002-113]', async () => {
    operator.calls.clear()
    await steps.create('minimal', { remoteUrl })
    const status = await steps.settled('minimal', 'Pending')
    expect(status.url).toBe(`http://mcp-minimal-remote-proxy.${namespace}.svc.cluster.local:8080/mcp`)
    await steps.onePod('minimal')
    await steps.quiet()
    expect(operator.calls.all.filter(({ plural }) => plural !== 'events').length).toBeLessThanOrEqual(12)
    expect((await steps.owned('minimal')).map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
      'ConfigMap minimal-runconfig',
      'Deployment minimal',
      'Service mcp-minimal-remote-proxy',
      'Service minimal',
      'ServiceAccount minimal-remote-proxy-runner',
    ])
    const open = await steps.condition('minimal', 'Authenticated')
    expect(open).toMatchObject({ status: 'False', reason: 'NoIncomingAuth' })
    await eventually('people are warned', async () =>
      (await steps.eventsOf('minimal')).some(({ type, reason }) => type === 'Warning' && reason === 'NoIncomingAuth'),
    )
    await expect(await steps.golden('minimal')).toMatchFileSnapshot(golden('minimal'))
  })

  test('all that a full one has in the cluster is as its golden file says', async () => {
    await admin.create(secrets, { metadata: at('key'), data: { value: 'c2VjcmV0' } })
    await putConfigMap('ca', { 'ca.crt': rootCertificates[0] ?? '' })
    await admin.create(mcpToolConfigType as ResourceType<MCPToolConfig>, { metadata: at('tools'), spec: { toolsFilter: ['search'] } })
    await steps.create('full', {
      remoteUrl,
      transport: 'sse',
      proxyPort: 9090,
      caBundleRef: { configMapRef: { name: 'ca', key: 'ca.crt' } },
      headerForward: {
        addPlaintextHeaders: { 'X-Team': 'weather' },
        addHeadersFromSecret: [{ headerName: 'X-Api-Key', valueSecretRef: { name: 'key', key: 'value' } }],
      },
      toolConfigRef: { name: 'tools' },
      replicas: 2,
      serviceType: 'LoadBalancer',
      sessionAffinity: 'None',
      resources: { requests: { cpu: '0.5' } },
      podTemplateSpec: {
        spec: { nodeSelector: { disk: 'fast' }, containers: [{ name: 'toolhive', env: [{ name: 'LEVEL', value: 'debug' }] }] },
      },
      resourceOverrides: { proxyService: { labels: { team: 'weather' } } },
    })
    await steps.settled('full')
    await steps.quiet()
    await expect(await steps.golden('full')).toMatchFileSnapshot(golden('full'))
    operator.calls.clear()
    for (const controller of operator.manager.controllers) controller.enqueue(at('full'))
    await steps.quiet()
    expect(operator.calls.writes).toEqual([])
  })

  test('follows its edits; replicas and group replace no pod', async () => {
    await steps.create('edited', { remoteUrl })
    await steps.onePod('edited')
    await steps.quiet()
    const template = await steps.template('edited')
    await steps.edit('edited', { replicas: 2, groupRef: { name: 'g' }, serviceType: 'NodePort' })
    await steps.settled('edited')
    await eventually('two pods', async () => (await steps.proxyPods('edited')).length === 2)
    expect(await steps.template('edited')).toBe(template)
    await steps.edit('edited', { remoteUrl: 'https://other.example.com/mcp', proxyPort: 9000 })
    const { url } = await steps.settled('edited')
    expect(url).toContain(':9000/mcp')
    expect(await steps.runConfig('edited')).toMatchObject({ remote_url: 'https://other.example.com/mcp', port: 9000 })
    expect(await steps.template('edited')).not.toBe(template)
    await admin.patch(mcpRemoteProxyType, at('edited'), { kind: 'merge', body: { spec: { replicas: 3 } } }, { subresource: 'scale' })
    await eventually('three are counted', async () => (await steps.get('edited')).status?.replicas === 3)
    await steps.edit('edited', { serviceAccount: 'default' })
    await eventually(
      'our account is gone',
      async () => (await admin.tryGet(serviceAccounts, at('edited-remote-proxy-runner'))) === undefined,
    )
    expect((await steps.deployment('edited')).spec?.template?.spec?.serviceAccountName).toBe('default')
  })

  test('stays Ready while an update of it is refused, and takes the update when it no longer is', async () => {
    await steps.create('kept', { remoteUrl })
    const ready = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] }
    await steps.sayOfPod(await steps.onePod('kept'), ready)
    const { url, observedGeneration } = await steps.settled('kept', 'Ready')
    await admin.patch(configMaps, at('kept-runconfig'), { kind: 'merge', body: { immutable: true } })
    await steps.edit('kept', { proxyPort: 9009 })
    await steps.hasReason('kept', 'WriteRefused', 'WriteRefused')
    expect((await steps.get('kept')).status).toMatchObject({ phase: 'Ready', url, observedGeneration })
    expect(await steps.condition('kept', 'Ready')).toMatchObject({ status: 'True', reason: 'DeploymentReady' })
    await admin.delete(configMaps, at('kept-runconfig'))
    expect((await steps.settled('kept')).url).toContain(':9009/')
    expect(await steps.condition('kept', 'WriteRefused')).toBeUndefined()
  })

  test('a header of a Secret: missed, found; a new content replaces the pods', async () => {
    const headerForward = { addHeadersFromSecret: [{ headerName: 'X-Api-Key', valueSecretRef: { name: 'late', key: 'value' } }] }
    await steps.create('headed', { remoteUrl, headerForward })
    await eventually('it reports it', async () => JSON.stringify((await steps.get('headed')).status).includes('HeaderSecretNotFound'))
    await steps.settled('headed', 'Failed')
    expect(await admin.tryGet(deployments, at('headed'))).toBeUndefined()
    await admin.create(secrets, { metadata: at('late'), data: { value: 'b25l' } })
    await steps.settled('headed', 'Pending')
    await steps.quiet()
    const template = await steps.template('headed')
    await admin.patch(secrets, at('late'), { kind: 'merge', body: { data: { value: 'dHdv' } } })
    await eventually('the template has changed', async () => (await steps.template('headed')) !== template)
  })

  test('a CA bundle: missed, no certificate, right, exchanged', async () => {
    await steps.create('trusting', { remoteUrl, caBundleRef: { configMapRef: { name: 'roots', key: 'ca.crt' } } })
    await steps.hasReason('trusting', 'CABundleRefValidated', 'CABundleRefNotFound')
    await putConfigMap('roots', { 'ca.crt': '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n' })
    await steps.hasReason('trusting', 'CABundleRefValidated', 'CABundleRefInvalid')
    await steps.settled('trusting', 'Failed')
    expect(await steps.owned('trusting')).toEqual([])
    await putConfigMap('roots', { 'ca.crt': rootCertificates[0] ?? '' })
    await steps.hasReason('trusting', 'CABundleRefValidated', 'CABundleRefValid')
    await steps.settled('trusting', 'Pending')
    const template = await steps.template('trusting')
    await putConfigMap('roots', { 'ca.crt': rootCertificates[1] ?? '' })
    await eventually('the pods are replaced', async () => (await steps.template('trusting')) !== template)
  })

  test.each([
    ['metadata', 'http://169.254.169.254/latest', 'RemoteURLInvalid'],
    ['api', 'https://kubernetes.default.svc/api', 'RemoteURLInvalid'],
    ['loopback', 'http://127.0.0.1:8080/mcp', 'RemoteURLInvalid'],
  ])('rejects a forbidden remote server (%s)', async (name, url, reason) => {
    await steps.create(`banned-${name}`, { remoteUrl: url })
    await steps.settled(`banned-${name}`, 'Failed')
    expect(JSON.stringify((await steps.get(`banned-${name}`)).status)).toContain(reason)
    expect(await steps.owned(`banned-${name}`)).toEqual([])
    await admin.delete(mcpRemoteProxyType, at(`banned-${name}`))
    await eventually('it is gone', async () => (await admin.tryGet(mcpRemoteProxyType, at(`banned-${name}`))) === undefined)
  })

  test('a guard that no proxy can apply yet is written down, and nothing runs', async () => {
    const awsSts = { region: 'eu-central-1', fallbackRoleArn: 'arn:aws:iam::123456789012:role/mcp' }
    await admin.create(mcpExternalAuthConfigType as ResourceType<MCPExternalAuthConfig>, {
      metadata: at('sts'),
      spec: { type: 'awsSts', awsSts },
    })
    const inline = { issuer: 'https://idp.example.com', audience: 'mcp' }
    const guard = { oidcConfig: { type: 'inline', inline }, externalAuthConfigRef: { name: 'sts' } }
    const field = 'aws_sts_config'
    const proxy = 'guarded'
    await steps.create(proxy, { remoteUrl, ...guard })
    await steps.settled(proxy, 'Failed')
    const told = await steps.hasReason(proxy, 'MiddlewareUnsupported', 'MiddlewareUnsupported')
    expect(told).toMatchObject({ status: 'True', message: expect.stringContaining(field) })
    expect(await steps.runConfig(proxy)).toHaveProperty(field)
    expect((await steps.deployment(proxy)).spec?.replicas).toBe(0)
    expect((await steps.owned(proxy)).map(({ kind }) => kind)).toEqual(expect.arrayContaining(['ConfigMap', 'Service']))
    expect(await steps.condition(proxy, 'Ready')).toMatchObject({ status: 'False' })
    // Scaled up by hand it stands still.
    await admin.patch(deployments, at(proxy), { kind: 'merge', body: { spec: { replicas: 2 } } }, { subresource: 'scale' })
    await eventually('it is put back', async () => (await steps.deployment(proxy)).spec?.replicas === 0)
    await steps.edit(proxy, { externalAuthConfigRef: null })
    await steps.settled(proxy, 'Pending')
    expect((await steps.deployment(proxy)).spec?.replicas).toBe(1)
    expect(await steps.condition(proxy, 'MiddlewareUnsupported')).toBeUndefined()
  })

  test('an open proxy that is to be closed stops, and comes back when its settings do', async () => {
    await steps.create('open', { remoteUrl })
    await steps.onePod('open')
    await steps.edit('open', { oidcConfig: { type: 'configMap', configMap: { name: 'later' } } })
    await steps.hasReason('open', 'ConfigurationValid', 'OIDCConfigMapNotFound')
    expect(await steps.condition('open', 'Authenticated')).toMatchObject({ status: 'False', reason: 'AuthInvalid' })
    await eventually('no pod', async () => (await steps.proxyPods('open')).length === 0)
    await putConfigMap('later', { issuer: 'https://idp.example.com', audience: 'mcp' })
    await steps.hasReason('open', 'Authenticated', 'AuthValid')
    expect(await steps.runConfig('open')).toMatchObject({ oidc_config: { issuer: 'https://idp.example.com' } })
    await steps.settled('open', 'Pending')
    await steps.onePod('open')
    expect(await steps.condition('open', 'MiddlewareUnsupported')).toBeUndefined()
  })

  test('is Ready with its pod, and says what is wrong with it', async () => {
    await steps.create('ready', { remoteUrl })
    const pod = await steps.onePod('ready')
    const state = { waiting: { reason: 'CrashLoopBackOff' } }
    const crash = {
      name: 'toolhive',
      image: '',
      imageID: '',
      ready: false,
      restartCount: 3,
      state,
      lastState: { terminated: { exitCode: 1 } },
    }
    await steps.sayOfPod(pod, { phase: 'Running', containerStatuses: [crash] })
    await steps.hasReason('ready', 'Ready', 'CrashLoopBackOff')
    await steps.settled('ready', 'Failed')
    await steps.sayOfPod(pod, { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] })
    await steps.settled('ready', 'Ready')
    expect(await steps.condition('ready', 'Ready')).toMatchObject({ status: 'True', reason: 'DeploymentReady' })
  })

  test('an invalid template is refused; its deletion takes all children along', async () => {
    await steps.create('templated', { remoteUrl })
    await steps.settled('templated', 'Pending')
    const children = await steps.owned('templated')
    await steps.edit('templated', { podTemplateSpec: { spec: { containers: [{ name: 'toolhive', image: 'example.test/evil:1' }] } } })
    await steps.hasReason('templated', 'PodTemplateValid', 'InvalidPodTemplateSpec')
    await admin.delete(mcpRemoteProxyType, at('templated'))
    await eventually('the Deployment is gone', async () => (await admin.tryGet(deployments, at('templated'))) === undefined)
    expect(children).toHaveLength(5)
    await eventually('the RunConfig is gone', async () => (await admin.tryGet(configMaps, at('templated-runconfig'))) === undefined)
  })
})
