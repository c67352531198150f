import { readFileSync } from 'node:fs'
import type { Deployment, Service } from '@thv/kube'
import type { MCPRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import type { MCPServer } from '@thv/resources/kinds/mcp-server/schema'
import type { MCPServerEntry } from '@thv/resources/kinds/mcp-server-entry/schema'
import { manifestsIn } from '@thv/resources/testing/fixtures'
import { describe, expect, it } from 'vitest'
import { planMcpRemoteProxy } from './controllers/mcp-remote-proxy/plan.ts'
import { planMcpServer } from './controllers/mcp-server/plan.ts'
import { entryStatus } from './controllers/mcp-server-entry/status.ts'
import type { WorkloadPlan } from './deployment/deployment-plan.ts'
import { serverLabels, serverSelector } from './proxy/labels.ts'
import { snapshot } from './proxy/resolve/testing/snapshot.ts'
import type { Lookup } from './references/lookup.ts'
import { fixtureLookup, planFacts } from './testing/fixture-namespace.ts'
import { conditionWords, runConfigOf, runConfigProblems } from './testing/plan-checks.ts'

/* Sentences of the design documents that can be seen in what the operator plans. What needs a cluster is in the cluster tests. */

type Spec = MCPServer['spec']

const metadata = { name: 'demo', namespace: 'team', uid: 'uid-demo', generation: 1 }
const image = 'registry.example.com/mcp/server:v1.0.0'
const remoteUrl = 'https://mcp.example.com/mcp'

const server = (spec: Partial<Spec> = {}, lookup: Lookup = fixtureLookup): WorkloadPlan =>
  planMcpServer({ ...planFacts(), lookup, server: { metadata, spec: { image, ...spec } } as MCPServer })

const proxy = (spec: Partial<MCPRemoteProxy['spec']> = {}, remotes = OPEN, lookup: Lookup = fixtureLookup): WorkloadPlan =>
  planMcpRemoteProxy({ ...planFacts({ remotes }), lookup, proxy: { metadata, spec: { remoteUrl, ...spec } } as MCPRemoteProxy })

const OPEN = { denyPrivate: false, allowLoopback: false, blockedAddresses: [] }

const entryOf = (url: string, spec: Partial<MCPServerEntry['spec']> = {}, remotes = OPEN) =>
  entryStatus({ metadata, spec: { remoteUrl: url, transport: 'sse', groupRef: 'engineering', ...spec } } as MCPServerEntry, {
    ...planFacts({ remotes }),
    lookup: fixtureLookup,
  })

describe('objects of an MCPServer', () => {
  it('the proxy pod mounts the RunConfig ConfigMap read-only [002-014]', () => {
    const { volumes = [] } = podOf(server())
    const volume = volumes.find((each) => (each['configMap'] as { name?: string } | undefined)?.name === 'demo-runconfig')
    const mount = (containerOf(server())['volumeMounts'] as { name: string }[]).find(({ name }) => name === volume?.['name'])
    expect(mount).toMatchObject({ readOnly: true })
  })

  it('the proxy Service selects proxy pods only, never those of the StatefulSet [002-018]', () => {
    const [service] = childrenOf<Service>(server(), 'Service')
    const selector = Object.entries(service?.spec?.selector ?? {})
    const matches = (labels: Readonly<Record<string, string>>) => selector.every(([key, value]) => labels[key] === value)
    expect(selector.length).toBeGreaterThan(0)
    expect(matches(deploymentOf(server()).spec?.template?.metadata?.labels ?? {})).toBe(true)
    expect(matches({ ...serverLabels({ name: 'demo', transport: 'stdio', proxyPort: 8080 }), ...serverSelector('demo') })).toBe(false)
  })

  it('the proxy container runs the runner image with command thv-proxyrunner and argument run [002-202]', () => {
    expect(containerOf(server())).toMatchObject({ image: 'example.com/proxyrunner:1', command: ['thv-proxyrunner'], args: ['run'] })
  })

  it('the proxy Service exposes the port on which the proxy listens [002-207]', () => {
    const plan = server({ proxyPort: 9191 })
    const [service] = childrenOf<Service>(plan, 'Service')
    expect(service?.spec?.ports).toMatchObject([{ port: 9191, targetPort: 9191 }])
    expect(runConfigOf(plan)).toMatchObject({ port: 9191 })
  })

  it('the ConfigMap holds the whole RunConfig as JSON that the runner reads back [002-210]', () => {
    const plan = server({ transport: 'streamable-http', args: ['a'], env: [{ name: 'B', value: 'c' }], tools: ['t'], mcpPort: 9000 })
    expect(runConfigProblems(plan)).toEqual([])
    expect(runConfigOf(plan)).toMatchObject({ image, cmd_args: ['a'], env_vars: { B: 'c' }, tools_filter: ['t'], target_port: 9000 })
  })

  it('without serviceAccount there is a ServiceAccount X-sa for the server; with it, none [002-212]', () => {
    const accounts = (plan: WorkloadPlan) => childrenOf(plan, 'ServiceAccount').map((account) => account.metadata.name)
    expect(accounts(server())).toContain('demo-sa')
    expect(accounts(server({ serviceAccount: 'mine' }))).not.toContain('demo-sa')
  })

  it('all of them live in its namespace [002-215]', () => {
    const { guards, children, alias } = server({ permissionProfile: { name: 'none' } })
    const objects = [...[...guards, ...children].map(({ object }) => object), ...(alias ? [alias] : [])]
    expect(objects.length).toBeGreaterThan(8)
    expect(new Set(objects.map((object) => object.metadata.namespace))).toEqual(new Set(['team']))
  })

  it('the proxy Service is ClusterIP unless the spec says otherwise [002-217]', () => {
    const typeOf = (plan: WorkloadPlan) => childrenOf<Service>(plan, 'Service')[0]?.spec?.type
    expect([typeOf(server()), typeOf(server({ serviceType: 'NodePort' }))]).toEqual(['ClusterIP', 'NodePort'])
  })

  it('there is a Service of its own name that leads to its proxy [001-041]', () => {
    const { alias } = server({ proxyPort: 9191 })
    const [service] = childrenOf<Service>(server({ proxyPort: 9191 }), 'Service')
    expect(alias?.metadata.name).toBe('demo')
    expect(alias?.spec?.selector).toEqual(service?.spec?.selector)
    expect(alias?.spec?.ports).toMatchObject([{ port: 9191, targetPort: 9191 }])
  })

  it('the printed sse example has an SSE proxy, an SSE path in its URL and its port at the Service [002-243] [002-244]', () => {
    const text = readFileSync(new URL('../../../test/fixtures/seeds/002-mcpserver-crd-attributes.yaml', import.meta.url), 'utf8')
    const [manifest] = manifestsIn(text)
    const plan = server(manifest?.spec as Spec)
    expect(runConfigOf(plan)).toMatchObject({ transport: 'sse', proxy_mode: 'sse' })
    expect(new URL(plan.url ?? '').pathname).toBe('/sse')
    expect(childrenOf<Service>(plan, 'Service')[0]?.spec?.ports).toMatchObject([{ port: 8080 }])
    const other = server({ ...(manifest?.spec as Spec), port: 8081 })
    expect(childrenOf<Service>(other, 'Service')[0]?.spec?.ports).toMatchObject([{ port: 8081 }])
  })

  it.each([
    ['spec.serviceAccount', { spec: { serviceAccountName: 'mine' } }],
    ['spec.image', { spec: { containers: [{ name: 'mcp', image: 'other' }] } }],
  ])('what the operator decides is refused in podTemplateSpec, with the field to use: %s [002-236]', (field, podTemplateSpec) => {
    const [blocker] = server({ podTemplateSpec }).blockers
    expect(blocker).toMatchObject({ condition: 'PodTemplateValid', reason: 'InvalidPodTemplateSpec' })
    expect(blocker?.message).toContain(`use ${field}`)
  })
})

describe('OIDC settings in a ConfigMap', () => {
  const fromMap = (data: Record<string, string>, key?: string) =>
    server(
      { oidcConfig: { type: 'configMap', configMap: { name: 'oidc-config', ...(key && { key }) } } },
      snapshot({ configMaps: { 'oidc-config': data } }),
    )
  const settings = { issuer: 'https://auth.example.com', audience: 'my-app', clientId: 'my-client' }
  const read = { issuer: 'https://auth.example.com', audience: 'my-app', client_id: 'my-client' }

  it('pattern 1: issuer, audience and clientId are direct fields [002-280]', () => {
    expect(runConfigOf(fromMap(settings))).toMatchObject({ oidc_config: read })
  })

  it('pattern 2: they stand in the JSON file at key [002-282]', () => {
    expect(runConfigOf(fromMap({ 'oidc.json': JSON.stringify(settings) }, 'oidc.json'))).toMatchObject({ oidc_config: read })
    expect(runConfigOf(fromMap({ 'other.json': JSON.stringify(settings) }, 'other.json'))).toMatchObject({ oidc_config: read })
  })

  it.each([
    ['neither', {}, undefined, 'says no issuer'],
    ['a document without an issuer', { 'oidc.json': '{"audience": "a"}' }, undefined, 'says no issuer'],
    ['no document at the key', settings, 'other.json', 'has no key other.json'],
  ])('%s: a condition says what is missing [002-279]', (_, data, key, what) => {
    const [blocker] = fromMap(data, key).blockers
    expect(blocker).toMatchObject({ condition: 'ConfigurationValid', reason: 'OIDCConfigMapInvalid' })
    expect(blocker?.message).toContain(what)
  })
})

describe('conditions', () => {
  const missing = {
    groupRef: 'missing',
    externalAuthConfigRef: { name: 'missing' },
    toolConfigRef: { name: 'missing' },
    oidcConfig: { type: 'inline' as const, inline: { issuer: 'https://login.example.com', caBundleRef: { name: 'missing' } } },
  }

  it('MCPServer uses GroupRefValidated, ExternalAuthConfigValidated and CABundleRefValidated [004-066]', () => {
    const { types } = conditionWords(server({ ...missing, transport: 'sse' }, snapshot()))
    expect(types).toEqual(expect.arrayContaining(['GroupRefValidated', 'ExternalAuthConfigValidated', 'CABundleRefValidated']))
  })

  it('MCPRemoteProxy uses GroupRefValidated, ExternalAuthConfigValidated and ToolConfigValidated [004-067]', () => {
    const { types } = conditionWords(proxy(missing, OPEN, snapshot()))
    expect(types).toEqual(expect.arrayContaining(['GroupRefValidated', 'ExternalAuthConfigValidated', 'ToolConfigValidated']))
  })
})

it('on an MCPRemoteProxy oidcConfig is only about who comes in, externalAuthConfigRef only about what goes out [004-049]', () => {
  const incoming = proxy({ oidcConfig: { type: 'inline', inline: { issuer: 'https://login.example.com' } } })
  const outgoing = proxy({ externalAuthConfigRef: { name: 'weather-key' } })
  const asks = (plan: WorkloadPlan) =>
    Object.keys(runConfigOf(plan) ?? {}).filter((field) => /^(oidc|header_injection|remote_auth)_config$/.test(field))
  const authenticated = ({ conditions }: WorkloadPlan) => conditions.find(({ type }) => type === 'Authenticated')?.status
  expect(asks(incoming)).toEqual(['oidc_config'])
  expect(authenticated(incoming)).toBe('True')
  expect(asks(outgoing)).toEqual(['header_injection_config'])
  expect(authenticated(outgoing)).toBe('False')
})

it('the examples use different servers for the public remote and the one that needs credentials [004-044]', () => {
  const folder = new URL('../../../deploy/examples/operator/server-entries/', import.meta.url)
  const entries = ['public-remote', 'private-remote'].map((name) => {
    const manifests = manifestsIn(readFileSync(new URL(`${name}.yaml`, folder), 'utf8'))
    return manifests.find(({ kind }) => kind === 'MCPServerEntry')?.spec as MCPServerEntry['spec']
  })
  const [open, closed] = entries
  expect([open?.externalAuthConfigRef, closed?.externalAuthConfigRef]).toEqual([undefined, { name: 'erp-key' }])
  expect(new URL(open?.remoteUrl ?? '').host).not.toBe(new URL(closed?.remoteUrl ?? '').host)
})

describe('addresses of remote servers', () => {
  const PRIVATE = ['https://10.1.2.3/mcp', 'https://192.168.0.1', 'https://[fd00::1]/mcp', 'https://mcp.team.svc.cluster.local/mcp']
  const NEVER = [
    'https://169.254.169.254/latest',
    'https://[fe80::1]/',
    'https://metadata.google.internal/',
    'https://0.0.0.0/',
    'https://0.1.2.3/',
  ]
  const isRefused = (url: string, spec: { allowPrivateEndpoint?: boolean } = {}, remotes = OPEN) => {
    const byProxy = proxy({ remoteUrl: url, ...spec }, remotes).blockers.some(({ reason }) => reason === 'RemoteURLInvalid')
    const byEntry = entryOf(url, spec, remotes).phase === 'Failed'
    expect(byProxy).toBe(byEntry)
    return byProxy
  }

  it.each(PRIVATE)('private and in-cluster ones are allowed by default: %s [004-039]', (url) => {
    expect(isRefused(url)).toBe(false)
  })

  it.each(PRIVATE)('--deny-private-remotes refuses them unless the resource sets allowPrivateEndpoint: %s [004-031]', (url) => {
    const strict = { denyPrivate: true, allowLoopback: false, blockedAddresses: [] }
    expect(isRefused(url, {}, strict)).toBe(true)
    expect(isRefused(url, { allowPrivateEndpoint: true }, strict)).toBe(false)
  })

  it.each(NEVER)('link-local, metadata and 0.0.0.0/8 are refused under every setting: %s [004-033]', (url) => {
    for (const denyPrivate of [true, false])
      for (const allowLoopback of [true, false])
        for (const allowPrivateEndpoint of [true, false])
          expect(isRefused(url, { allowPrivateEndpoint }, { denyPrivate, allowLoopback, blockedAddresses: [] })).toBe(true)
  })

  it.each(['https://127.0.0.1:8080', 'https://localhost/mcp', 'https://[::1]/mcp'])(
    'loopback is refused unless --allow-loopback-remotes is set: %s [004-034]',
    (url) => {
      expect(isRefused(url)).toBe(true)
      expect(isRefused(url, {}, { denyPrivate: false, allowLoopback: true, blockedAddresses: [] })).toBe(false)
    },
  )
})

function childrenOf<T extends WorkloadPlan['children'][number]['object']>({ children }: WorkloadPlan, kind: string): T[] {
  return children.filter((child) => child.kind === kind).map(({ object }) => object as T)
}

function deploymentOf(plan: WorkloadPlan): Deployment {
  const [deployment] = childrenOf<Deployment>(plan, 'Deployment')
  if (deployment === undefined) throw new Error(`there is none: ${JSON.stringify(plan.blockers)}`)
  return deployment
}

function podOf(plan: WorkloadPlan): { volumes?: Record<string, unknown>[]; containers: Record<string, unknown>[] } {
  return deploymentOf(plan).spec?.template?.spec as never
}

function containerOf(plan: WorkloadPlan): Record<string, unknown> {
  return podOf(plan).containers[0] ?? {}
}
