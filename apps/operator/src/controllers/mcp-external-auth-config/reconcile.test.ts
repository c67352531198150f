import { done, getCondition, requeueAfter } from '@thv/kube'
import { MCP_EXTERNAL_AUTH_CONFIG_FINALIZER } from '@thv/resources/kinds/mcp-external-auth-config/constants'
import type { MCPExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { type VirtualMCPServer, virtualMcpServerType } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { describe, expect, it } from 'vitest'
import { ensureManagedKeys } from '../../auth-server/ensure-managed-keys.ts'
import { managedHmacFiles, managedKeyFiles, newKeyData } from '../../auth-server/managed-keys.ts'
import { type MemoryCluster, memoryCluster } from '../../testing/memory-cluster.ts'
import { reconcileMcpExternalAuthConfig } from './reconcile.ts'

const key = { namespace: 'team', name: 'auth' }
const bearer = { type: 'bearerToken', bearerToken: { tokenSecretRef: { name: 'token', key: 'value' } } }
const config = (spec: unknown = bearer) => ({ kind: 'MCPExternalAuthConfig', metadata: { name: 'auth' }, spec }) as never
const secret = (...keys: string[]) =>
  ({ kind: 'Secret', metadata: { name: 'token' }, data: Object.fromEntries(keys.map((name) => [name, ''])) }) as never

async function reconcile(cluster: MemoryCluster) {
  const outcome = await reconcileMcpExternalAuthConfig(key, cluster.env, { signal: new AbortController().signal, attempt: 1 })
  const object = cluster.object<MCPExternalAuthConfig>('MCPExternalAuthConfig', 'auth')
  return { outcome, object, status: object?.status, condition: (type: string) => getCondition(object?.status?.conditions as never, type) }
}

const USERS = [
  { kind: 'MCPServer', metadata: { name: 'server' }, spec: { image: 'i', externalAuthConfigRef: { name: 'auth' } } },
  { kind: 'MCPServer', metadata: { name: 'login' }, spec: { image: 'i', authServerRef: { name: 'auth' } } },
  {
    kind: 'MCPRemoteProxy',
    metadata: { name: 'proxy' },
    spec: { remoteUrl: 'https://x.example.com', externalAuthConfigRef: { name: 'auth' } },
  },
  {
    kind: 'MCPServerEntry',
    metadata: { name: 'entry' },
    spec: { remoteUrl: 'https://x.example.com', transport: 'sse', groupRef: 'g', externalAuthConfigRef: { name: 'auth' } },
  },
  {
    kind: 'VirtualMCPServer',
    metadata: { name: 'joined' },
    spec: {
      groupRef: { name: 'g' },
      incomingAuth: { type: 'anonymous' },
      outgoingAuth: { backends: { server: { type: 'externalAuthConfigRef', externalAuthConfigRef: { name: 'auth' } } } },
    },
  },
]

describe('reconcileMcpExternalAuthConfig', () => {
  it('names a Secret that is missing, then its key, and heals when it appears', async () => {
    const cluster = memoryCluster()
    cluster.put(config())
    expect((await reconcile(cluster)).condition('Valid')).toMatchObject({
      status: 'False',
      reason: 'SecretNotFound',
      message: 'spec.bearerToken.tokenSecretRef names Secret token, which does not exist: create it with the key value',
    })
    cluster.put(secret('other'))
    expect((await reconcile(cluster)).condition('Valid')).toMatchObject({ message: expect.stringContaining('key value') })
    cluster.put(secret('other', 'value'))
    expect((await reconcile(cluster)).condition('Valid')).toMatchObject({ status: 'True', reason: 'ValidationSucceeded' })
    expect(cluster.events.map(({ type, reason }) => [type, reason])).toEqual([
      ['Warning', 'SecretNotFound'],
      ['Warning', 'SecretNotFound'],
      ['Normal', 'ValidationSucceeded'],
    ])
  })

  it('tells of the spec before it tells of Secrets', async () => {
    const cluster = memoryCluster()
    cluster.put(config({ ...bearer, headerInjection: {} }))
    expect((await reconcile(cluster)).condition('Valid')).toMatchObject({ status: 'False', reason: 'ValidationFailed' })
  })

  it('lists users of all four kinds and is held by each of them', async () => {
    const cluster = memoryCluster()
    cluster.put(config({ type: 'unauthenticated' }))
    for (const user of USERS) cluster.put(user as never)
    const { status, object } = await reconcile(cluster)
    expect(object?.metadata.finalizers).toEqual([MCP_EXTERNAL_AUTH_CONFIG_FINALIZER])
    expect(status?.referencingWorkloads).toEqual([
      { kind: 'MCPRemoteProxy', name: 'proxy' },
      { kind: 'MCPServer', name: 'login' },
      { kind: 'MCPServer', name: 'server' },
      { kind: 'MCPServerEntry', name: 'entry' },
      { kind: 'VirtualMCPServer', name: 'joined' },
    ])
    cluster.put({
      ...object,
      kind: 'MCPExternalAuthConfig',
      metadata: { ...object?.metadata, name: 'auth', deletionTimestamp: 'now' },
    } as never)
    for (const { kind, metadata } of USERS) {
      const { outcome, condition } = await reconcile(cluster)
      expect(outcome).toEqual(requeueAfter('30s'))
      expect(condition('DeletionBlocked')?.message).toContain(`${kind} ${metadata.name}`)
      cluster.remove(kind, metadata.name)
    }
    expect((await reconcile(cluster)).outcome).toEqual(done)
    expect(cluster.object('MCPExternalAuthConfig', 'auth')).toBeUndefined()
  })

  it('tells whether the embedded server invents subjects, and stops telling when the type changes', async () => {
    const provider = (more: object = {}) => ({
      name: 'git',
      type: 'oauth2',
      oauth2Config: { authorizationEndpoint: 'https://g.example.com/a', tokenEndpoint: 'https://g.example.com/t', clientId: 'c', ...more },
    })
    const login = (...upstreamProviders: object[]) =>
      config({ type: 'embeddedAuthServer', embeddedAuthServer: { issuer: 'https://mcp.example.com', upstreamProviders } })
    const cluster = memoryCluster()
    cluster.put(login(provider()))
    const synthesized = (await reconcile(cluster)).condition('IdentitySynthesized')
    expect(synthesized).toMatchObject({
      status: 'True',
      reason: 'OAuth2UpstreamWithoutUserInfo',
      message: expect.stringContaining('at git'),
    })

    cluster.put(login(provider({ userInfo: { endpointUrl: 'https://g.example.com/u' } })))
    expect((await reconcile(cluster)).condition('IdentitySynthesized')).toMatchObject({
      status: 'False',
      reason: 'AllUpstreamsHaveUserInfo',
    })
    cluster.put(login(provider({ identityFromToken: { subjectPath: 'id' } })))
    expect((await reconcile(cluster)).condition('IdentitySynthesized')).toMatchObject({ status: 'False' })
    cluster.put(config({ type: 'unauthenticated' }))
    expect((await reconcile(cluster)).condition('IdentitySynthesized')).toBeUndefined()
    expect(cluster.events.map(({ type, reason }) => [type, reason])).toEqual([
      ['Normal', 'SigningKeysCreated'],
      ['Warning', 'OAuth2UpstreamWithoutUserInfo'],
      ['Normal', 'AllUpstreamsHaveUserInfo'],
    ])
  })

  it('has a hash that changes with the spec, not with the spelling', async () => {
    const exchange = (spec: object) => config({ type: 'tokenExchange', tokenExchange: { audience: 'a', ...spec } })
    const cluster = memoryCluster()
    cluster.put(exchange({ tokenUrl: 'https://idp.example.com' }))
    const canonical = (await reconcile(cluster)).status?.configHash
    cluster.put(exchange({ token_url: 'https://idp.example.com' }))
    expect((await reconcile(cluster)).status?.configHash).toBe(canonical)
    cluster.put(exchange({ tokenUrl: 'https://other.example.com' }))
    expect((await reconcile(cluster)).status?.configHash).not.toBe(canonical)
  })

  it('writes nothing when nothing changed', async () => {
    const cluster = memoryCluster()
    cluster.put(config())
    await reconcile(cluster)
    cluster.writes.length = 0
    await reconcile(cluster)
    expect(cluster.writes).toEqual([])
  })

  describe('with an embedded server that names no keys', () => {
    const provider = { name: 'corp', type: 'oidc', oidcConfig: { issuerUrl: 'https://idp.example.com', clientId: 'c' } }
    const spec = { type: 'embeddedAuthServer', embeddedAuthServer: { issuer: 'https://mcp.example.com', upstreamProviders: [provider] } }
    const login = () => ({ kind: 'MCPExternalAuthConfig', metadata: { name: 'auth', uid: 'u-auth' }, spec }) as never
    type Keys = { metadata: { annotations: Record<string, string> }; data: Record<string, string> }
    const keysOf = (cluster: MemoryCluster) => cluster.object('Secret', 'auth-authserver') as unknown as Keys

    it('makes them once, tells so, and replaces them when they are old', async () => {
      const cluster = memoryCluster()
      cluster.put(login())
      const first = await reconcile(cluster)
      expect(first.condition('SigningKeysManaged')).toMatchObject({ status: 'True', reason: 'KeysMadeByOperator' })
      const made = structuredClone(keysOf(cluster))
      expect((await reconcile(cluster)).outcome.kind).not.toBe('done')
      expect(keysOf(cluster).data).toEqual(made.data)

      keysOf(cluster).metadata.annotations['toolhive.stacklok.dev/keys-rotated-at'] = '2020-01-01T00:00:00.000Z'
      await reconcile(cluster)
      expect(keysOf(cluster).data['key-0.pem']).toBe(made.data['key-1.pem'])
      expect(keysOf(cluster).data['hmac-0']).toBe(made.data['hmac-1'])
      expect(cluster.events.map(({ reason }) => reason).filter((reason) => reason.startsWith('SigningKeys'))).toEqual([
        'SigningKeysCreated',
        'SigningKeysRotated',
      ])
      const told = JSON.stringify([cluster.events, first.object])
      for (const secret of Object.values(made.data)) expect(told).not.toContain(secret)
    })

    it('keeps the keys that are left when somebody removed one', async () => {
      const cluster = memoryCluster()
      cluster.put(login())
      await reconcile(cluster)
      const made = structuredClone(keysOf(cluster))
      delete keysOf(cluster).data['hmac-6']
      keysOf(cluster).metadata.annotations['toolhive.stacklok.dev/keys-rotated-at'] = '2020-01-01T00:00:00.000Z'
      await reconcile(cluster)
      expect(keysOf(cluster).data['key-2.pem']).toBe(made.data['key-0.pem'])
      expect(keysOf(cluster).data['hmac-2']).toBe(made.data['hmac-0'])
    })

    it('leaves a Secret of somebody else alone, and looks whether it is gone', async () => {
      const cluster = memoryCluster()
      cluster.put(login())
      cluster.put({ kind: 'Secret', metadata: { name: 'auth-authserver' }, data: { mine: '' } } as never)
      const { condition, outcome } = await reconcile(cluster)
      expect(condition('SigningKeysManaged')).toMatchObject({ status: 'False', reason: 'SecretNameTaken' })
      expect(outcome).toEqual(requeueAfter(60_000))
      expect(keysOf(cluster).data).toEqual({ mine: '' })
    })

    it('shares no Secret with a VirtualMCPServer of its name', async () => {
      const cluster = memoryCluster()
      cluster.put(login())
      const server = { metadata: { namespace: 'team', name: 'auth', uid: 'u-virtual' } } as VirtualMCPServer
      const owner = { object: server, type: virtualMcpServerType, kind: 'VirtualMCPServer' } as const
      expect(await ensureManagedKeys(owner, cluster.env, new AbortController().signal)).toMatchObject({
        ok: true,
        secret: 'auth-authserver-vmcp',
      })
      expect((await reconcile(cluster)).condition('SigningKeysManaged')).toMatchObject({ status: 'True' })
      const other = cluster.object('Secret', 'auth-authserver-vmcp') as unknown as Keys
      expect(Object.values(other.data).filter((value) => Object.values(keysOf(cluster).data).includes(value))).toEqual([])
    })

    it.each([
      ['takes over the keys that were made for it under the name of before', 'u-virtual', {}, true],
      ['leaves the Secret of another owner alone', 'u-other', {}, false],
      ['leaves a Secret alone that the operator did not make', 'u-virtual', { 'app.kubernetes.io/managed-by': 'somebody' }, false],
    ])('a VirtualMCPServer %s', async (_, uid, labels, isTaken) => {
      const cluster = memoryCluster()
      const server = { metadata: { namespace: 'team', name: 'auth', uid: 'u-virtual' } } as VirtualMCPServer
      const owner = { object: server, type: virtualMcpServerType, kind: 'VirtualMCPServer' } as const
      const { 'hmac-6': _gone, ...data } = newKeyData()
      const rotatedAt = new Date(cluster.env.clock.now() - 1_000).toISOString()
      const metadata = {
        ...{ namespace: 'team', name: 'auth-authserver' },
        labels: { 'app.kubernetes.io/name': 'authserver', 'app.kubernetes.io/managed-by': 'toolhive-operator', ...labels },
        annotations: { 'toolhive.stacklok.dev/keys-rotated-at': rotatedAt },
        ownerReferences: [{ apiVersion: 'toolhive.stacklok.dev/v1beta1', kind: 'VirtualMCPServer', name: 'auth', uid, controller: true }],
      }
      cluster.put({ kind: 'Secret', metadata, data: { ...data, other: 'bWluZQ==' } } as never)
      const ensure = () => ensureManagedKeys(owner, cluster.env, new AbortController().signal)
      expect(await ensure()).toMatchObject({ ok: true, secret: 'auth-authserver-vmcp' })
      const made = cluster.object('Secret', 'auth-authserver-vmcp') as unknown as Keys
      expect(Object.keys(made.data).toSorted()).toEqual([...managedKeyFiles, ...managedHmacFiles].toSorted())
      expect(Object.entries(data).every(([file, value]) => made.data[file] === value)).toBe(isTaken)
      expect(made.metadata.annotations['toolhive.stacklok.dev/keys-rotated-at'] === rotatedAt).toBe(isTaken)
      expect((cluster.object('Secret', 'auth-authserver') as unknown as Keys).data['other']).toBe('bWluZQ==')
      // Once: what happens to the old one later means nothing.
      ;(cluster.object('Secret', 'auth-authserver') as unknown as Keys).data['key-0.pem'] = ''
      const before = structuredClone(made.data)
      await ensure()
      expect((cluster.object('Secret', 'auth-authserver-vmcp') as unknown as Keys).data).toEqual(before)
    })

    describe('with a Secret of its name that was made for a VirtualMCPServer of before', () => {
      const controlledBy = (kind: string, uid: string) => ({
        ownerReferences: [{ apiVersion: 'toolhive.stacklok.dev/v1beta1', kind, name: 'auth', uid, controller: true }],
      })
      const labels = { 'app.kubernetes.io/name': 'authserver', 'app.kubernetes.io/managed-by': 'toolhive-operator' }
      const old = (more: object = {}) => ({
        ...{ kind: 'Secret', data: newKeyData() },
        metadata: { name: 'auth-authserver', labels, ...controlledBy('VirtualMCPServer', 'u-virtual'), ...more },
      })
      const successor = (uid = 'u-virtual') => ({
        ...{ kind: 'Secret', data: {} },
        metadata: { name: 'auth-authserver-vmcp', ...controlledBy('VirtualMCPServer', uid) },
      })
      const volumes = [{ name: 'keys', projected: { sources: [{ secret: { name: 'auth-authserver' } }] } }]
      const pod = { kind: 'Pod', metadata: { name: 'auth-1', labels: { 'toolhive-name': 'auth' } }, spec: { volumes } }
      const deployment = { kind: 'Deployment', metadata: { name: 'auth' }, spec: { template: { spec: { volumes } } } }

      it('makes it its own, with new keys, when no pod mounts it any more', async () => {
        const cluster = memoryCluster()
        for (const object of [login(), old(), successor(), pod, deployment]) cluster.put(object as never)
        const before = structuredClone(keysOf(cluster))
        const conditionOf = async () => (await reconcile(cluster)).condition('SigningKeysManaged')
        expect(await conditionOf()).toMatchObject({ status: 'False', reason: 'SecretNameTaken' })
        cluster.remove('Pod', 'auth-1')
        expect(await conditionOf()).toMatchObject({ status: 'False' })
        cluster.put({ ...deployment, spec: { template: { spec: { volumes: [] } } } } as never)
        expect(await conditionOf()).toMatchObject({ status: 'True', reason: 'KeysMadeByOperator' })
        const { data, metadata } = keysOf(cluster) as Keys & { metadata: { ownerReferences: { uid: string }[] } }
        expect(Object.keys(data).toSorted()).toEqual([...managedKeyFiles, ...managedHmacFiles].toSorted())
        expect(Object.values(data).filter((value) => Object.values(before.data).includes(value))).toEqual([])
        expect(metadata.ownerReferences.map(({ uid }) => uid)).toEqual(['u-auth'])
        // Once.
        expect(await conditionOf()).toMatchObject({ status: 'True' })
        expect(keysOf(cluster).data).toEqual(data)
      })

      it.each([
        ['has no keys under another name', [old()]],
        ['is another one than the one with the keys', [old(), successor('u-other')]],
        [
          'has another name',
          [old({ ownerReferences: [{ ...controlledBy('VirtualMCPServer', 'u-virtual').ownerReferences[0], name: 'b' }] }), successor()],
        ],
        ['is no VirtualMCPServer', [old(controlledBy('MCPServer', 'u-virtual')), successor()]],
        ['did not have it from the operator', [old({ labels: {} }), successor()]],
      ])('leaves it alone when its owner %s', async (_, objects) => {
        const cluster = memoryCluster()
        for (const object of [login(), ...objects]) cluster.put(object as never)
        const before = structuredClone(keysOf(cluster))
        expect((await reconcile(cluster)).condition('SigningKeysManaged')).toMatchObject({ status: 'False', reason: 'SecretNameTaken' })
        expect(keysOf(cluster)).toEqual(before)
      })
    })

    it.each([
      ['its own', true, 'True'],
      ['that of somebody else', false, 'False'],
    ])('takes a Secret that its cache does not have yet for what it is: %s', async (_, isOwn, status) => {
      const cluster = memoryCluster()
      cluster.put(login())
      if (isOwn) await reconcile(cluster)
      else cluster.put({ kind: 'Secret', metadata: { name: 'auth-authserver' }, data: { mine: '' } } as never)
      const before = structuredClone(keysOf(cluster).data)
      const { caches } = cluster.env
      const stale = Object.assign(Object.create(caches) as typeof caches, {
        of: (spec: Parameters<typeof caches.of>[0]) => (spec.type.plural === 'secrets' ? { get: () => undefined } : caches.of(spec)),
      })
      const { condition } = await reconcile({ ...cluster, env: { ...cluster.env, caches: stale } })
      expect(condition('SigningKeysManaged')).toMatchObject({ status })
      expect(keysOf(cluster).data).toEqual(before)
    })
  })
})
