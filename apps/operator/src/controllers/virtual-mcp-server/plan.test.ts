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

function plan(members: Partial<GroupMembers>, spec: object = {}): WorkloadPlan {
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
