import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixturesOf } from '../../testing/fixtures.ts'
import { type CanonicalVirtualMCPServerSpec, normaliseVirtualMcpServer as normalise } from './normalise.ts'
import type { VirtualMCPServer } from './schema.ts'

type Spec = VirtualMCPServer['spec']

const spec = (changes: Partial<Spec> = {}): Spec => ({ groupRef: { name: 'g' }, incomingAuth: { type: 'anonymous' }, ...changes })
const problemsOf = (changes: Partial<Spec>) => normalise({ spec: spec(changes) }).problems.map(({ field, code }) => [field, code])
/** A stored object, which may not match our types. */
const stored = (changes: Record<string, unknown>) => normalise({ spec: { incomingAuth: { type: 'anonymous' }, ...changes } as Spec })

const fileOidc = { issuer: 'https://idp.example.com', audience: 'vmcp' }
const inlineOidc = (changes = {}) => ({ type: 'inline' as const, inline: { ...fileOidc, ...changes } })
const authServer = (changes = {}): NonNullable<Spec['authServerConfig']> => ({
  issuer: 'https://idp.example.com',
  upstreamProviders: [
    { name: 'corporate', type: 'oidc', oidcConfig: { issuerUrl: 'https://login.example.com', clientId: 'vmcp' } },
    { name: 'github', type: 'oidc', oidcConfig: { issuerUrl: 'https://github.example.com', clientId: 'vmcp' } },
  ],
  ...changes,
})
const policies = (inline = {}) => ({ type: 'inline' as const, inline: { policies: ['permit(principal, action, resource);'], ...inline } })

describe('the group', () => {
  it.each<[string, Record<string, unknown>]>([
    ['an object', { groupRef: { name: 'g' } }],
    ['a string', { groupRef: 'g' }],
    ['inside config', { config: { groupRef: 'g' } }],
    ['both, which agree', { groupRef: 'g', config: { groupRef: 'g' } }],
  ])('may be %s', (_title, changes) => {
    expect(stored(changes)).toMatchObject({ spec: { groupRef: { name: 'g' } }, problems: [] })
  })

  it.each<[string, Record<string, unknown>, [string, string]]>([
    ['nowhere', {}, ['spec.groupRef', 'missing']],
    ['forgotten in config', { config: {} }, ['spec.groupRef', 'missing']],
    ['two different ones', { groupRef: { name: 'a' }, config: { groupRef: 'b' } }, ['spec.groupRef', 'conflicting_spellings']],
    ['a number', { groupRef: 3 }, ['spec.groupRef', 'wrong_type']],
    ['a list', { groupRef: ['g'] }, ['spec.groupRef', 'wrong_type']],
    ['null', { groupRef: null }, ['spec.groupRef', 'missing']],
  ])('is a problem: %s', (_title, changes, expected) => {
    expect(stored(changes).problems.map(({ field, code }) => [field, code])).toEqual([expected])
  })
})

describe('incomingAuth', () => {
  it('is taken from config if the spec has none, and reads the same', () => {
    const inSpec = spec({
      incomingAuth: {
        type: 'oidc',
        oidcConfig: {
          type: 'inline',
          resourceUrl: 'https://mcp.example.com/mcp',
          inline: {
            ...fileOidc,
            clientId: 'c',
            jwksUrl: 'https://idp.example.com/jwks',
            introspectionUrl: 'https://idp.example.com/i',
            scopes: ['a'],
            jwksAllowPrivateIP: true,
            protectedResourceAllowPrivateIP: true,
            insecureAllowHTTP: true,
            thvCABundlePath: '/ca.pem',
          },
        },
        authzConfig: { ...policies({ entitiesJson: '[1]' }), groupClaimName: 'a', roleClaimName: 'b', groupEntityType: 'C' },
      },
    })
    const inConfig: Spec = {
      groupRef: 'g',
      config: {
        incomingAuth: {
          type: 'oidc',
          oidc: {
            ...fileOidc,
            resource: 'https://mcp.example.com/mcp',
            clientId: 'c',
            jwksUrl: 'https://idp.example.com/jwks',
            introspectionUrl: 'https://idp.example.com/i',
            scopes: ['a'],
            jwksAllowPrivateIp: true,
            protectedResourceAllowPrivateIp: true,
            insecureAllowHttp: true,
            caBundlePath: '/ca.pem',
          },
          authz: {
            type: 'cedar',
            policies: ['permit(principal, action, resource);'],
            entitiesJson: '[1]',
            groupClaimName: 'a',
            roleClaimName: 'b',
            groupEntityType: 'C',
          },
        },
      },
    }
    expect(normalise({ spec: inConfig })).toEqual(normalise({ spec: inSpec }))
    expect(normalise({ spec: { ...inSpec, ...inConfig } })).toEqual(normalise({ spec: inSpec }))
    expect(normalise({ spec: inConfig }).problems).toEqual([])
  })

  it('must agree in both places', () => {
    const incomingAuth = { type: 'oidc' as const, oidcConfig: inlineOidc({ clientSecretRef: { name: 'a', key: 'b' } }) }
    expect(problemsOf({ incomingAuth, config: { incomingAuth: { type: 'oidc', oidc: fileOidc } } })).toEqual([
      ['spec.incomingAuth', 'conflicting_spellings'],
    ])
  })

  it('has no default: without it there is a problem and no client is accepted', () => {
    const { spec: canonical, problems } = normalise({ spec: { groupRef: 'g' } })
    expect(canonical).not.toHaveProperty('incomingAuth')
    expect(problems).toEqual([expect.objectContaining({ field: 'spec.incomingAuth', code: 'missing' })])
  })

  it('is not open because its settings are missing', () => {
    const { spec: canonical, problems } = normalise({ spec: spec({ incomingAuth: { type: 'oidc' } }) })
    expect(canonical).not.toHaveProperty('incomingAuth')
    expect(problems).toEqual([expect.objectContaining({ field: 'spec.incomingAuth.oidcConfig', code: 'missing' })])
  })

  it('is not open because its settings are those of another kind', () => {
    const oidcConfig = { type: 'external', external: { name: 'e' } } as never
    const { spec: canonical, problems } = normalise({ spec: spec({ incomingAuth: { type: 'oidc', oidcConfig } }) })
    expect(canonical).not.toHaveProperty('incomingAuth')
    expect(problems).toEqual([expect.objectContaining({ field: 'spec.incomingAuth.oidcConfig', code: 'forbidden' })])
  })

  it('has no policies with authz none', () => {
    expect(
      stored({ groupRef: 'g', incomingAuth: undefined, config: { incomingAuth: { type: 'anonymous', authz: { type: 'none' } } } }),
    ).toMatchObject({
      spec: { incomingAuth: { type: 'anonymous' } },
      problems: [],
    })
  })
})

describe('the authorization server', () => {
  it('takes over the provider that the policies name', () => {
    const incomingAuth = { type: 'oidc' as const, oidcConfig: inlineOidc(), authzConfig: policies({ primaryUpstreamProvider: 'github' }) }
    const { spec: canonical, problems } = normalise({ spec: spec({ incomingAuth, authServerConfig: authServer() }) })
    expect(problems).toEqual([])
    expect(canonical.authServerConfig?.primaryUpstreamProvider).toBe('github')
    expect(canonical.incomingAuth?.authzConfig).toEqual({ type: 'inline', inline: { policies: expect.any(Array), entitiesJson: '[]' } })
  })

  it.each<[string, Partial<Spec>, [string, string]]>([
    [
      'two providers',
      { authServerConfig: authServer({ primaryUpstreamProvider: 'corporate' }) },
      ['spec.authServerConfig.primaryUpstreamProvider', 'conflicting_spellings'],
    ],
    ['no server', {}, ['spec.authServerConfig', 'missing']],
    [
      'another issuer',
      { authServerConfig: authServer({ issuer: 'https://other.example.com' }) },
      ['spec.authServerConfig.issuer', 'forbidden'],
    ],
    [
      'an unknown provider',
      { authServerConfig: authServer({ upstreamProviders: [] }) },
      ['spec.authServerConfig.primaryUpstreamProvider', 'missing'],
    ],
  ])('is a problem: %s', (_title, changes, expected) => {
    const incomingAuth = { type: 'oidc' as const, oidcConfig: inlineOidc(), authzConfig: policies({ primaryUpstreamProvider: 'github' }) }
    expect(problemsOf({ incomingAuth, ...changes })).toEqual([expected])
  })

  it('needs clients that come with a token', () => {
    expect(problemsOf({ authServerConfig: authServer() })).toEqual([['spec.authServerConfig', 'forbidden']])
  })
})

describe('lists with two places', () => {
  it('joins the references to composite tools', () => {
    const { spec: canonical } = normalise({
      spec: spec({ compositeToolRefs: [{ name: 'a' }], config: { compositeToolRefs: [{ name: 'b' }] } }),
    })
    expect(canonical.compositeToolRefs).toEqual([{ name: 'a' }, { name: 'b' }])
  })

  it('reports a reference that is in both [002-186]', () => {
    expect(problemsOf({ compositeToolRefs: [{ name: 'a' }], config: { compositeToolRefs: [{ name: 'a' }] } })).toEqual([
      ['spec.compositeToolRefs', 'duplicate'],
    ])
  })

  it('reports headers that differ', () => {
    expect(problemsOf({ passthroughHeaders: ['X-A'], config: { passthroughHeaders: ['X-B'] } })).toEqual([
      ['spec.passthroughHeaders', 'conflicting_spellings'],
    ])
  })
})

describe('unsupported fields', () => {
  it.each([
    ['telemetryConfigRef', { telemetryConfigRef: { name: 'a' } }],
    ['embeddingServerRef', { embeddingServerRef: { name: 'a' } }],
    ['aggregation', { aggregation: {} }],
    ['operational', { operational: {} }],
    ['incomingAuth.oidcConfigRef', { incomingAuth: { type: 'anonymous', oidcConfigRef: { name: 'a' } } }],
    ['incomingAuth.authzConfigRef', { incomingAuth: { type: 'anonymous', authzConfigRef: { name: 'a' } } }],
    [
      'config.incomingAuth.oidc.clientSecretEnv',
      { incomingAuth: undefined, config: { incomingAuth: { type: 'oidc', oidc: { ...fileOidc, clientSecretEnv: 'A' } } } },
    ],
    ['config.backends', { config: { backends: [] } }],
    ['config.outgoingAuth', { config: { outgoingAuth: {} } }],
    ['config.sessionStorage', { config: { sessionStorage: {} } }],
    ['config.codeMode', { config: { codeMode: {} } }],
  ])('is reported for objects that are older than our schema: %s', (path, changes) => {
    expect(stored({ groupRef: 'g', ...changes }).problems).toEqual([
      expect.objectContaining({ field: `spec.${path}`, code: 'forbidden', message: expect.stringContaining(' is not supported: ') }),
    ])
  })
})

describe('defaults', () => {
  it('fills in the whole configuration', () => {
    expect(normalise({ spec: spec() }).spec).toMatchObject({
      config: {
        aggregation: {
          conflictResolution: 'prefix',
          conflictResolutionConfig: { prefixFormat: '{workload}_', priorityOrder: [] },
          defaultToolVisibility: 'allow',
          excludeAllTools: false,
          tools: [],
        },
        operational: {
          timeouts: { default: '30s', perWorkload: {} },
          failureHandling: {
            healthCheckInterval: '30s',
            healthCheckTimeout: '10s',
            unhealthyThreshold: 3,
            statusReportingInterval: '30s',
            partialFailureMode: 'best_effort',
            circuitBreaker: { enabled: false, failureThreshold: 5, timeout: '60s' },
          },
          retry: { attempts: 3, backoff: '250ms', on: ['connect'] },
        },
        tokenCache: { enabled: true, maxEntries: 10000, ttlOffset: '60s' },
        audit: { enabled: false, detectApplicationErrors: true, maxDataSize: 1024, maxDelegationDepth: 10 },
        telemetry: { tracingEnabled: false, metricsEnabled: false, samplingRate: '0.05', useLegacyAttributes: true },
      },
      outgoingAuth: { source: 'discovered', backends: {} },
      serviceType: 'ClusterIP',
      sessionAffinity: 'ClientIP',
      compositeToolRefs: [],
      passthroughHeaders: [],
      imagePullSecrets: [],
    })
  })

  it.each([
    ['30s', '10s'],
    ['11s', '10s'],
    ['10s', '5s'],
    ['4s', '2s'],
  ])('gives checks every %s a limit of %s', (healthCheckInterval, expected) => {
    const { spec: canonical } = normalise({ spec: spec({ config: { operational: { failureHandling: { healthCheckInterval } } } }) })
    expect(canonical.config.operational.failureHandling.healthCheckTimeout).toBe(expected)
  })

  it('keeps what is set beside what is not', () => {
    const { spec: canonical } = normalise({
      spec: spec({
        config: {
          optimizer: { maxToolsToReturn: 3 },
          tokenCache: { maxEntries: 5 },
          aggregation: { tools: [{ workload: 'a', exclude: ['b'] }] },
        },
      }),
    })
    expect(canonical.config.optimizer).toMatchObject({ maxToolsToReturn: 3, embeddingProvider: 'tei', hybridSearchSemanticRatio: '0.5' })
    expect(canonical.config.tokenCache).toEqual({ enabled: true, maxEntries: 5, ttlOffset: '60s' })
    expect(canonical.config.aggregation.tools).toEqual([{ workload: 'a', filter: [], exclude: ['b'], excludeAll: false, overrides: {} }])
  })

  it('reports what is wrong with an inline composite tool under its path', () => {
    const steps = [{ id: 'one', tool: 'echo', dependsOn: ['two'] }]
    expect(problemsOf({ config: { compositeTools: [{ name: 'a', description: 'A.', steps }] } })).toEqual([
      ['spec.config.compositeTools[0].steps[0].dependsOn', 'missing'],
    ])
  })

  it('reports a backend whose reference is missing, and does not call it without authentication', () => {
    const { spec: canonical, problems } = normalise({
      spec: spec({ outgoingAuth: { backends: { a: { type: 'externalAuthConfigRef' } } } }),
    })
    expect(canonical.outgoingAuth.backends).toEqual({})
    expect(problems).toEqual([expect.objectContaining({ field: 'spec.outgoingAuth.backends.a', code: 'missing' })])
  })
})

it.each(fixturesOf('virtualmcpservers').map(({ manifest }) => [manifest.metadata.name, manifest.spec as Spec] as const))(
  'finds nothing wrong with the example %s',
  (_name, example) => {
    const once = normalise({ spec: example })
    expect(once.problems).toEqual([])
    expect(normalise({ spec: once.spec as Spec })).toEqual(once)
  },
)

it('gives the same object for every accepted spelling, and leaves a canonical one alone', () => {
  fc.assert(
    fc.property(canonicalSpec, fc.infiniteStream(fc.boolean()), (canonical, coins) => {
      expect(normalise({ spec: canonical as Spec })).toEqual({ spec: canonical, problems: [] })
      expect(normalise({ spec: respelled(canonical, coins) })).toEqual({ spec: canonical, problems: [] })
    }),
  )
})

it('reports two different groups, whatever their spelling', () => {
  fc.assert(
    fc.property(word, word, fc.boolean(), (a, b, asObject) => {
      fc.pre(a !== b)
      const { problems } = normalise({ spec: spec({ groupRef: asObject ? { name: a } : a, config: { groupRef: b } }) })
      expect(problems).toEqual([expect.objectContaining({ code: 'conflicting_spellings' })])
    }),
  )
})

it('never throws at a group of any JSON type', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (groupRef) => {
      const { spec: canonical, problems } = stored({ groupRef })
      expect(canonical.groupRef !== undefined).toBe(problems.length === 0)
    }),
  )
})

/** Writes a canonical spec with randomly chosen spellings, leaving out what is the default anyway. */
function respelled(canonical: CanonicalVirtualMCPServerSpec, coins: fc.Stream<boolean>): Spec {
  const coin = () => coins.next().value as boolean
  const { groupRef, incomingAuth, compositeToolRefs, passthroughHeaders, config, outgoingAuth, ...rest } = structuredClone(canonical)
  const written = { ...rest, config: { ...config } } as Spec & { config: NonNullable<Spec['config']> }
  if (groupRef) {
    const inConfig = coin()
    if (inConfig) written.config.groupRef = groupRef.name
    if (!inConfig || coin()) written.groupRef = coin() ? groupRef : groupRef.name
  }
  if (incomingAuth) {
    const inConfig = coin()
    if (inConfig) written.config.incomingAuth = inWordsOfTheFile(incomingAuth)
    if (!inConfig || coin()) written.incomingAuth = incomingAuth as NonNullable<Spec['incomingAuth']>
  }
  const inConfig = coin()
  if (inConfig) written.config.passthroughHeaders = passthroughHeaders
  if (!inConfig || coin()) written.passthroughHeaders = passthroughHeaders
  const cut = compositeToolRefs.findIndex(() => coin())
  const split = cut < 0 ? compositeToolRefs.length : cut
  written.compositeToolRefs = compositeToolRefs.slice(0, split)
  written.config.compositeToolRefs = compositeToolRefs.slice(split)
  written.outgoingAuth = {
    source: outgoingAuth.source,
    backends: Object.fromEntries(
      Object.entries(outgoingAuth.backends).map(([name, auth]) => [
        name,
        auth.type === 'externalAuthConfigRef' && coin() ? { ...auth, type: 'external_auth_config_ref' as const } : auth,
      ]),
    ),
  }
  if (outgoingAuth.source === 'discovered' && coin()) delete written.outgoingAuth.source
  if (written.serviceType === 'ClusterIP' && coin()) delete written.serviceType
  for (const part of ['tokenCache', 'audit', 'telemetry', 'operational', 'metadata'] as const) if (coin()) delete written.config[part]
  return written
}

function inWordsOfTheFile(auth: NonNullable<CanonicalVirtualMCPServerSpec['incomingAuth']>) {
  const { authzConfig } = auth
  const { entitiesJson = '[]', policies: list = [] } = authzConfig?.type === 'inline' ? authzConfig.inline : {}
  const authz = authzConfig && { authz: { type: 'cedar' as const, policies: list, entitiesJson } }
  if (auth.type === 'anonymous') return { type: 'anonymous' as const, ...authz }
  if (auth.oidcConfig.type !== 'inline') throw new Error('only inline settings have words in the file')
  const { issuer, audience = '', scopes, insecureAllowHTTP } = auth.oidcConfig.inline
  return { type: 'oidc' as const, oidc: { issuer, audience, scopes, insecureAllowHttp: insecureAllowHTTP }, ...authz }
}

const word = fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/)
const anyAuth = fc
  .record({
    oidc: fc.boolean(),
    http: fc.boolean(),
    scopes: fc.uniqueArray(word, { minLength: 1, maxLength: 2 }),
    withPolicies: fc.boolean(),
  })
  .map(({ oidc, http, scopes, withPolicies }): Spec['incomingAuth'] => ({
    ...(oidc ? { type: 'oidc', oidcConfig: inlineOidc({ insecureAllowHTTP: http, scopes }) } : { type: 'anonymous' }),
    ...(withPolicies && { authzConfig: policies() }),
  }))
const anyBackendAuth = fc.oneof(
  fc.constant({ type: 'discovered' as const }),
  word.map((name) => ({ type: 'externalAuthConfigRef' as const, externalAuthConfigRef: { name } })),
)

/** Canonical by construction of its parts; the defaults of everything else come from normalising the least that is needed. */
const canonicalSpec = fc
  .record({
    group: word,
    incomingAuth: anyAuth,
    refs: fc.uniqueArray(word, { maxLength: 3 }),
    passthroughHeaders: fc.uniqueArray(word, { maxLength: 2 }),
    source: fc.constantFrom('discovered' as const, 'inline' as const),
    backends: fc.dictionary(word, anyBackendAuth, { maxKeys: 2, noNullPrototype: true }),
    serviceType: fc.constantFrom('ClusterIP' as const, 'NodePort' as const),
    replicas: fc.integer({ min: 0, max: 5 }),
  })
  .map(({ group, incomingAuth, refs, source, backends, ...others }): CanonicalVirtualMCPServerSpec => {
    const least = normalise({ spec: { groupRef: { name: group }, ...(incomingAuth && { incomingAuth }) } }).spec
    return { ...least, ...others, compositeToolRefs: refs.map((name) => ({ name })), outgoingAuth: { source, backends } }
  })
