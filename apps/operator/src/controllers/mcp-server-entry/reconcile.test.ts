import { rootCertificates } from 'node:tls'
import { done, getCondition } from '@thv/kube'
import { MCPServerEntryCondition } from '@thv/resources/kinds/mcp-server-entry/constants'
import type { MCPServerEntry } from '@thv/resources/kinds/mcp-server-entry/schema'
import { fixturesOf } from '@thv/resources/testing/fixtures'
import { describe, expect, it } from 'vitest'
import { type MemoryCluster, memoryCluster } from '../../testing/memory-cluster.ts'
import { reconcileMcpServerEntry } from './reconcile.ts'

const PEM = rootCertificates[0] ?? ''
const BASE = { remoteUrl: 'https://mcp.example.com/mcp', transport: 'streamable-http', groupRef: { name: 'engineering' } }
const entry = (spec: object = {}) => ({ kind: 'MCPServerEntry', metadata: { name: 'remote' }, spec: { ...BASE, ...spec } }) as never
const group = (phase = 'Ready', metadata: object = {}) =>
  ({ kind: 'MCPGroup', metadata: { name: 'engineering', ...metadata }, spec: {}, status: { phase } }) as never
const configMap = (name: string, data: Record<string, string>) => ({ kind: 'ConfigMap', metadata: { name }, data }) as never
const secret = (name: string, ...keys: string[]) =>
  ({ kind: 'Secret', metadata: { name }, data: Object.fromEntries(keys.map((key) => [key, ''])) }) as never
const auth = (spec: object) => ({ kind: 'MCPExternalAuthConfig', metadata: { name: 'auth' }, spec }) as never

async function reconcile(cluster: MemoryCluster, name = 'remote') {
  const context = { signal: new AbortController().signal, attempt: 1 }
  const outcome = await reconcileMcpServerEntry({ namespace: 'team', name }, cluster.env, context)
  const object = cluster.object<MCPServerEntry>('MCPServerEntry', name)
  const { status } = object ?? {}
  return { outcome, object, status, condition: (type: string) => getCondition(status?.conditions as never, type) }
}

function clusterWith(...objects: never[]): MemoryCluster {
  const cluster = memoryCluster()
  for (const object of objects) cluster.put(object)
  return cluster
}

describe('reconcileMcpServerEntry', () => {
  it('is Ready when everything it names is there, with one write and nothing else', async () => {
    const cluster = clusterWith(entry(), group())
    const { outcome, object, status } = await reconcile(cluster)
    expect(outcome).toEqual(done)
    expect(status).toMatchObject({ phase: 'Ready', group: 'engineering', observedGeneration: 1 })
    expect(status?.conditions?.map(({ type, status: is, reason }) => [type, is, reason])).toEqual([
      ['Ready', 'True', 'ConfigValid'],
      ['Valid', 'True', 'ConfigValid'],
      ['RemoteURLValidated', 'True', 'RemoteURLValid'],
      ['GroupRefValidated', 'True', 'GroupRefIsValid'],
      ['ExternalAuthConfigValidated', 'True', 'AuthConfigNotConfigured'],
      ['CABundleRefValidated', 'True', 'CABundleRefNotConfigured'],
    ])
    expect(object?.metadata.finalizers).toBeUndefined()
    expect(cluster.writes).toEqual([{ plural: 'mcpserverentries', name: 'remote', subresource: 'status' }])
    expect(cluster.events).toEqual([])
    await reconcile(cluster)
    expect(cluster.writes).toHaveLength(1)
  })

  it('tells of everything that is wrong at once, and heals', async () => {
    const spec = {
      remoteUrl: 'https://169.254.169.254/mcp',
      externalAuthConfigRef: { name: 'auth' },
      caBundleRef: { configMapRef: { name: 'ca' } },
      headerForward: {
        addHeadersFromSecret: [
          { headerName: 'X-A', valueSecretRef: { name: 'one', key: 'a' } },
          { headerName: 'X-B', valueSecretRef: { name: 'two', key: 'b' } },
        ],
      },
    }
    const cluster = clusterWith(entry(spec), secret('two', 'other'))
    const { status, condition } = await reconcile(cluster)
    expect(status?.phase).toBe('Failed')
    expect(condition('RemoteURLValidated')).toMatchObject({ status: 'False', reason: 'RemoteURLInvalid' })
    expect(condition('GroupRefValidated')).toMatchObject({ status: 'False', reason: 'GroupRefNotFound' })
    expect(condition('ExternalAuthConfigValidated')).toMatchObject({ status: 'False', reason: 'AuthConfigNotFound' })
    expect(condition('CABundleRefValidated')).toMatchObject({ status: 'False', reason: 'CABundleRefNotFound' })
    const headers = condition('HeaderSecretRefsValidated')
    expect(headers).toMatchObject({ status: 'False', reason: 'HeaderSecretNotFound' })
    expect(headers?.message).toMatch(/Secret one.*; .*key b, which Secret two/)
    for (const type of ['Valid', 'Ready']) {
      expect(condition(type)).toMatchObject({ status: 'False', reason: 'ConfigInvalid' })
      expect(condition(type)?.message).toMatch(/RemoteURLValidated: .*GroupRefValidated: .*HeaderSecretRefsValidated: /s)
    }
    expect(cluster.events.every(({ type }) => type === 'Warning')).toBe(true)
    expect(cluster.events.map(({ reason }) => reason)).toEqual([
      'ConfigInvalid',
      'RemoteURLInvalid',
      'GroupRefNotFound',
      'AuthConfigNotFound',
      'CABundleRefNotFound',
      'HeaderSecretNotFound',
    ])

    cluster.put(entry({ ...spec, remoteUrl: 'https://mcp.example.com' }))
    for (const object of [
      group(),
      auth({ type: 'unauthenticated' }),
      configMap('ca', { 'ca.crt': PEM }),
      secret('one', 'a'),
      secret('two', 'b'),
    ]) {
      cluster.put(object)
    }
    const healed = await reconcile(cluster)
    expect(healed.status).toMatchObject({ phase: 'Ready', observedGeneration: 2 })
    expect(healed.condition('HeaderSecretRefsValidated')).toMatchObject({ status: 'True', reason: 'HeaderSecretsValid' })
    expect(cluster.events.slice(6).every(({ type }) => type === 'Normal')).toBe(true)
  })

  it.each<[string, object, string]>([
    ['is not ready yet', { status: { phase: 'Pending' } }, 'GroupRefNotReady'],
    ['has not been looked at', { status: undefined }, 'GroupRefNotReady'],
    ['is being deleted', { metadata: { name: 'engineering', deletionTimestamp: 'now', finalizers: ['x'] } }, 'GroupRefNotFound'],
  ])('says that its group %s', async (_, change, reason) => {
    const cluster = clusterWith(entry(), { ...(group() as object), ...change } as never)
    const { status, condition } = await reconcile(cluster)
    expect(condition('GroupRefValidated')).toMatchObject({ status: 'False', reason })
    expect(status).toMatchObject({ phase: 'Failed', group: 'engineering' })
  })

  const provider = (name: string) => ({ name, type: 'oidc', oidcConfig: { issuerUrl: 'https://idp.example.com', clientId: 'c' } })
  const login = (...names: string[]) => ({
    type: 'embeddedAuthServer',
    embeddedAuthServer: { issuer: 'https://mcp.example.com', upstreamProviders: names.map(provider) },
  })

  it.each<[string, object, string, string]>([
    ['several upstream providers', login('a', 'b'), 'False', 'MultiUpstreamNotSupported'],
    ['a server without a way to log in', login('a'), 'False', 'AuthConfigTypeNotSupported'],
    ['a configuration that is not valid', { type: 'headerInjection' }, 'False', 'AuthConfigInvalid'],
    ['a type of an older schema', { type: 'obo' }, 'False', 'AuthConfigTypeNotSupported'],
    [
      'a Secret that is missing',
      { type: 'bearerToken', bearerToken: { tokenSecretRef: { name: 's', key: 'k' } } },
      'False',
      'AuthConfigInvalid',
    ],
    ['what can be used', { type: 'upstreamInject', upstreamInject: { providerName: 'git' } }, 'True', 'AuthConfigValid'],
  ])('knows an MCPExternalAuthConfig with %s', async (_, spec, status, reason) => {
    const cluster = clusterWith(entry({ externalAuthConfigRef: { name: 'auth' } }), group(), auth(spec))
    expect((await reconcile(cluster)).condition('ExternalAuthConfigValidated')).toMatchObject({ status, reason })
  })

  it.each<[string, Record<string, string> | undefined, object, string, string]>([
    ['is not there', undefined, {}, 'False', 'CABundleRefNotFound'],
    ['lacks the key', { other: PEM }, {}, 'False', 'CABundleRefNotFound'],
    ['is no PEM', { 'ca.crt': 'nothing' }, {}, 'False', 'CABundleRefInvalid'],
    ['holds a broken certificate', { 'ca.crt': PEM.replace(/[A-Z]{4}/, 'AAAA').slice(0, -80) }, {}, 'False', 'CABundleRefInvalid'],
    [
      'holds a key',
      { 'ca.crt': `${PEM}\n-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----` },
      {},
      'False',
      'CABundleRefInvalid',
    ],
    ['is fine', { 'ca.crt': `${PEM}\n${rootCertificates[1]}` }, {}, 'True', 'CABundleRefValid'],
    ['is fine under another key', { 'root.pem': PEM }, { key: 'root.pem' }, 'True', 'CABundleRefValid'],
    ['is not there, and need not be', undefined, { optional: true }, 'True', 'CABundleRefNotConfigured'],
    ['is wrong, although it need not be there', { 'ca.crt': 'nothing' }, { optional: true }, 'False', 'CABundleRefInvalid'],
  ])('says that the CA bundle %s', async (_, data, ref, status, reason) => {
    const cluster = clusterWith(entry({ caBundleRef: { configMapRef: { name: 'ca', ...ref } } }), group())
    if (data) cluster.put(configMap('ca', data))
    const result = await reconcile(cluster)
    expect(result.condition('CABundleRefValidated')).toMatchObject({ status, reason })
    expect(result.status?.phase).toBe(status === 'True' ? 'Ready' : 'Failed')
    expect(JSON.stringify(result.status)).not.toContain('-----BEGIN')
  })

  it.each<[string, object, Parameters<typeof memoryCluster>[0], string]>([
    ['http', { remoteUrl: 'http://mcp.example.com' }, {}, 'False'],
    ['http that is wanted', { remoteUrl: 'http://mcp.example.com', insecureAllowHTTP: true }, {}, 'True'],
    ['a private address', { remoteUrl: 'https://10.0.0.1' }, {}, 'True'],
    [
      'a private address where those are denied',
      { remoteUrl: 'https://10.0.0.1' },
      { remotes: { denyPrivate: true, allowLoopback: false, blockedAddresses: [] } },
      'False',
    ],
    [
      'the exception to that',
      { remoteUrl: 'https://10.0.0.1', allowPrivateEndpoint: true },
      { remotes: { denyPrivate: true, allowLoopback: false, blockedAddresses: [] } },
      'True',
    ],
    ['localhost', { remoteUrl: 'https://localhost/mcp' }, {}, 'False'],
    [
      'localhost where it is allowed',
      { remoteUrl: 'https://localhost/mcp' },
      { remotes: { denyPrivate: false, allowLoopback: true, blockedAddresses: [] } },
      'True',
    ],
    ['spellings that differ', { remoteURL: 'https://other.example.com' }, {}, 'False'],
  ])('knows %s', async (_, spec, settings, status) => {
    const cluster = memoryCluster(settings)
    cluster.put(entry(spec))
    cluster.put(group())
    const result = await reconcile(cluster)
    expect(result.condition('RemoteURLValidated')).toMatchObject({ status })
    expect(result.status?.phase).toBe(status === 'True' ? 'Ready' : 'Failed')
  })

  it('takes conditions away that say nothing any more', async () => {
    const header = { headerForward: { addHeadersFromSecret: [{ headerName: 'X-A', valueSecretRef: { name: 'one', key: 'a' } }] } }
    const cluster = clusterWith(entry(header), group(), secret('one', 'a'))
    expect((await reconcile(cluster)).condition('HeaderSecretRefsValidated')).toBeDefined()
    cluster.put(entry())
    expect((await reconcile(cluster)).condition('HeaderSecretRefsValidated')).toBeUndefined()
  })

  it('shows a problem of the spec that belongs to no reference', async () => {
    const one = [{ headerName: 'X-A', valueSecretRef: { name: 'one', key: 'a' } }]
    const two = [{ headerName: 'X-A', valueSecretRef: { name: 'one', key: 'b' } }]
    const cluster = clusterWith(
      entry({ headerForward: { addHeadersFromSecret: one, addHeadersFromSecrets: two } }),
      group(),
      secret('one', 'a'),
    )
    const { status, condition } = await reconcile(cluster)
    expect(status?.phase).toBe('Failed')
    expect(condition('Valid')?.message).toContain('two spellings')
  })

  it('reads both spellings of the group', async () => {
    const { status } = await reconcile(clusterWith(entry({ groupRef: 'engineering' }), group()))
    expect(status).toMatchObject({ phase: 'Ready', group: 'engineering' })
  })

  it('does not write what it found about an older spec', async () => {
    const cluster = clusterWith(entry(), group())
    cluster.meanwhile = () => {
      cluster.meanwhile = () => {}
      cluster.put(entry({ groupRef: 'other' }))
    }
    const running = reconcile(cluster)
    for (let n = 0; n < 5; n++) await cluster.clock.advance(1_000)
    expect((await running).status).toBeUndefined()
    expect(cluster.writes).toEqual([])
    expect((await reconcile(cluster)).status).toMatchObject({ phase: 'Failed', group: 'other' })
  })

  it('leaves an entry alone that is being deleted', async () => {
    const cluster = clusterWith({ ...(entry() as object), metadata: { name: 'remote', deletionTimestamp: 'now' } } as never)
    expect((await reconcile(cluster)).outcome).toEqual(done)
    expect(cluster.writes).toEqual([])
  })

  it.each(fixturesOf('mcpserverentries'))('$manifest.metadata.name has all its conditions and no others', async ({ manifest }) => {
    const cluster = clusterWith(manifest as never)
    const { status } = await reconcile(cluster, manifest.metadata.name)
    const types: string[] = status?.conditions?.map(({ type }) => type) ?? []
    expect(types).toEqual(
      expect.arrayContaining(['Ready', 'Valid', 'GroupRefValidated', 'ExternalAuthConfigValidated', 'CABundleRefValidated']),
    )
    expect(Object.values(MCPServerEntryCondition) as string[]).toEqual(expect.arrayContaining(types))
  })
})
