import { configMaps, deployments, events, getCondition, type KubeClient, secrets } from '@thv/kube'
import { MCP_EXTERNAL_AUTH_CONFIG_FINALIZER } from '@thv/resources/kinds/mcp-external-auth-config/constants'
import { type MCPExternalAuthConfig, mcpExternalAuthConfigType as type } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { mcpRemoteProxyType } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import { mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { mcpServerEntryType } from '@thv/resources/kinds/mcp-server-entry/schema'
import { virtualMcpServerType } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { describeCluster } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, type OperatorUnderTest, startOperator } from '../../testing/operator-harness.ts'

describeCluster('MCPExternalAuthConfig', () => {
  let operator: OperatorUnderTest
  let admin: KubeClient
  let namespace: string

  beforeAll(async () => {
    operator = await startOperator()
    ;({ admin, namespace } = operator)
  })
  afterAll(async () => await operator?.stop())

  const at = (name: string) => ({ namespace, name })
  const create = (name: string, spec: MCPExternalAuthConfig['spec']) => admin.create(type, { metadata: at(name), spec })
  const header = (secret: string): MCPExternalAuthConfig['spec'] => ({
    type: 'headerInjection',
    headerInjection: { headerName: 'X-Api-Key', valueSecretRef: { name: secret, key: 'key' } },
  })
  const condition = async (name: string, which: string) =>
    getCondition((await admin.get(type, at(name))).status?.conditions as never, which)
  const serverCondition = async (name: string, which: string) =>
    getCondition((await admin.get(mcpServerType, at(name))).status?.conditions as never, which)
  const createSecret = (name: string, ...keys: string[]) =>
    admin.create(secrets, { metadata: at(name), data: Object.fromEntries(keys.map((key) => [key, 'c2VjcmV0LXZhbHVl'])) })

  test('[002-101] says with a reason whether it is valid: a missing Secret and key are named, and it heals when they appear', async () => {
    await create('weather', header('weather'))
    const missing = await eventually('it is judged', () => condition('weather', 'Valid'))
    expect(missing).toMatchObject({ status: 'False', reason: 'SecretNotFound', message: expect.stringContaining('Secret weather') })
    await createSecret('weather', 'other')
    await eventually('the key is missing', async () => (await condition('weather', 'Valid'))?.message.includes('does not have'))
    await admin.patch(secrets, at('weather'), { kind: 'merge', body: { data: { key: 'c2VjcmV0LXZhbHVl' } } })
    await eventually('it is valid', async () => (await condition('weather', 'Valid'))?.status === 'True')
    await admin.delete(secrets, at('weather'))
    await eventually('it is invalid again', async () => (await condition('weather', 'Valid'))?.reason === 'SecretNotFound')
    const notes = (await admin.list(events, { namespace })).items.map(({ note }) => note).join()
    expect(notes).not.toContain('secret-value')
  })

  test('refuses what admission cannot see', async () => {
    await create('bad-url', { type: 'tokenExchange', tokenExchange: { tokenUrl: 'https://:443/token', audience: 'a' } })
    const invalid = await eventually('it is judged', () => condition('bad-url', 'Valid'))
    expect(invalid).toMatchObject({ status: 'False', reason: 'ValidationFailed', message: expect.stringContaining('tokenUrl') })
    await admin.delete(type, at('bad-url'))
    await eventually('it is gone', async () => (await admin.tryGet(type, at('bad-url'))) === undefined)
  })

  test('[002-101] [004-122] lists who refers to it, of every kind that can, and waits with its deletion for each', async () => {
    await create('open', { type: 'unauthenticated' })
    const externalAuthConfigRef = { name: 'open' }
    await admin.create(mcpServerType, { metadata: at('server'), spec: { image: 'example.test/server:1', externalAuthConfigRef } })
    await admin.create(mcpRemoteProxyType, {
      metadata: at('proxy'),
      spec: { remoteUrl: 'https://mcp.example.com/mcp', externalAuthConfigRef },
    } as never)
    await admin.create(mcpServerEntryType, {
      metadata: at('entry'),
      spec: { remoteUrl: 'https://mcp.example.com/mcp', transport: 'sse', groupRef: 'g', externalAuthConfigRef },
    })
    await admin.create(virtualMcpServerType, {
      metadata: at('joined'),
      spec: {
        groupRef: { name: 'g' },
        incomingAuth: { type: 'anonymous' },
        outgoingAuth: { default: { type: 'externalAuthConfigRef', externalAuthConfigRef } },
      },
    } as never)
    const all = [
      { kind: 'MCPRemoteProxy', name: 'proxy' },
      { kind: 'MCPServer', name: 'server' },
      { kind: 'MCPServerEntry', name: 'entry' },
      { kind: 'VirtualMCPServer', name: 'joined' },
    ]
    await eventually('all four are listed', async () => {
      const { status } = await admin.get(type, at('open'))
      return JSON.stringify(status?.referencingWorkloads) === JSON.stringify(all)
    })
    expect((await admin.get(type, at('open'))).metadata.finalizers).toEqual([MCP_EXTERNAL_AUTH_CONFIG_FINALIZER])
    await admin.delete(type, at('open'))
    const types = {
      MCPServer: mcpServerType,
      MCPRemoteProxy: mcpRemoteProxyType,
      MCPServerEntry: mcpServerEntryType,
      VirtualMCPServer: virtualMcpServerType,
    }
    for (const { kind, name } of all) {
      await eventually(`${kind} ${name} holds it`, async () =>
        (await condition('open', 'DeletionBlocked'))?.message.includes(`${kind} ${name}`),
      )
      await admin.delete(types[kind as keyof typeof types] as typeof mcpServerType, at(name))
    }
    await eventually('it is gone', async () => (await admin.tryGet(type, at('open'))) === undefined, 25_000)
  })

  test('[002-046] an MCPServer that names a missing one reports it and does not run; it starts when the object and its Secret exist', async () => {
    const spec = { image: 'example.test/server:1', transport: 'streamable-http' as const, externalAuthConfigRef: { name: 'late' } }
    await admin.create(mcpServerType, { metadata: at('waits'), spec })
    const missing = await eventually('it reports it', () => serverCondition('waits', 'ExternalAuthConfigValidated'))
    expect(missing).toMatchObject({ status: 'False', reason: 'ExternalAuthConfigNotFound' })
    expect(await admin.tryGet(deployments, at('waits'))).toBeUndefined()
    await create('late', header('late'))
    await eventually(
      'the Secret is missing',
      async () => (await serverCondition('waits', 'ExternalAuthConfigValidated'))?.reason === 'SecretNotFound',
    )
    await createSecret('late', 'key')
    await eventually('nothing is wrong with it', async () => (await serverCondition('waits', 'ExternalAuthConfigValidated')) === undefined)
    await eventually('it has its hash', async () => {
      const { status } = await admin.get(mcpServerType, at('waits'))
      const hash = (await admin.get(type, at('late'))).status?.configHash
      return hash !== undefined && status?.externalAuthConfigHash === hash
    })
  })

  test('[002-052] an MCPRemoteProxy that names a missing one reports it and does not run', async () => {
    const spec = { remoteUrl: 'https://mcp.example.com/mcp', externalAuthConfigRef: { name: 'nowhere' } }
    await admin.create(mcpRemoteProxyType, { metadata: at('remote-waits'), spec } as never)
    const told = await eventually('it reports it', async () =>
      getCondition((await admin.get(mcpRemoteProxyType, at('remote-waits'))).status?.conditions as never, 'ExternalAuthConfigValidated'),
    )
    expect(told).toMatchObject({ status: 'False', reason: 'ExternalAuthConfigNotFound' })
    expect(await admin.tryGet(deployments, at('remote-waits'))).toBeUndefined()
  })

  test('one with several upstream providers and no keys gets keys of the operator, and MCPServers use it', async () => {
    const provider = (name: string) => ({
      name,
      type: 'oidc' as const,
      oidcConfig: { issuerUrl: 'https://idp.example.com', clientId: 'c' },
    })
    const issuer = 'https://mcp.example.com'
    const resourceUrl = `${issuer}/mcp`
    await create('several', {
      type: 'embeddedAuthServer',
      embeddedAuthServer: { issuer, upstreamProviders: [provider('a'), provider('b')] },
    })
    const secret = await eventually('the keys', () => admin.tryGet(secrets, at('several-authserver')))
    expect(Object.keys(secret.data ?? {})).toContain('key-0.pem')
    const told = await eventually('the condition', async () =>
      getCondition((await admin.get(type, at('several'))).status?.conditions as never, 'SigningKeysManaged'),
    )
    expect(told).toMatchObject({ status: 'True', reason: 'KeysMadeByOperator' })
    const oidcConfig = { type: 'inline' as const, resourceUrl, inline: { issuer, audience: resourceUrl, scopes: ['openid'] } }
    const spec = { image: 'example.test/server:1', transport: 'streamable-http' as const, oidcConfig, authServerRef: { name: 'several' } }
    await admin.create(mcpServerType, { metadata: at('several-login'), spec } as never)
    const map = await eventually('its RunConfig', () => admin.tryGet(configMaps, at('several-login-runconfig')))
    const { embedded_auth_server_config: login } = JSON.parse(map.data?.['runconfig.json'] ?? '')
    expect(login.upstreams.map(({ name }: { name: string }) => name)).toEqual(['a', 'b'])
    for (const value of Object.values(secret.data ?? {})) expect(JSON.stringify([map, told])).not.toContain(value)
  })

  test('[002-090] two MCPServers use one at the same time', async () => {
    await createSecret('both', 'key')
    await create('both', header('both'))
    for (const name of ['first', 'second']) {
      const spec = { image: 'example.test/server:1', transport: 'streamable-http' as const, externalAuthConfigRef: { name: 'both' } }
      await admin.create(mcpServerType, { metadata: at(name), spec })
    }
    for (const name of ['first', 'second']) {
      const map = await eventually(`the RunConfig of ${name}`, () => admin.tryGet(configMaps, at(`${name}-runconfig`)))
      expect(JSON.parse(map.data?.['runconfig.json'] ?? '')).toMatchObject({ header_injection_config: { header_name: 'X-Api-Key' } })
      expect(JSON.stringify(map)).not.toContain('secret-value')
    }
  })
})
