import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { rootCertificates } from 'node:tls'
import { configMaps, events, getCondition, type KubeClient, type ResourceType, secrets } from '@thv/kube'
import { mcpExternalAuthConfigType } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { type MCPGroup, mcpGroupType } from '@thv/resources/kinds/mcp-group/schema'
import { type MCPServerEntry, mcpServerEntryType as type } from '@thv/resources/kinds/mcp-server-entry/schema'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, type OperatorUnderTest, startOperator } from '../../testing/operator-harness.ts'
import { standstill } from '../../testing/standstill.ts'

const groupType = mcpGroupType as ResourceType<MCPGroup>

describeCluster('MCPServerEntry', () => {
  let operator: OperatorUnderTest
  let admin: KubeClient
  let namespace: string
  let elsewhere: string

  beforeAll(async () => {
    namespace = await testNamespace('entries', sharedCluster())
    elsewhere = await testNamespace('entries-elsewhere', sharedCluster())
    operator = await startOperator({
      namespace,
      env: { WATCH_NAMESPACE: `${namespace},${elsewhere}` },
      flags: { allowLoopbackRemotes: true },
    })
    admin = operator.admin
    await admin.create(groupType, { metadata: { name: 'engineering', namespace } })
  })
  afterAll(async () => await operator?.stop())

  const at = (name: string) => ({ namespace, name })
  const base = { remoteUrl: 'https://mcp.example.com/mcp', transport: 'streamable-http' as const, groupRef: 'engineering' }
  const create = (name: string, spec: Partial<MCPServerEntry['spec']> = {}) =>
    admin.create(type, { metadata: at(name), spec: { ...base, ...spec } })
  const settled = async (name: string, phase: string) =>
    await eventually(`${name} is ${phase}`, async () => {
      const { metadata, status } = await admin.get(type, at(name))
      return status?.phase === phase && status.observedGeneration === metadata.generation && status
    })
  const becomes = async (name: string, which: string, reason: string) =>
    await eventually(`${which} of ${name} becomes ${reason}`, async () => {
      const condition = getCondition((await admin.get(type, at(name))).status?.conditions as never, which)
      return condition?.reason === reason && condition
    })

  test('[004-009] [004-065] [004-081] is Ready; nothing is made, and nothing but its status is written', async () => {
    await eventually('the group is ready', async () => (await admin.get(groupType, at('engineering'))).status?.phase === 'Ready')
    operator.calls.clear()
    await create('public')
    const status = await settled('public', 'Ready')
    expect(status).toMatchObject({ group: 'engineering' })
    const types: string[] = status.conditions?.map((condition) => condition.type) ?? []
    expect(types.toSorted()).toEqual([
      'CABundleRefValidated',
      'ExternalAuthConfigValidated',
      'GroupRefValidated',
      'Ready',
      'RemoteURLValidated',
      'Valid',
    ])
    await standstill({ ...operator, namespaces: [namespace] })
    const writes = operator.calls.writes.filter(({ plural }) => plural !== 'mcpgroups')
    expect(writes).not.toEqual([])
    for (const write of writes) expect(write).toEqual({ verb: 'patch', plural: 'mcpserverentries', name: 'public', subresource: 'status' })
    expect((await admin.get(type, at('public'))).metadata.finalizers).toBeUndefined()
    await admin.delete(type, at('public'))
    expect(await admin.tryGet(type, at('public'))).toBeUndefined()
  })

  test('[004-011] [004-068] [004-074] follows its group: missing, there, deleted, another one', async () => {
    await create('grouped', { groupRef: { name: 'late' } })
    await settled('grouped', 'Failed')
    await becomes('grouped', 'GroupRefValidated', 'GroupRefNotFound')
    await admin.create(groupType, { metadata: at('late') })
    await becomes('grouped', 'GroupRefValidated', 'GroupRefIsValid')
    await settled('grouped', 'Ready')
    await admin.delete(groupType, at('late'))
    await becomes('grouped', 'GroupRefValidated', 'GroupRefNotFound')
    await admin.patch(type, at('grouped'), { kind: 'merge', body: { spec: { groupRef: { name: 'engineering' } } } })
    expect(await settled('grouped', 'Ready')).toMatchObject({ observedGeneration: 2, group: 'engineering' })
    // They are written beside the status, some time after it.
    await eventually('the events tell both', async () => {
      const told = (await admin.list(events, { namespace })).items.filter(({ regarding }) => regarding?.name === 'grouped')
      return ['GroupRefNotFound', 'GroupRefIsValid'].every((expected) => told.some(({ reason }) => reason === expected))
    })
  })

  test('[004-012] [004-069] [004-085] [004-095] follows its MCPExternalAuthConfig, in its own namespace only', async () => {
    const provider = (name: string) => ({
      name,
      type: 'oidc' as const,
      oidcConfig: { issuerUrl: 'https://idp.example.com', clientId: 'c' },
    })
    await admin.create(mcpExternalAuthConfigType, { metadata: { name: 'auth', namespace: elsewhere }, spec: { type: 'unauthenticated' } })
    await create('credentials', { externalAuthConfigRef: { name: 'auth' } })
    await becomes('credentials', 'ExternalAuthConfigValidated', 'AuthConfigNotFound')
    const spec = { type: 'bearerToken' as const, bearerToken: { tokenSecretRef: { name: 'token', key: 'value' } } }
    await admin.create(mcpExternalAuthConfigType, { metadata: at('auth'), spec })
    const invalid = await becomes('credentials', 'ExternalAuthConfigValidated', 'AuthConfigInvalid')
    expect(invalid.message).toContain('Secret token')
    await admin.create(secrets, { metadata: at('token'), data: { value: 'dA==' } })
    await becomes('credentials', 'ExternalAuthConfigValidated', 'AuthConfigValid')
    await settled('credentials', 'Ready')

    const login = { issuer: 'https://mcp.example.com', upstreamProviders: [provider('a'), provider('b')] }
    await admin.create(mcpExternalAuthConfigType, {
      metadata: at('several'),
      spec: { type: 'embeddedAuthServer', embeddedAuthServer: login },
    })
    await create('several', { externalAuthConfigRef: { name: 'several' } })
    await becomes('several', 'ExternalAuthConfigValidated', 'MultiUpstreamNotSupported')
    expect((await settled('several', 'Failed')).conditions?.find((condition) => condition.type === 'Ready')?.message).toContain(
      'ExternalAuthConfigValidated',
    )
  })

  test('[004-070] follows its CA bundle: missing, without the key, no PEM, right', async () => {
    await create('internal', { caBundleRef: { configMapRef: { name: 'ca' } } })
    expect(await becomes('internal', 'CABundleRefValidated', 'CABundleRefNotFound')).toMatchObject({ status: 'False' })
    await admin.create(configMaps, { metadata: at('ca'), data: { other: rootCertificates[0] ?? '' } })
    await becomes('internal', 'CABundleRefValidated', 'CABundleRefNotFound')
    await admin.patch(configMaps, at('ca'), { kind: 'merge', body: { data: { 'ca.crt': 'not a certificate' } } })
    expect(await becomes('internal', 'CABundleRefValidated', 'CABundleRefInvalid')).toMatchObject({ status: 'False' })
    await admin.patch(configMaps, at('ca'), { kind: 'merge', body: { data: { 'ca.crt': sharedCluster().caPem } } })
    expect(await becomes('internal', 'CABundleRefValidated', 'CABundleRefValid')).toMatchObject({ status: 'True' })
    await settled('internal', 'Ready')
    await admin.delete(configMaps, at('ca'))
    await becomes('internal', 'CABundleRefValidated', 'CABundleRefNotFound')
  })

  test('[004-087] takes kube-root-ca.crt as it is', async () => {
    // The controller that publishes it is off in this cluster: what it would write.
    await admin.create(configMaps, { metadata: at('kube-root-ca.crt'), data: { 'ca.crt': sharedCluster().caPem } })
    await create('cluster-ca', { caBundleRef: { configMapRef: { name: 'kube-root-ca.crt' } } })
    expect(await becomes('cluster-ca', 'CABundleRefValidated', 'CABundleRefValid')).toMatchObject({ status: 'True' })
    await settled('cluster-ca', 'Ready')
  })

  test('follows the Secrets of its headers', async () => {
    const headerForward = { addHeadersFromSecret: [{ headerName: 'X-Api-Key', valueSecretRef: { name: 'headers', key: 'api-key' } }] }
    await create('headers', { headerForward })
    expect(await becomes('headers', 'HeaderSecretRefsValidated', 'HeaderSecretNotFound')).toMatchObject({ status: 'False' })
    await admin.create(secrets, { metadata: at('headers'), data: { 'api-key': 'dA==' } })
    expect(await becomes('headers', 'HeaderSecretRefsValidated', 'HeaderSecretsValid')).toMatchObject({ status: 'True' })
    await settled('headers', 'Ready')
  })

  test('[004-013] never calls the remote server', async () => {
    let calls = 0
    const server = createServer((socket) => {
      calls++
      socket.destroy()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    try {
      const { port } = server.address() as AddressInfo
      await create('listening', { remoteUrl: `http://127.0.0.1:${port}/mcp`, insecureAllowHTTP: true })
      await settled('listening', 'Ready')
      await admin.patch(type, at('listening'), { kind: 'merge', body: { spec: { remoteUrl: `http://127.0.0.1:${port}/other` } } })
      await settled('listening', 'Ready')
      expect(calls).toBe(0)
    } finally {
      server.close()
    }
  })

  test('fails with a remote address that is never allowed', async () => {
    await create('metadata-service', { remoteUrl: 'https://169.254.169.254/mcp' })
    expect(await becomes('metadata-service', 'RemoteURLValidated', 'RemoteURLInvalid')).toMatchObject({ status: 'False' })
    await settled('metadata-service', 'Failed')
  })

  test('the columns of kubectl say it', async () => {
    const table = await admin.raw('GET', `/apis/toolhive.stacklok.dev/v1beta1/namespaces/${namespace}/mcpserverentries/headers`, {
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
    })
    const { columnDefinitions, rows } = table.json() as { columnDefinitions: { name: string }[]; rows: { cells: unknown[] }[] }
    const row = Object.fromEntries(columnDefinitions.map(({ name }, index) => [name, rows[0]?.cells[index]]))
    expect(row).toMatchObject({ Phase: 'Ready', Group: 'engineering', Ready: 'True', 'Remote URL': base.remoteUrl })
  })
})
