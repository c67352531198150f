import type { MCPExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import type { MCPRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import type { MCPServer } from '@thv/resources/kinds/mcp-server/schema'
import type { MCPServerEntry } from '@thv/resources/kinds/mcp-server-entry/schema'
import { describe, expect, it } from 'vitest'
import { accessRules, DISCOVERED_RESOURCES } from './discovery-rules.ts'
import type { ResolvedMember } from './member-backend.ts'
import { type MemberContext, type MemberResources, resolveMembers } from './resolve-member.ts'

const NONE: MemberResources = { MCPServer: [], MCPRemoteProxy: [], MCPServerEntry: [] }
const server = (name: string, spec: object = {}, more: object = {}) =>
  ({
    metadata: { name, ...more },
    spec: { image: 'i:1', groupRef: 'team', ...spec },
    status: { url: 'http://127.0.0.1:1/mcp' },
  }) as MCPServer
const proxy = (name: string, spec: object = {}) =>
  ({
    metadata: { name },
    spec: { remoteUrl: 'https://r.example.com/mcp', groupRef: { name: 'team' }, ...spec },
    status: { url: 'http://x' },
  }) as MCPRemoteProxy
const entry = (name: string, spec: object = {}, phase = 'Ready') =>
  ({
    metadata: { name },
    spec: { remoteUrl: 'https://r.example.com/mcp', transport: 'streamable-http', groupRef: { name: 'team' }, ...spec },
    status: { phase },
  }) as unknown as MCPServerEntry

function resolve(
  resources: Partial<MemberResources>,
  { auths = {}, ...more }: Partial<MemberContext> & { auths?: Record<string, object> } = {},
) {
  return resolveMembers(
    { ...NONE, ...resources },
    {
      ...{ group: 'team', namespace: 'ns', clusterDomain: 'cluster.local', incoming: {}, ...more },
      externalAuthConfig: (name) =>
        Object.hasOwn(auths, name) ? ({ spec: auths[name] } as Pick<MCPExternalAuthConfig, 'spec'>) : undefined,
    },
  )
}

function member(result: ResolvedMember | undefined) {
  if (!result?.ok) throw new TypeError(JSON.stringify(result))
  return result.member
}

const problems = (results: readonly ResolvedMember[]) =>
  results.flatMap((result) => (result.ok ? [] : [`${result.kind} ${result.name} ${result.problem.reason}`]))

describe('resolveMembers', () => {
  it('[004-119] [004-121] [004-123] lists the members of all kinds with one table, sorted by name', () => {
    const results = resolve({
      MCPServer: [server('b', { transport: 'sse', proxyPort: 9000 }), server('other', { groupRef: { name: 'else' } })],
      MCPRemoteProxy: [proxy('c')],
      MCPServerEntry: [entry('a', { insecureAllowHTTP: true, allowPrivateEndpoint: true })],
    })
    expect(results.map((result) => member(result).backend)).toEqual([
      {
        name: 'a',
        url: 'https://r.example.com/mcp',
        transport: 'streamable-http',
        type: 'entry',
        allowPrivate: true,
        metadata: { group: 'team', namespace: 'ns', workload_type: 'server_entry' },
      },
      {
        name: 'b',
        url: 'http://mcp-b-proxy.ns.svc.cluster.local:9000/sse#b',
        transport: 'sse',
        allowPrivate: false,
        metadata: { group: 'team', namespace: 'ns', workload_type: 'mcp_server' },
      },
      {
        name: 'c',
        url: 'http://mcp-c-remote-proxy.ns.svc.cluster.local:8080/mcp',
        transport: 'streamable-http',
        allowPrivate: false,
        metadata: { group: 'team', namespace: 'ns', workload_type: 'remote_proxy' },
      },
    ])
  })

  it('gives a name that several kinds have to the first of them and reports the others', () => {
    const results = resolve({ MCPServer: [server('x')], MCPRemoteProxy: [proxy('x')], MCPServerEntry: [entry('x')] })
    expect(results.filter(({ ok }) => ok).map((result) => member(result).kind)).toEqual(['MCPServer'])
    expect(problems(results)).toEqual(['MCPRemoteProxy x NameTaken', 'MCPServerEntry x NameTaken'])
  })

  it('says which resources serve, each in the phase of its kind', () => {
    const at = <T extends object>(resource: T, phase: string) => ({ ...resource, status: { url: 'http://x', phase } }) as T
    const results = resolve({
      MCPServer: [at(server('a'), 'Running'), at(server('b'), 'Pending'), server('c')],
      MCPRemoteProxy: [at(proxy('d'), 'Ready'), at(proxy('e'), 'Failed')],
      MCPServerEntry: [entry('f')],
    })
    expect(results.flatMap((result) => (member(result).isReady ? [member(result).backend.name] : []))).toEqual(['a', 'd', 'f'])
  })

  it('leaves out members that are not ready or are leaving', () => {
    const results = resolve({
      MCPServer: [{ ...server('a'), status: {} } as MCPServer, server('b', {}, { deletionTimestamp: '2026-01-01T00:00:00Z' })],
      MCPServerEntry: [entry('c', {}, 'Failed')],
    })
    expect(problems(results)).toEqual(['MCPServer a NotReady', 'MCPServer b NotReady', 'MCPServerEntry c NotReady'])
  })

  it.each([
    ['headerInjection', { headerName: 'X-Key', valueSecretRef: { name: 's', key: 'k' } }, 'header_injection'],
    ['bearerToken', { tokenSecretRef: { name: 's', key: 'k' } }, 'bearer_token'],
    [
      'clientCredentials',
      { clientId: 'c', clientSecretRef: { name: 's', key: 'k' }, tokenUrl: 'https://i.example.com/t' },
      'client_credentials',
    ],
    [
      'tokenExchange',
      { audience: 'a', clientId: 'c', clientSecretRef: { name: 's', key: 'k' }, tokenUrl: 'https://i.example.com/t' },
      'token_exchange',
    ],
  ])('carries %s of an entry, with the secret in a variable', (type, block, expected) => {
    const auths = { own: { type, [type]: block } }
    const { auth, secrets, authConfigRef } = member(
      resolve({ MCPServerEntry: [entry('my.api', { externalAuthConfigRef: { name: 'own' } })] }, { auths })[0],
    )
    expect(auth?.type).toBe(expected)
    expect(authConfigRef).toBe('own')
    expect(secrets).toEqual([{ name: 'TOOLHIVE_SECRET_OUTGOING_AUTH_MY__API', secret: { name: 's', key: 'k' } }])
    expect(JSON.stringify(auth)).toContain('TOOLHIVE_SECRET_OUTGOING_AUTH_MY__API')
  })

  it('never calls an entry without the authentication that it asks for', () => {
    const one = entry('a', { externalAuthConfigRef: { name: 'own' } })
    expect(problems(resolve({ MCPServerEntry: [one] }))).toEqual(['MCPServerEntry a AuthUnavailable'])
    const auths = { own: { type: 'awsSts', awsSts: { region: 'r' } } }
    expect(problems(resolve({ MCPServerEntry: [one] }, { auths }))).toEqual(['MCPServerEntry a Unsupported'])
  })

  it('names the ConfigMap of a CA bundle and the variables of forwarded headers', () => {
    const headerForward = {
      addPlaintextHeaders: { 'X-Plain': 'p' },
      addHeadersFromSecret: [{ headerName: 'X-Secret', valueSecretRef: { name: 's', key: 'k' } }],
    }
    const found = member(resolve({ MCPServerEntry: [entry('a', { headerForward, caBundleRef: { configMapRef: { name: 'ca' } } })] })[0])
    expect(found.caBundle).toEqual({ name: 'ca', key: 'ca.crt', optional: false })
    expect(found.headers?.variable).toBe('TOOLHIVE_HEADER_FORWARD_A')
    expect(JSON.parse(found.headers?.manifest ?? '')).toEqual({
      addPlaintextHeaders: { 'X-Plain': 'p' },
      addHeadersFromSecret: { 'X-Secret': 'HEADER_FORWARD_X_SECRET_A' },
    })
    expect(found.secrets).toEqual([{ name: 'TOOLHIVE_SECRET_HEADER_FORWARD_X_SECRET_A', secret: { name: 's', key: 'k' } }])
  })

  it('passes the token of callers to a proxy of the same issuer and audience only, and applies no authentication twice', () => {
    const oidcConfig = { type: 'inline', inline: { issuer: 'https://i.example.com', audience: 'mcp' } }
    const spec = { oidcConfig, externalAuthConfigRef: { name: 'own' } }
    const incoming = (audience: string) => ({
      incoming: { oidc: { issuer: 'https://i.example.com', audience } } as MemberContext['incoming'],
    })
    const same = member(resolve({ MCPRemoteProxy: [proxy('a', spec)] }, incoming('mcp'))[0])
    expect(same).toMatchObject({ auth: { type: 'caller_token' }, warning: undefined, secrets: [] })
    const other = member(resolve({ MCPRemoteProxy: [proxy('a', spec)] }, incoming('else'))[0])
    expect(other).toMatchObject({ auth: undefined, warning: { reason: 'AudienceDiffers' } })
    const noOidc = member(resolve({ MCPRemoteProxy: [proxy('a')] }, incoming('mcp'))[0])
    expect(noOidc).toMatchObject({ auth: undefined, warning: undefined })
  })

  it('never passes the token of callers to an entry', () => {
    const oidc = { issuer: 'https://i.example.com', audience: 'mcp' } as MemberContext['incoming']['oidc']
    expect(member(resolve({ MCPServerEntry: [entry('a')] }, { incoming: oidc === undefined ? {} : { oidc } })[0]).auth).toBeUndefined()
  })
})

describe('accessRules', () => {
  const about = (source: 'discovered' | 'inline', secrets: string[]) => accessRules({ name: 'v', source, secrets, configMaps: ['ca'] })

  it('reads nothing of others beside source inline', () => {
    expect(about('inline', ['s']).flatMap(({ resources }) => resources)).toEqual([
      'virtualmcpservers',
      'virtualmcpservers/status',
      'leases',
      'leases',
      'events',
    ])
  })

  it('reads Secrets and ConfigMaps by name only', () => {
    const rules = about('discovered', ['s', 's', 'a'])
    expect(rules.find(({ resources }) => resources.includes('secrets'))?.resourceNames).toEqual(['a', 's'])
    expect(rules.find(({ resources }) => resources.includes('configmaps'))?.resourceNames).toEqual(['ca', 'v-vmcp-config'])
    expect(about('discovered', []).some(({ resources }) => resources.includes('secrets'))).toBe(false)
    expect(rules.flatMap(({ resources }) => resources)).toEqual(expect.arrayContaining([...DISCOVERED_RESOURCES]))
  })
})
