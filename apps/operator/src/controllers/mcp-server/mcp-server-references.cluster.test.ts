import { configMaps, deployments, type KubeClient, type ResourceType, secrets } from '@thv/kube'
import { mcpExternalAuthConfigType } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { type MCPGroup, mcpGroupType } from '@thv/resources/kinds/mcp-group/schema'
import { mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { type MCPToolConfig, mcpToolConfigType } from '@thv/resources/kinds/mcp-tool-config/schema'
import { describeCluster } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { COMPANY_CA } from '../../testing/fixture-namespace.ts'
import { eventually, type OperatorUnderTest, startOperator } from '../../testing/operator-harness.ts'
import { type WorkloadSteps, workloadSteps } from '../../testing/workload-steps.ts'

const image = 'example.test/server:1'
const http = { image, transport: 'streamable-http' }
const cedar = (...policies: string[]) => JSON.stringify({ version: '1.0', type: 'cedarv1', cedar: { policies, entities_json: '[]' } })
const ALLOW = 'permit(principal, action, resource);'

describeCluster('what an MCPServer refers to', () => {
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
  const putConfigMap = async (name: string, data: Record<string, string>) =>
    await admin.apply(configMaps, { metadata: at(name), data }, { fieldManager: 'test', force: true })
  const putSecret = async (name: string, text: string) =>
    await admin.apply(
      secrets,
      { metadata: at(name), data: { token: Buffer.from(text).toString('base64') } },
      { fieldManager: 'test', force: true },
    )
  const notMade = async (name: string) => expect(await admin.tryGet(deployments, at(name))).toBeUndefined()
  const policiesOf = async (name: string): Promise<readonly string[]> => {
    const { data } = await admin.get(configMaps, at(`${name}-authz`))
    return (JSON.parse(data?.['authz.json'] ?? '') as { cedar: { policies: string[] } }).cedar.policies
  }
  const generationOf = async (name: string) => (await steps.deployment(name)).metadata.generation

  test.each([
    ['keys', { issuer: 'https://idp.example.com', audience: 'mcp' }, { issuer: 'https://other.example.com', audience: 'mcp' }],
    [
      'document',
      { 'oidc.json': JSON.stringify({ issuer: 'https://idp.example.com', audience: 'mcp' }) },
      { 'oidc.json': JSON.stringify({ issuer: 'https://other.example.com', audience: 'mcp' }) },
    ],
  ])('a ConfigMap with OIDC settings as %s: missed, found, followed', async (form, data, changed) => {
    const name = `oidc-${form}`
    await steps.create(name, { ...http, oidcConfig: { type: 'configMap', configMap: { name } } })
    const missing = await steps.hasReason(name, 'ConfigurationValid', 'OIDCConfigMapNotFound')
    expect(missing).toMatchObject({ status: 'False', message: expect.stringContaining(`ConfigMap ${name}`) })
    await steps.settled(name, 'Failed')
    await notMade(name)

    await putConfigMap(name, data)
    await steps.hasReason(name, 'ConfigurationValid', 'ConfigurationValid')
    expect(await steps.runConfig(name)).toMatchObject({ oidc_config: { issuer: 'https://idp.example.com', audience: 'mcp' } })
    const template = await steps.template(name)
    await putConfigMap(name, changed)
    await eventually('the change has arrived', async () => JSON.stringify(await steps.runConfig(name)).includes('other.example.com'))
    await eventually('the template has changed', async () => (await steps.template(name)) !== template)

    await admin.delete(configMaps, at(name))
    await steps.hasReason(name, 'ConfigurationValid', 'OIDCConfigMapNotFound')
  })

  test('a ConfigMap with policies: missed, wrong, right', async () => {
    await steps.create('policed', { ...http, authzConfig: { type: 'configMap', configMap: { name: 'policies' } } })
    await steps.hasReason('policed', 'ConfigurationValid', 'AuthzConfigMapNotFound')
    await putConfigMap('policies', { 'authz.json': '{"version": 1' })
    await steps.hasReason('policed', 'ConfigurationValid', 'AuthzConfigMapInvalid')
    await putConfigMap('policies', { 'authz.json': cedar('permit(principal, action') })
    const wrong = await steps.hasReason('policed', 'ConfigurationValid', 'AuthzPolicySyntaxInvalid')
    expect(wrong.message).toContain('policies[0]')
    await notMade('policed')
    await putConfigMap('policies', { 'authz.json': cedar(ALLOW) })
    await steps.hasReason('policed', 'ConfigurationValid', 'ConfigurationValid')
    expect(await steps.runConfig('policed')).toMatchObject({ authz_config_path: '/etc/toolhive/authz/authz.json' })
    expect(await policiesOf('policed')).toEqual([ALLOW])
  })

  test('an edit of policies changes their ConfigMap and the hash in the status, and no pod; without policies the ConfigMap goes', async () => {
    await putConfigMap('edited', { 'authz.json': cedar(ALLOW) })
    await steps.create('live', { ...http, authzConfig: { type: 'configMap', configMap: { name: 'edited' } } })
    await steps.hasReason('live', 'ConfigurationValid', 'ConfigurationValid')
    await steps.quiet()
    const hashOf = async () => ((await admin.get(mcpServerType, at('live'))).status as { authzConfigHash?: string }).authzConfigHash
    const [before, hash, runConfig] = [await steps.deployment('live'), await hashOf(), await steps.runConfig('live')]
    expect(hash).toMatch(/^[0-9a-f]{16}$/)

    const FORBID = 'forbid(principal, action, resource == Tool::"rm");'
    await putConfigMap('edited', { 'authz.json': cedar(ALLOW, FORBID) })
    await eventually('the policies are the new ones', async () => (await policiesOf('live')).includes(FORBID))
    await eventually('the status has another hash', async () => (await hashOf()) !== hash)
    // A mistake changes nothing but the condition.
    await putConfigMap('edited', { 'authz.json': cedar('permit(') })
    await steps.hasReason('live', 'ConfigurationValid', 'AuthzPolicySyntaxInvalid')
    expect(await policiesOf('live')).toEqual([ALLOW, FORBID])
    await putConfigMap('edited', { 'authz.json': cedar(ALLOW) })
    await steps.hasReason('live', 'ConfigurationValid', 'ConfigurationValid')
    await steps.quiet()
    expect(await policiesOf('live')).toEqual([ALLOW])
    const after = await steps.deployment('live')
    expect([after.metadata.uid, after.metadata.generation]).toEqual([before.metadata.uid, before.metadata.generation])
    expect(await steps.runConfig('live')).toEqual(runConfig)

    await admin.patch(mcpServerType, at('live'), { kind: 'merge', body: { spec: { authzConfig: null } } })
    await eventually('the ConfigMap is gone', async () => (await admin.tryGet(configMaps, at('live-authz'))) === undefined)
    expect(await steps.runConfig('live')).not.toHaveProperty('authz_config_path')
  })

  test('a Secret: missed, without the key, found; a new content replaces the pods of its users only', async () => {
    await steps.create('user', { ...http, secrets: [{ name: 'api', key: 'token' }] })
    const missing = await steps.hasReason('user', 'ConfigurationValid', 'SecretNotFound')
    expect(missing.message).toContain('Secret api does not exist')
    await admin.create(secrets, { metadata: at('api'), data: { other: 'eA==' } })
    await eventually('the key is missing', async () =>
      (await steps.condition('user', 'ConfigurationValid'))?.message.includes('has no key token'),
    )
    await notMade('user')
    await putSecret('api', 'first-value')
    await steps.hasReason('user', 'ConfigurationValid', 'ConfigurationValid')
    const template = {
      spec: { containers: [{ name: 'mcp', env: [{ name: 'T', valueFrom: { secretKeyRef: { name: 'api', key: 'token' } } }] }] },
    }
    await steps.create('template-user', { ...http, podTemplateSpec: template })
    await steps.create('stranger', http)
    for (const name of ['template-user', 'stranger']) await steps.settled(name)
    await steps.quiet()

    const before = await Promise.all(['user', 'template-user', 'stranger'].map(generationOf))
    await putSecret('api', 'second-value')
    await eventually('the user is rolled', async () => (await generationOf('user')) !== before[0])
    await eventually('the user by its template is rolled', async () => (await generationOf('template-user')) !== before[1])
    await steps.quiet()
    expect(await generationOf('stranger')).toBe(before[2])
    const all = JSON.stringify([await steps.owned('user'), await steps.get('user'), await steps.eventsOf('user'), operator.log])
    expect(all).not.toMatch(/second-value|first-value|c2Vjb25kLXZhbHVl/)
  })

  test('a permission profile in a ConfigMap: missed, wrong, right, changed', async () => {
    await steps.create('profiled', { ...http, permissionProfile: { type: 'configmap', name: 'profile', key: 'p.json' } })
    await steps.hasReason('profiled', 'ConfigurationValid', 'PermissionProfileNotFound')
    await putConfigMap('profile', { 'p.json': '{"netwrok": {}}' })
    await steps.hasReason('profiled', 'ConfigurationValid', 'PermissionProfileInvalid')
    await notMade('profiled')
    await putConfigMap('profile', { 'p.json': '{"network": {"outbound": {"allow_port": [443]}}}' })
    await steps.hasReason('profiled', 'ConfigurationValid', 'ConfigurationValid')
    await putConfigMap('profile', { 'p.json': '{"network": {"outbound": {"allow_port": [8443], "allow_host": ["example.com"]}}}' })
    const partial = await steps.hasReason('profiled', 'PermissionProfilePartial', 'HostRulesNotEnforced')
    expect(partial.status).toBe('True')
  })

  test('an MCPToolConfig, an MCPExternalAuthConfig and an MCPGroup: missed and found', async () => {
    await steps.create('tooled', { ...http, toolConfigRef: { name: 'tools' } })
    await steps.create('authed', { ...http, externalAuthConfigRef: { name: 'auth' } })
    await steps.create('grouped', { ...http, groupRef: { name: 'group' } })
    await steps.hasReason('tooled', 'ToolConfigValidated', 'ToolConfigNotFound')
    await steps.hasReason('authed', 'ExternalAuthConfigValidated', 'ExternalAuthConfigNotFound')
    await steps.hasReason('grouped', 'GroupRefValidated', 'GroupRefNotFound')
    await notMade('tooled')
    await notMade('authed')
    // A group is nothing that a server needs to run.
    await steps.deployment('grouped')

    await admin.create(mcpToolConfigType as ResourceType<MCPToolConfig>, { metadata: at('tools'), spec: { toolsFilter: ['fetch'] } })
    await admin.create(mcpExternalAuthConfigType, { metadata: at('auth'), spec: { type: 'unauthenticated' } })
    await admin.create(mcpGroupType as ResourceType<MCPGroup>, { metadata: at('group') })
    await steps.hasReason('tooled', 'ToolConfigValidated', 'ToolConfigValid')
    await eventually('no objection', async () => (await steps.condition('authed', 'ExternalAuthConfigValidated'))?.status !== 'False')
    await steps.hasReason('grouped', 'GroupRefValidated', 'GroupRefIsValid')
    for (const name of ['tooled', 'authed']) await steps.deployment(name)
    expect((await steps.get('grouped')).status?.['group']).toBe('group')

    await steps.quiet()
    const before = await Promise.all(['tooled', 'authed'].map(generationOf))
    const body = { spec: { toolsFilter: ['fetch', 'search'] } }
    await admin.patch(mcpToolConfigType as ResourceType<MCPToolConfig>, at('tools'), { kind: 'merge', body })
    await eventually('its user is rolled', async () => (await generationOf('tooled')) !== before[0])
    await steps.quiet()
    expect(await generationOf('authed')).toBe(before[1])
    expect(await steps.runConfig('tooled')).toMatchObject({ tools_filter: ['fetch', 'search'] })
  })

  test('oidcConfig.external: an outgoing config never opens the server, a config of type oidc guards it [002-099]', async () => {
    const external = { type: 'external', external: { name: 'clients' } } as const
    await admin.create(mcpExternalAuthConfigType, { metadata: at('clients'), spec: { type: 'unauthenticated' } })
    await steps.create('guarded', { ...http, oidcConfig: external })
    const refused = await steps.hasReason('guarded', 'ConfigurationValid', 'NotIncomingAuth')
    expect(refused.status).toBe('False')
    await notMade('guarded')

    // The CA bundle of the config reaches the server too.
    const oidc = { issuer: 'https://login.example.com', audience: 'a', caBundleRef: { configMapRef: { name: 'clients-ca' } } }
    await admin.patch(mcpExternalAuthConfigType, at('clients'), { kind: 'merge', body: { spec: { type: 'oidc', oidc } } })
    await steps.hasReason('guarded', 'CABundleRefValidated', 'CABundleRefNotFound')
    await notMade('guarded')
    await putConfigMap('clients-ca', { 'ca.crt': COMPANY_CA })
    await steps.hasReason('guarded', 'Authenticated', 'AuthValid')
    expect((await steps.deployment('guarded')).spec?.replicas).toBe(1)
    expect(await steps.runConfig('guarded')).toMatchObject({ oidc_config: { issuer: 'https://login.example.com', audience: 'a' } })
  })

  test('a Secret of an MCPExternalAuthConfig reaches the servers that use the config', async () => {
    await putSecret('key', 'one')
    const headerInjection = { headerName: 'X-Api-Key', valueSecretRef: { name: 'key', key: 'token' } }
    await admin.create(mcpExternalAuthConfigType, { metadata: at('injected'), spec: { type: 'headerInjection', headerInjection } })
    await steps.create('caller', { ...http, externalAuthConfigRef: { name: 'injected' } })
    await steps.create('bystander', http)
    for (const name of ['caller', 'bystander']) await steps.settled(name)
    await steps.quiet()
    const before = await Promise.all(['caller', 'bystander'].map(generationOf))
    await putSecret('key', 'two')
    await eventually('its user is rolled', async () => (await generationOf('caller')) !== before[0])
    await admin.delete(secrets, at('key'))
    await steps.hasReason('caller', 'ExternalAuthConfigValidated', 'SecretNotFound')
    await steps.quiet()
    expect(await generationOf('bystander')).toBe(before[1])
  })

  test('one ConfigMap among 60 servers concerns exactly its 3 users', async () => {
    await putConfigMap('shared-policies', { 'authz.json': cedar(ALLOW) })
    const authzConfig = { type: 'configMap', configMap: { name: 'shared-policies' } }
    const users = ['crowd-7', 'crowd-31', 'crowd-58']
    // Those that use it not wait for something else: they need no addresses of the small range that tests have.
    const all = Array.from({ length: 60 }, (_, index) => `crowd-${index}`)
    await Promise.all(
      all.map((name) =>
        steps.create(name, { ...http, ...(users.includes(name) ? { authzConfig } : { toolConfigRef: { name: 'nowhere' } }) }),
      ),
    )
    for (const name of users) await steps.deployment(name)
    await steps.hasReason('crowd-59', 'ToolConfigValidated', 'ToolConfigNotFound')
    await steps.quiet()

    operator.calls.clear()
    const before = reconciles()
    await admin.patch(configMaps, at('shared-policies'), { kind: 'merge', body: { metadata: { labels: { touched: 'yes' } } } })
    await eventually('they are looked at', async () => reconciles() >= before + 3)
    await steps.quiet()
    expect(reconciles()).toBe(before + 3)
    expect(operator.calls.writes).toEqual([])
    // Read once, although three use it.
    const asked = operator.calls.all.filter(({ plural }) => plural !== 'events')
    expect(asked.map(({ plural, name }) => `${plural} ${name}`)).toEqual(['configmaps shared-policies'])

    await putConfigMap('shared-policies', { 'authz.json': cedar(ALLOW, 'forbid(principal, action, resource) when { false };') })
    for (const name of users) await eventually(`${name} has the new policies`, async () => (await policiesOf(name)).length === 2)
    await steps.quiet()
    const written = new Set(operator.calls.writes.map(({ name }) => name.replace(/-authz$/, '')))
    expect([...written].toSorted()).toEqual(users.toSorted())
    await admin.deleteCollection(mcpServerType, { namespace })
    await steps.quiet()
  })

  const reconciles = () => operator.manager.controllers.find(({ name }) => name === 'mcpserver')?.stats.reconciles ?? 0

  test('an open server that is to be closed stops although its settings are missing, and comes back when they are mended', async () => {
    await steps.create('open', { ...http, replicas: 2 })
    await eventually('two pods', async () => (await steps.proxyPods('open')).length === 2)
    await steps.edit('open', { oidcConfig: { type: 'configMap', configMap: { name: 'later' } } })
    await steps.hasReason('open', 'ConfigurationValid', 'OIDCConfigMapNotFound')
    await eventually('it is stopped', async () => (await steps.deployment('open')).spec?.replicas === 0)
    await eventually('no pod', async () => (await steps.proxyPods('open')).length === 0)
    // Scaling it up meanwhile opens nothing.
    await admin.patch(deployments, at('open'), { kind: 'merge', body: { spec: { replicas: 1 } } }, { subresource: 'scale' })
    await eventually('it is stopped again', async () => (await steps.deployment('open')).spec?.replicas === 0)
    await steps.edit('open', { oidcConfig: null })
    await eventually('two pods again', async () => (await steps.proxyPods('open')).length === 2)
    await steps.quiet()
    const { metadata } = await steps.deployment('open')
    expect(Object.entries(metadata.annotations ?? {}).filter(([key]) => key.includes('stopped-by-operator'))).toEqual([])
  })

  test('a reference that breaks later stops nothing that is as closed as before', async () => {
    await putSecret('breaks', 'x')
    await steps.create('steady', { ...http, secrets: [{ name: 'breaks', key: 'token' }] })
    await steps.onePod('steady')
    await steps.quiet()
    const template = await steps.template('steady')
    await admin.delete(secrets, at('breaks'))
    await steps.hasReason('steady', 'ConfigurationValid', 'SecretNotFound')
    await steps.settled('steady', 'Failed')
    expect((await steps.deployment('steady')).spec?.replicas).toBe(1)
    expect(await steps.template('steady')).toBe(template)
  })
})
