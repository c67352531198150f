import type { MCPExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import type { MCPServer } from '@thv/resources/kinds/mcp-server/schema'
import type { MCPServerEntry } from '@thv/resources/kinds/mcp-server-entry/schema'
import { AUDIT_EVENT_TYPES } from '@thv/resources/kinds/virtual-mcp-server/observability'
import type { VirtualMCPServer } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { AUDIT_EVENT_TYPES as FILE_TYPES, WORKFLOW_EVENT_TYPES } from '@thv/runconfig/audit-config'
import { readVmcpConfig } from '@thv/vmcpconfig/read-vmcp-config'
import { describe, expect, it } from 'vitest'
import type { WorkloadPlan } from '../../deployment/deployment-plan.ts'
import type { OperatorSettings } from '../../operator-settings.ts'
import type { Lookup } from '../../references/lookup.ts'
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

function podOf({ children }: WorkloadPlan) {
  return children.flatMap((child) => (child.kind === 'Deployment' ? [child.object.spec?.template?.spec] : []))[0]
}
const containerOf = (made: WorkloadPlan) => podOf(made)?.containers[0]

function variablesOf(made: WorkloadPlan) {
  return containerOf(made)?.['env'] as { name: string; valueFrom?: { secretKeyRef?: { name: string; key: string } } }[]
}

function filesOf(made: WorkloadPlan) {
  const volumes = (podOf(made)?.['volumes'] ?? []) as { name: string; configMap?: object }[]
  return { volumes, mounts: (containerOf(made)?.['volumeMounts'] ?? []) as { name: string; mountPath: string }[] }
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
    const { volumes, mounts } = filesOf(made)
    const mount = mounts.find(({ mountPath }) => path.startsWith(mountPath))
    expect(volumes).toContainEqual({
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

  it('keeps sessions in Redis: passwords and keys as variables, its certificates as a file', () => {
    const sessionStorage = {
      provider: 'redis',
      sentinel: { masterName: 'm', addresses: ['s:26379'], passwordRef: { name: 'sentinel', key: 'k' } },
      db: 2,
      username: 'u',
      passwordRef: { name: 'redis', key: 'password' },
      encryptionKeyRef: { name: 'keys', key: 'lines' },
      tls: { enabled: true, caBundleRef: { configMapRef: { name: 'company-ca', key: 'root.pem' } } },
    }
    const made = plan({ servers: [server('a')] }, { sessionStorage, replicas: 3 })
    expect({ blockers: made.blockers, unsupported: made.unsupported }).toEqual({ blockers: [], unsupported: [] })
    const { sessionStorage: written } = configOf(made)
    expect(written).toMatchObject({ provider: 'redis', sentinel: { masterName: 'm', addresses: ['s:26379'] }, db: 2, username: 'u' })
    expect(written.keyPrefix).toBeUndefined()
    const secretOf = (name: string) => variablesOf(made).find((each) => each.name === name)?.valueFrom?.secretKeyRef
    expect(secretOf('THV_SESSION_REDIS_PASSWORD')).toEqual({ name: 'redis', key: 'password' })
    expect(secretOf('THV_SESSION_SENTINEL_PASSWORD')).toEqual({ name: 'sentinel', key: 'k' })
    expect(secretOf('THV_SESSION_ENCRYPTION_KEY')).toEqual({ name: 'keys', key: 'lines' })
    const { volumes, mounts } = filesOf(made)
    const mount = mounts.find(({ mountPath }) => written.tls?.caPath?.startsWith(`${mountPath}/`))
    expect(volumes.find(({ name }) => name === mount?.name)).toMatchObject({ configMap: { name: 'company-ca' } })
    expect(made.conditions).toContainEqual(
      expect.objectContaining({ type: 'SessionStorageWarning', status: 'False', reason: 'SessionStorageConfigured' }),
    )
  })

  it("keeps sessions in the operator's Redis where the spec names none, and in memory where it asks for that", () => {
    const { settings } = planFacts({ defaultRedis: { address: 'shared:6379' } as OperatorSettings['defaultRedis'] })
    expect(configOf(plan({ servers: [server('a')] }, {}, { settings })).sessionStorage).toMatchObject({ address: 'shared:6379' })
    const inMemory = plan({ servers: [server('a')] }, { sessionStorage: { provider: 'memory' } }, { settings })
    expect(configOf(inMemory).sessionStorage).toEqual({ provider: 'memory', db: 0 })
  })

  it.each([
    ['a Secret', { passwordRef: { name: 'redis', key: 'password' } }, 'SecretNotFound', /spec\.sessionStorage\.passwordRef.*redis/],
    [
      'a CA bundle',
      { tls: { enabled: true, caBundleRef: { configMapRef: { name: 'gone', key: 'a' } } } },
      'CABundleRefNotFound',
      /spec\.sessionStorage\.tls\.caBundleRef.*gone/,
    ],
    ['an address', { address: 'redis://u:p@redis' }, 'ValidationFailed', /spec\.sessionStorage\.address must be host and port/],
  ])('is blocked by %s of Redis that cannot be used, and says so', (_, changes, reason, message) => {
    const lookup = { ...fixtureLookup, secret: () => undefined }
    const sessionStorage = { provider: 'redis', address: 'redis:6379', ...changes }
    const { blockers, children } = plan({ servers: [server('a')] }, { sessionStorage }, { lookup })
    expect(blockers).toEqual([{ condition: 'Valid', reason, message: expect.stringMatching(message) }])
    expect(children).toEqual([])
  })

  it('sends telemetry: the values of sensitive headers are variables, and are not in the file', () => {
    const telemetry = {
      endpoint: 'https://otel:4318',
      tracingEnabled: true,
      samplingRate: '0.5',
      headers: { 'X-Scope': 'team' },
      sensitiveHeaders: [{ name: 'X-Api-Key', secretKeyRef: { name: 'collector', key: 'key' } }],
      caCertPath: '/etc/otel/ca.crt',
      enablePrometheusMetricsPath: true,
      prometheusPort: 9100,
      metricsOnTransportPort: false,
      environmentVariables: ['REGION'],
      customAttributes: { team: 'a' },
    }
    const made = plan({ servers: [server('a')] }, { config: { telemetry } })
    expect({ blockers: made.blockers, unsupported: made.unsupported }).toEqual({ blockers: [], unsupported: [] })
    expect(configOf(made).telemetry).toMatchObject({
      endpoint: 'otel:4318',
      service_name: 'v',
      tracing_enabled: true,
      metrics_enabled: false,
      sampling_rate: '0.5',
      headers: { 'X-Scope': 'team' },
      sensitive_headers: ['X-Api-Key'],
      ca_cert_path: '/etc/otel/ca.crt',
      enable_prometheus_metrics_path: true,
      prometheus_port: 9100,
      metrics_on_transport_port: false,
      environment_variables: ['REGION'],
      custom_attributes: { team: 'a' },
    })
    expect(variablesOf(made)).toContainEqual({
      name: 'TOOLHIVE_OTEL_HEADER_X_API_KEY',
      valueFrom: { secretKeyRef: { name: 'collector', key: 'key' } },
    })
    expect(containerOf(made)?.['ports']).toContainEqual({ name: 'metrics', containerPort: 9100, protocol: 'TCP' })
  })

  it('trusts the authority of the collector that caBundleRef names, and rolls when it changes', () => {
    const telemetry = (name: string) => ({
      ...{ endpoint: 'otel:4318', tracingEnabled: true },
      caBundleRef: { configMapRef: { name, key: 'root.pem' } },
    })
    const made = plan({ servers: [server('a')] }, { config: { telemetry: telemetry('company-ca') } })
    expect(made.blockers).toEqual([])
    const path = configOf(made).telemetry?.ca_cert_path
    const { volumes, mounts } = filesOf(made)
    const mount = mounts.find(({ mountPath }) => path === `${mountPath}/root.pem`)
    expect(volumes.find(({ name }) => name === mount?.name)).toMatchObject({ configMap: { name: 'company-ca' } })
    expect(variablesOf(made)).toContainEqual({ name: 'THV_OTEL_CA_HASH', value: expect.stringMatching(/./) })
    const missing = plan({ servers: [server('a')] }, { config: { telemetry: telemetry('gone') } })
    expect(missing.blockers).toEqual([
      {
        condition: 'Valid',
        reason: 'CABundleRefNotFound',
        message: expect.stringMatching(/^spec\.config\.telemetry\.caBundleRef names key root\.pem of ConfigMap gone/),
      },
    ])
    const both = plan({ servers: [server('a')] }, { config: { telemetry: { ...telemetry('company-ca'), insecure: true } } })
    expect(both.blockers).toEqual([
      { condition: 'Valid', reason: 'ValidationFailed', message: expect.stringContaining('without TLS there is no certificate to check') },
    ])
  })

  it.each([
    ['no endpoint', { metricsEnabled: true }, 'spec.config.telemetry.endpoint must be set'],
    ['a password in it', { metricsEnabled: true, endpoint: 'u:p@otel:4318' }, 'spec.config.telemetry.endpoint must not carry'],
  ])('is blocked by telemetry with %s', (_, telemetry, message) => {
    const { blockers } = plan({ servers: [server('a')] }, { config: { telemetry } })
    expect(blockers).toEqual([{ condition: 'Valid', reason: 'ValidationFailed', message: expect.stringContaining(message) }])
  })

  it('has no telemetry for a block that the API server filled with defaults', () => {
    const defaults = { tracingEnabled: false, metricsEnabled: false, samplingRate: '0.05', prometheusPort: 9464, useLegacyAttributes: true }
    expect(configOf(plan({ servers: [server('a')] }, { config: { telemetry: defaults } })).telemetry).toBeUndefined()
  })

  it('takes exactly the types of audit events that the file takes', () => {
    expect(AUDIT_EVENT_TYPES.toSorted()).toEqual([...FILE_TYPES, ...WORKFLOW_EVENT_TYPES].toSorted())
    const audit = { enabled: true, eventTypes: [...AUDIT_EVENT_TYPES], excludeEventTypes: ['workflow_step_started'] }
    const { audit: written } = configOf(plan({ servers: [server('a')] }, { config: { audit } }))
    expect(written).toMatchObject({ event_types: [...AUDIT_EVENT_TYPES], exclude_event_types: ['workflow_step_started'] })
  })

  it('carries winners, the argument of the selector, timeouts of tools and the limit of results over', () => {
    const operational = { timeouts: { perTool: { search: '2m' } }, toolResults: { maxBytes: 4096 } }
    const winners = { search: 'a', later: 'not-up-yet' }
    const manual = { aggregation: { conflictResolution: 'manual', conflictResolutionConfig: { winners } }, operational }
    const config = configOf(plan({ servers: [server('a')] }, { ...INLINE, config: manual }))
    expect(config.aggregation.conflictResolutionConfig.winners).toEqual({ search: 'a' })
    expect(config.operational).toMatchObject({
      timeouts: { perTool: { search: '2m' } },
      toolResults: { maxBytes: 4096, onExceed: 'error' },
    })
    const selector = { aggregation: { conflictResolution: 'selector', conflictResolutionConfig: { selectorArgument: 'cluster' } } }
    expect(configOf(plan({ servers: [server('a')] }, { config: selector })).aggregation).toMatchObject({
      conflictResolution: 'selector',
      conflictResolutionConfig: { selectorArgument: 'cluster' },
    })
  })

  it('names a winner that is no member of the group', () => {
    const aggregation = { conflictResolution: 'manual', conflictResolutionConfig: { winners: { search: 'gone' } } }
    const { conditions } = plan({ servers: [server('a')] }, { config: { aggregation } })
    const { message } = conditions.find(({ type }) => type === 'BackendNamesResolved') ?? {}
    expect(message).toContain('spec.config.aggregation.conflictResolutionConfig.winners.search (gone)')
  })

  it('refuses limits that several pods could not keep together', () => {
    const config = { rateLimiting: { shared: { maxTokens: 5, refillPeriod: '1m' } } }
    const messages = (spec: object) => plan({ servers: [server('a')] }, { config, ...spec }).blockers.map(({ message }) => message)
    expect(messages({ replicas: 2 })).toEqual([expect.stringContaining('2 pods cannot keep limits together')])
    expect(messages({ replicas: 1 })).toEqual([])
    expect(messages({ replicas: 2, sessionStorage: { provider: 'redis', address: 'redis:6379' } })).toEqual([])
  })

  it('[002-021] applies tool configs and auth configs to the backends they are given for, and to no others', () => {
    const toolConfig = (name: string) => ({ metadata: { name }, spec: { toolsFilter: ['read'], toolsOverride: { get: { name: 'read' } } } })
    const lookup = { ...fixtureLookup, externalAuthConfig: bearer, toolConfig } as Lookup
    const spec = {
      outgoingAuth: { source: 'inline', backends: { a: { type: 'externalAuthConfigRef', externalAuthConfigRef: { name: 'for-a' } } } },
      config: { aggregation: { tools: [{ workload: 'b', toolConfigRef: { name: 'only-read' } }] } },
    }
    const made = plan({ servers: [server('a'), server('b')] }, spec, { lookup })
    const { aggregation, outgoingAuth } = configOf(made)
    expect(aggregation.tools).toEqual([expect.objectContaining({ workload: 'b', filter: ['read'], overrides: { get: { name: 'read' } } })])
    expect(Object.keys(outgoingAuth.backends)).toEqual(['a'])
    const tokenEnv = outgoingAuth.backends['a']?.bearerToken?.tokenEnv
    expect(variablesOf(made)).toContainEqual({ name: tokenEnv, valueFrom: { secretKeyRef: { name: 'for-a', key: 'k' } } })
  })

  it('[002-164] makes nothing while two spellings of the group differ, and says so', () => {
    const { blockers, children, alias } = plan({ servers: [server('a')] }, { groupRef: { name: 'desk' }, config: { groupRef: 'other' } })
    expect(blockers).toContainEqual({
      condition: 'Valid',
      reason: 'ValidationFailed',
      message: expect.stringContaining('spec.config.groupRef'),
    })
    expect({ children, alias }).toEqual({ children: [], alias: undefined })
  })

  it.each(['inline', 'discovered'])('[004-008] has the same objects with ten entries in its group: %s', (source) => {
    const kinds = (entries: readonly MCPServerEntry[]) =>
      plan({ servers: [server('a')], entries }, { outgoingAuth: { source } }).children.map(
        ({ kind, object }) => `${kind} ${object.metadata.name}`,
      )
    const ten = Array.from({ length: 10 }, (_, index) => entry(`entry${index}`))
    expect(kinds(ten)).toEqual(kinds([]))
    expect(kinds(ten).filter((each) => /^(Deployment|Service) /.test(each))).toEqual(['Service vmcp-v', 'Deployment v'])
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
  const more = { lookup, keys: { ok: true, secret: 'v-authserver-vmcp', untilRotationMs: 1 } }
  const conditionOf = ({ conditions }: WorkloadPlan, type: string) => conditions.find((condition) => condition.type === type)

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
    expect(JSON.stringify(volumes)).toContain('v-authserver-vmcp')
    expect(conditionOf(made, 'AuthServerConfigValidated')).toMatchObject({ status: 'True', reason: 'AuthServerConfigValid' })
    expect(conditionOf(made, 'SigningKeysManaged')).toMatchObject({ status: 'True' })
    expect(conditionOf(made, 'IdentitySynthesized')).toMatchObject({ status: 'False' })
  })

  it('runs one replica while logins are in memory', () => {
    const made = plan({ servers: [server('a')] }, { ...spec, replicas: 3 }, more)
    expect(conditionOf(made, 'AuthServerReplicaCapped')).toMatchObject({ status: 'True' })
    expect(made.children.flatMap((child) => (child.kind === 'Deployment' ? [child.object.spec?.replicas] : []))).toEqual([1])
  })

  it('writes which providers are on demand, and whose claims policies see', () => {
    const server1 = { ...authServerConfig, primaryUpstreamProvider: 'tickets' }
    const upstreamProviders = [provider('corp'), { ...provider('tickets'), loginPolicy: 'onDemand' }]
    const authzConfig = { type: 'inline', inline: { policies: ['permit(principal, action, resource);'] } }
    const guarded = { ...spec, incomingAuth: { ...spec.incomingAuth, authzConfig }, authServerConfig: { ...server1, upstreamProviders } }
    const made = plan({ servers: [server('a')] }, guarded, more)
    expect([made.blockers, made.unsupported]).toEqual([[], []])
    const config = configOf(made)
    expect(config.authServer?.upstreams.map(({ login_policy: policy }) => policy)).toEqual(['required', 'onDemand'])
    expect(config.incomingAuth.authz?.primaryUpstreamProvider).toBe('tickets')
  })

  it.each([
    ['tickets', ['a', 'b'], 'True', /MCPExternalAuthConfig \S+ is used/],
    ['chat', ['a'], 'False', /tokenExchange\.subjectProviderName spec\.authServerConfig has no provider chat/],
  ] as const)('exchanges the token of a provider for an entry: %s', (subjectProviderName, backends, status, message) => {
    const tokenExchange = { tokenUrl: 'https://sts.example.com/token', audience: 'crm', subjectProviderName }
    const exchanges = (name: string) => ({ metadata: { name }, spec: { type: 'tokenExchange', tokenExchange } }) as MCPExternalAuthConfig
    const found = { ...more, lookup: { ...lookup, externalAuthConfig: exchanges } }
    const made = plan({ servers: [server('a')], entries: [withToken('b', 'x')] }, spec, found)
    expect(configOf(made).backends.map(({ name }) => name)).toEqual(backends)
    expect(conditionOf(made, 'DiscoveredAuthConfig-b')).toMatchObject({ status, message: expect.stringMatching(message) })
    const written = configOf(made).outgoingAuth.backends['b']?.tokenExchange?.subjectProviderName
    expect(written).toBe(status === 'True' ? subjectProviderName : undefined)
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
