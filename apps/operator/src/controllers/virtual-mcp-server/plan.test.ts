import type { MCPExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import type { MCPServer } from '@thv/resources/kinds/mcp-server/schema'
import type { MCPServerEntry } from '@thv/resources/kinds/mcp-server-entry/schema'
import type { VirtualMCPServer } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { readVmcpConfig } from '@thv/vmcpconfig/read-vmcp-config'
import { describe, expect, it } from 'vitest'
import type { WorkloadPlan } from '../../deployment/deployment-plan.ts'
import { fixtureLookup, planFacts } from '../../testing/fixture-namespace.ts'
import type { GroupMembers } from './objects/group-members.ts'
import { planVirtualMcpServer } from './plan.ts'

const bearer = (secret: string) =>
  ({
    metadata: { name: secret },
    spec: { type: 'bearerToken', bearerToken: { tokenSecretRef: { name: secret, key: 'k' } } },
  }) as MCPExternalAuthConfig
const server = (name: string, spec: object = {}) =>
  ({
    ...{ metadata: { name, namespace: 'team' }, status: { url: 'http://x/mcp' } },
    spec: { image: 'i:1', transport: 'streamable-http', groupRef: { name: 'desk' }, ...spec },
  }) as unknown as MCPServer
const entry = (name: string, spec: object = {}) =>
  ({
    ...{ metadata: { name, namespace: 'team' }, status: { phase: 'Ready' } },
    spec: { remoteUrl: 'https://r.example.com/mcp', transport: 'streamable-http', groupRef: { name: 'desk' }, ...spec },
  }) as unknown as MCPServerEntry
const withToken = (name: string, secret: string) => entry(name, { externalAuthConfigRef: { name: secret } })
const withHeader = (name: string, headerName: string, secret: string) =>
  entry(name, { headerForward: { addHeadersFromSecret: [{ headerName, valueSecretRef: { name: secret, key: 'k' } }] } })

function plan(members: Partial<GroupMembers>, spec: object = {}, more: object = {}): WorkloadPlan {
  return planVirtualMcpServer({
    ...planFacts(),
    server: {
      metadata: { name: 'v', namespace: 'team', uid: 'u' },
      spec: { groupRef: { name: 'desk' }, incomingAuth: { type: 'anonymous' }, ...spec },
    } as unknown as VirtualMCPServer,
    members: { servers: [], remoteProxies: [], entries: [], ...members },
    definition: () => undefined,
    lookup: { ...fixtureLookup, externalAuthConfig: bearer },
    live: { config: undefined, deployment: undefined },
    ...more,
  })
}

const INLINE = { outgoingAuth: { source: 'inline' } }

function configOf({ children, blockers }: WorkloadPlan) {
  const text = children.flatMap((child) => (child.kind === 'ConfigMap' ? [child.object.data?.['config.yaml'] ?? ''] : []))[0]
  const read = readVmcpConfig(text ?? '')
  if (!read.ok) throw new TypeError(JSON.stringify({ blockers, problems: read.problems }))
  return read.config
}

function rulesOf({ children }: WorkloadPlan) {
  return children.flatMap((child) => (child.kind === 'Role' ? (child.object.rules ?? []) : []))
}

function variablesOf({ children }: WorkloadPlan) {
  const [deployment] = children.flatMap((child) => (child.kind === 'Deployment' ? [child.object] : []))
  return deployment?.spec?.template?.spec?.containers[0]?.['env'] as { name: string; valueFrom?: { secretKeyRef?: { name: string } } }[]
}

describe('plan of a VirtualMCPServer', () => {
  it('that discovers its backends may read the Secrets that members of its group name, and has none of them in its pods', () => {
    const made = plan({ servers: [server('a')], entries: [withToken('b', 'token'), withHeader('c', 'X-Key', 'key')] })
    expect(made.blockers).toEqual([])
    expect(configOf(made)).toMatchObject({ backends: [], groupRef: 'desk', outgoingAuth: { source: 'discovered' } })
    const ofSecrets = rulesOf(made).filter(({ resources }) => resources?.includes('secrets'))
    expect(ofSecrets).toEqual([
      { apiGroups: [''], resources: ['secrets'], resourceNames: ['key', 'token'], verbs: ['get', 'list', 'watch'] },
    ])
    expect(variablesOf(made).flatMap(({ valueFrom }) => valueFrom?.secretKeyRef?.name ?? [])).toEqual(['v-hmac-secret'])
  })

  it('has no right on Secrets where no member names one, as a rule without names is about all of them', () => {
    for (const made of [plan({ servers: [server('a')] }), plan({ entries: [withToken('b', 'token')] }, INLINE)])
      expect(rulesOf(made).filter(({ resources }) => resources?.includes('secrets'))).toEqual([])
  })

  it('[004-015] with inline backends lists them in the file, with their Secrets as variables only', () => {
    const made = plan({ servers: [server('a')], entries: [withToken('b', 'token')] }, INLINE)
    const config = configOf(made)
    expect(config.backends.map(({ name, type }) => [name, type])).toEqual([
      ['a', undefined],
      ['b', 'entry'],
    ])
    const tokenEnv = config.outgoingAuth.backends['b']?.bearerToken?.tokenEnv
    expect(variablesOf(made)).toContainEqual({ name: tokenEnv, valueFrom: { secretKeyRef: { name: 'token', key: 'k' } } })
  })

  it('[004-041] [004-111] [004-112] with inline backends mounts the CA bundle of an entry, and names the file in the list', () => {
    const caBundleRef = { configMapRef: { name: 'company-ca', key: 'root.pem' } }
    const made = plan({ entries: [entry('private', { caBundleRef })] }, INLINE)
    const path = '/etc/toolhive/ca-bundles/private/ca.crt'
    expect(configOf(made).backends).toMatchObject([{ name: 'private', caBundlePath: path }])
    const pod = made.children.flatMap((child) => (child.kind === 'Deployment' ? [child.object.spec?.template?.spec] : []))[0]
    const mounts = (pod?.containers[0]?.['volumeMounts'] ?? []) as { name: string; mountPath: string }[]
    const mount = mounts.find(({ mountPath }) => path.startsWith(mountPath))
    expect(pod?.['volumes']).toContainEqual({
      name: mount?.name,
      configMap: expect.objectContaining({ name: 'company-ca', items: [{ key: 'root.pem', path: 'ca.crt' }] }),
    })
    expect(JSON.stringify(variablesOf(made))).not.toMatch(/company-ca|BEGIN CERTIFICATE/)
  })

  it.each([
    ['tokens', [withToken('a--b', 'one'), withToken('a.b', 'two')]],
    ['values of headers', [withHeader('api', 'X-Key', 'one'), withHeader('key-api', 'X', 'two')]],
    ['headers', [entry('a-b'), withHeader('a.b', 'X-Key', 'two')]],
  ])('leaves out a backend whose %s would be in the variable of another', (_, entries) => {
    const made = plan({ entries }, INLINE)
    const [first, second] = entries.map(({ metadata }) => metadata.name)
    expect(configOf(made).backends.map(({ name }) => name)).toEqual([first])
    expect(variablesOf(made).flatMap(({ valueFrom }) => valueFrom?.secretKeyRef?.name ?? [])).not.toContain('two')
    const { message } = made.conditions.find(({ type }) => type === 'BackendsDiscovered') ?? {}
    expect(message).toMatch(new RegExp(`MCPServerEntry ${second}: \\w+ is for ${first} already: rename one of them`))
  })
})

describe('plan of a VirtualMCPServer with an authorization server', () => {
  const issuer = 'https://mcp.example.com'
  const resourceUrl = `${issuer}/mcp`
  const provider = (name: string) => ({
    ...{ name, type: 'oidc' },
    oidcConfig: { issuerUrl: `https://${name}.example.com`, clientId: 'c', clientSecretRef: { name, key: 'client-secret' } },
  })
  const authServerConfig = { issuer, upstreamProviders: [provider('corp'), provider('tickets')] }
  const oidcConfig = { type: 'inline', resourceUrl, inline: { issuer, audience: resourceUrl, scopes: ['openid', 'mcp'] } }
  const spec = { ...INLINE, incomingAuth: { type: 'oidc', oidcConfig }, authServerConfig }
  const injects = (providerName: string) =>
    ({ metadata: { name: providerName }, spec: { type: 'upstreamInject', upstreamInject: { providerName } } }) as MCPExternalAuthConfig
  const lookup = {
    ...fixtureLookup,
    externalAuthConfig: injects,
    secret: () => ({ uid: 'u', resourceVersion: '1', keys: new Set(['client-secret']) }),
  }
  const more = { lookup, keys: { ok: true, secret: 'v-authserver', untilRotationMs: 1 } }
  const conditionOf = ({ conditions }: WorkloadPlan, type: string) => conditions.find((condition) => condition.type === type)
  const podOf = ({ children }: WorkloadPlan) =>
    children.flatMap((child) => (child.kind === 'Deployment' ? [child.object.spec?.template?.spec] : []))[0]

  it('writes it into the file, with keys and secrets as files, and sends each entry the token of its provider', () => {
    const made = plan({ servers: [server('a')], entries: [withToken('b', 'tickets')] }, spec, more)
    expect([made.blockers, made.unsupported]).toEqual([[], []])
    const config = configOf(made)
    expect(config.authServer).toMatchObject({ issuer, allowed_audiences: [resourceUrl], scopes_supported: ['openid', 'mcp'] })
    expect(config.authServer?.upstreams.map(({ name }) => name)).toEqual(['corp', 'tickets'])
    expect(config.outgoingAuth.backends['b']).toEqual({ type: 'upstream_inject', upstreamInject: { providerName: 'tickets' } })
    const volumes = (podOf(made)?.['volumes'] ?? []) as { name: string; projected?: object }[]
    expect(volumes.flatMap(({ name, projected }) => (projected ? [name] : []))).toEqual([
      'authserver-keys',
      'authserver-hmac',
      'authserver-clients',
    ])
    expect(JSON.stringify(volumes)).toContain('v-authserver')
    expect(conditionOf(made, 'AuthServerConfigValidated')).toMatchObject({ status: 'True', reason: 'AuthServerConfigValid' })
    expect(conditionOf(made, 'SigningKeysManaged')).toMatchObject({ status: 'True' })
    expect(conditionOf(made, 'IdentitySynthesized')).toMatchObject({ status: 'False' })
  })

  it('runs one replica while logins are in memory', () => {
    const made = plan({ servers: [server('a')] }, { ...spec, replicas: 3 }, more)
    expect(conditionOf(made, 'AuthServerReplicaCapped')).toMatchObject({ status: 'True' })
    expect(made.children.flatMap((child) => (child.kind === 'Deployment' ? [child.object.spec?.replicas] : []))).toEqual([1])
  })

  it('leaves out an entry whose provider it does not have', () => {
    const made = plan({ servers: [server('a')], entries: [withToken('b', 'chat')] }, spec, more)
    expect(configOf(made).backends.map(({ name }) => name)).toEqual(['a'])
    expect(conditionOf(made, 'DiscoveredAuthConfig-b')?.message).toMatch(/spec\.authServerConfig has no provider chat/)
  })

  it('names all problems at once', () => {
    const wrong = {
      ...spec,
      incomingAuth: { type: 'oidc', oidcConfig: { ...oidcConfig, inline: { ...oidcConfig.inline, audience: 'x' } } },
      authServerConfig: { ...authServerConfig, upstreamProviders: [provider('corp'), provider('corp')] },
    }
    const made = plan({ servers: [server('a')] }, wrong, { ...more, lookup: { ...lookup, secret: () => undefined } })
    const message = made.blockers.find(({ condition }) => condition === 'AuthServerConfigValidated')?.message
    expect(message).toMatch(/upstreamProviders\[\]\.name/)
    expect(message).toMatch(/spec\.authServerConfig\.upstreamProviders\[corp\]\.oidcConfig\.clientSecretRef names Secret corp/)
    expect(message).toMatch(/the audience of spec\.incomingAuth\.oidcConfig must be its resourceUrl/)
  })
})
