import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { type CanonicalMCPExternalAuthConfigSpec, normaliseMcpExternalAuthConfig } from './normalise.ts'
import type { MCPExternalAuthConfig } from './schema.ts'

type Spec = MCPExternalAuthConfig['spec']

const EMBEDDED = new URL('../../../../../test/fixtures/resources/mcpexternalauthconfigs/embedded-auth-server.yaml', import.meta.url)
const exchange = { tokenUrl: 'https://idp.example.com/token', audience: 'a' }
const provider = { name: 'o', type: 'oidc' as const, oidcConfig: { issuerUrl: 'https://idp.example.com', clientId: 'c' } }

describe('normaliseMcpExternalAuthConfig', () => {
  it('reads the snake_case spellings', () => {
    const tokenExchange = {
      token_url: 'https://idp.example.com/token',
      audience: 'a',
      client_id: 'c',
      client_secret_ref: { name: 's', key: 'k' },
      scope: 'openid backend.use',
      external_token_header_name: 'X-Token',
    }
    expect(normaliseMcpExternalAuthConfig({ spec: { type: 'tokenExchange', tokenExchange } })).toEqual({
      spec: {
        type: 'tokenExchange',
        tokenExchange: {
          tokenUrl: 'https://idp.example.com/token',
          audience: 'a',
          clientId: 'c',
          clientSecretRef: { name: 's', key: 'k' },
          scopes: ['openid', 'backend.use'],
          externalTokenHeaderName: 'X-Token',
        },
      },
      problems: [],
    })
  })

  it.each<[string, object, string]>([
    ['tokenUrl', { token_url: 'https://other.example.com' }, 'spec.tokenExchange.tokenUrl'],
    ['clientId', { clientId: 'a', client_id: 'b' }, 'spec.tokenExchange.clientId'],
    [
      'clientSecretRef',
      { clientSecretRef: { name: 'a', key: 'k' }, client_secret_ref: { name: 'b', key: 'k' } },
      'spec.tokenExchange.clientSecretRef',
    ],
    ['scopes', { scopes: ['a', 'b'], scope: 'b a' }, 'spec.tokenExchange.scopes'],
    [
      'externalTokenHeaderName',
      { externalTokenHeaderName: 'X-A', external_token_header_name: 'X-B' },
      'spec.tokenExchange.externalTokenHeaderName',
    ],
  ])('reports two different spellings of %s', (_title, changes, field) => {
    const { problems } = normaliseMcpExternalAuthConfig({
      spec: { type: 'tokenExchange', tokenExchange: { ...exchange, ...changes } },
    })
    expect(problems).toEqual([expect.objectContaining({ field, code: 'conflicting_spellings' })])
  })

  it.each<[string, Spec, string, string]>([
    ['an exchange without a URL', { type: 'tokenExchange', tokenExchange: { audience: 'a' } }, 'spec.tokenExchange.tokenUrl', 'missing'],
    ['a type without its settings', { type: 'awsSts' }, 'spec.awsSts', 'missing'],
    ['a type that is not supported', { type: 'obo' }, 'spec.type', 'forbidden'],
  ])('reports %s', (_title, spec, field, code) => {
    expect(normaliseMcpExternalAuthConfig({ spec }).problems).toEqual([expect.objectContaining({ field, code })])
  })

  it('fills in the defaults of AWS', () => {
    const { spec } = normaliseMcpExternalAuthConfig({ spec: { type: 'awsSts', awsSts: { region: 'eu-west-1' } } })
    expect(spec.awsSts).toEqual({
      region: 'eu-west-1',
      service: 'aws-mcp',
      roleMappings: [],
      roleClaim: 'groups',
      sessionNameClaim: 'sub',
      sessionDuration: 3600,
    })
  })

  it('fills in the defaults of the embedded server', () => {
    const embeddedAuthServer = { issuer: 'https://mcp.example.com', upstreamProviders: [provider] }
    expect(normaliseMcpExternalAuthConfig({ spec: { type: 'embeddedAuthServer', embeddedAuthServer } }).spec.embeddedAuthServer).toEqual({
      ...embeddedAuthServer,
      storage: { type: 'memory' },
      cimd: { enabled: false },
      trustedIssuers: [],
      signingKeySecretRefs: [],
      hmacSecretRefs: [],
      baselineClientScopes: [],
      forceConfidentialRedirectUris: [],
      delegateClients: [],
      allowConfidentialClientRegistration: false,
      disableUpstreamTokenInjection: false,
      insecureAllowHTTP: false,
      insecureAllowConfidentialOverLoopbackHTTP: false,
    })
  })

  it('takes an empty string for nothing', () => {
    const endpoints = { authorizationEndpoint: 'https://idp/a', tokenEndpoint: 'https://idp/t' }
    const dcrConfig = { registrationEndpoint: 'https://idp/r' }
    const embeddedAuthServer = {
      issuer: 'https://mcp.example.com',
      upstreamProviders: [
        { ...provider, oidcConfig: { ...provider.oidcConfig, subjectClaim: '' } },
        { name: 'p', type: 'oauth2' as const, oauth2Config: { ...endpoints, clientId: '', dcrConfig } },
      ],
    }
    const { spec } = normaliseMcpExternalAuthConfig({ spec: { type: 'embeddedAuthServer', embeddedAuthServer } })
    expect(spec.embeddedAuthServer?.upstreamProviders).toEqual([
      provider,
      { name: 'p', type: 'oauth2', oauth2Config: { ...endpoints, dcrConfig } },
    ])
  })

  it('loses nothing that an embedded server sets, and changes nothing the second time', () => {
    const specs = parseAllDocuments(readFileSync(EMBEDDED, 'utf8')).map((document) => document.toJSON().spec as Spec)
    expect(specs.length).toBeGreaterThan(1)
    for (const spec of specs) {
      const once = normaliseMcpExternalAuthConfig({ spec })
      expect(once.problems).toEqual([])
      expect(once.spec).toMatchObject(withoutEmptyStrings(spec))
      expect(normaliseMcpExternalAuthConfig({ spec: once.spec as Spec })).toEqual(once)
    }
  })

  it('gives the same object for every accepted spelling, and changes nothing the second time', () => {
    fc.assert(
      fc.property(canonicalSpec, fc.infiniteStream(fc.boolean()), (canonical, coins) => {
        const result = normaliseMcpExternalAuthConfig({ spec: respelled(canonical, coins) })
        expect(result).toEqual({ spec: canonical, problems: [] })
        expect(normaliseMcpExternalAuthConfig({ spec: result.spec as Spec })).toEqual(result)
      }),
    )
  })
})

const name = fc.stringMatching(/^[a-z]{1,8}$/)
const secretRef = fc.record({ name, key: name })
const duration = fc.integer({ min: 1, max: 60 }).map((seconds) => `${seconds}s`)
const orDefault = <T>(arbitrary: fc.Arbitrary<T>, fallback: T) => fc.oneof(arbitrary, fc.constant(fallback))

const canonicalTokenExchange = fc.record(
  {
    tokenUrl: fc.webUrl(),
    audience: name,
    scopes: fc.array(name, { maxLength: 3 }),
    clientId: name,
    clientSecretRef: secretRef,
    externalTokenHeaderName: name,
    subjectTokenType: fc.constantFrom('jwt', 'access_token'),
    subjectProviderName: name,
  },
  { requiredKeys: ['tokenUrl', 'audience', 'scopes'] },
)

const canonicalAwsSts = fc.record(
  {
    region: fc.constant('eu-west-1'),
    service: orDefault(name, 'aws-mcp'),
    roleMappings: fc.array(fc.record({ claim: name, roleArn: name }), { maxLength: 2 }),
    roleClaim: orDefault(name, 'groups'),
    sessionNameClaim: orDefault(name, 'sub'),
    sessionDuration: orDefault(fc.integer({ min: 900, max: 43200 }), 3600),
    fallbackRoleArn: name,
    subjectProviderName: name,
  },
  { requiredKeys: ['region', 'service', 'roleMappings', 'roleClaim', 'sessionNameClaim', 'sessionDuration'] },
)

const canonicalRedis = fc.record({
  addr: name,
  clusterMode: fc.boolean(),
  aclUserConfig: fc.record({ passwordSecretRef: secretRef }),
  dialTimeout: orDefault(duration, '5s'),
  readTimeout: orDefault(duration, '3s'),
  writeTimeout: orDefault(duration, '3s'),
})

const canonicalEmbedded = fc.record({
  issuer: fc.webUrl(),
  upstreamProviders: fc.constant([provider]),
  storage: fc.oneof(fc.constant({ type: 'memory' as const }), fc.record({ type: fc.constant('redis' as const), redis: canonicalRedis })),
  cimd: fc.record({ enabled: fc.boolean() }),
  trustedIssuers: fc.array(fc.record({ issuerUrl: fc.webUrl(), allowMayAct: fc.boolean() }), { maxLength: 2 }),
  signingKeySecretRefs: fc.array(secretRef, { maxLength: 2 }),
  hmacSecretRefs: fc.array(secretRef, { maxLength: 2 }),
  baselineClientScopes: fc.array(name, { maxLength: 2 }),
  forceConfidentialRedirectUris: fc.array(fc.webUrl(), { maxLength: 2 }),
  delegateClients: fc.constant([]),
  allowConfidentialClientRegistration: fc.boolean(),
  disableUpstreamTokenInjection: fc.boolean(),
  insecureAllowHTTP: fc.boolean(),
  insecureAllowConfidentialOverLoopbackHTTP: fc.boolean(),
})

const canonicalOidc = fc.record(
  {
    issuer: fc.webUrl(),
    audience: name,
    clientSecretRef: secretRef,
    caBundleRef: fc.record({ configMapRef: fc.record({ name, key: name, optional: fc.boolean() }) }),
    jwksAllowPrivateIP: fc.boolean(),
    protectedResourceAllowPrivateIP: fc.boolean(),
    insecureAllowHTTP: fc.boolean(),
    scopes: fc.array(name, { minLength: 1, maxLength: 3 }),
  },
  { requiredKeys: ['issuer', 'jwksAllowPrivateIP', 'protectedResourceAllowPrivateIP', 'insecureAllowHTTP', 'scopes'] },
)

const canonicalSpec: fc.Arbitrary<CanonicalMCPExternalAuthConfigSpec> = fc
  .oneof(
    fc.record({ type: fc.constant('tokenExchange' as const), tokenExchange: canonicalTokenExchange }),
    fc.record({ type: fc.constant('awsSts' as const), awsSts: canonicalAwsSts }),
    fc.record({ type: fc.constant('embeddedAuthServer' as const), embeddedAuthServer: canonicalEmbedded }),
    fc.record({ type: fc.constant('bearerToken' as const), bearerToken: fc.record({ tokenSecretRef: secretRef }) }),
    fc.record({ type: fc.constant('unauthenticated' as const) }),
    fc.record({ type: fc.constant('oidc' as const), oidc: canonicalOidc }),
  )
  .map((spec) => JSON.parse(JSON.stringify(spec)))

const SYNONYMS: Readonly<Record<string, string>> = {
  tokenUrl: 'token_url',
  clientId: 'client_id',
  clientSecretRef: 'client_secret_ref',
  externalTokenHeaderName: 'external_token_header_name',
}
const DEFAULTS: Readonly<Record<string, unknown>> = {
  service: 'aws-mcp',
  roleClaim: 'groups',
  sessionNameClaim: 'sub',
  sessionDuration: 3600,
  dialTimeout: '5s',
  readTimeout: '3s',
  writeTimeout: '3s',
}

/** Writes a canonical spec with randomly chosen accepted spellings; what has its default may be left out. */
function respelled(canonical: CanonicalMCPExternalAuthConfigSpec, coins: fc.Stream<boolean>): Spec {
  const coin = () => coins.next().value as boolean
  return rewrite(canonical) as Spec

  function rewrite(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(rewrite)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).flatMap(([key, member]) => spelled(key, member)))
  }

  function spelled(key: string, member: unknown): [string, unknown][] {
    const isDefault = member === false || (Array.isArray(member) && member.length === 0) || member === DEFAULTS[key]
    if (isDefault && coin()) return []
    if (key === 'scopes' && canonical.tokenExchange && Array.isArray(member) && member.length > 0)
      return either(['scopes', member], ['scope', member.join(' ')])
    const synonym = SYNONYMS[key]
    return synonym && 'tokenExchange' in canonical ? either([key, member], [synonym, member]) : [[key, rewrite(member)]]
  }

  function either(one: [string, unknown], other: [string, unknown]): [string, unknown][] {
    if (coin()) return [one, other]
    return coin() ? [one] : [other]
  }
}

function withoutEmptyStrings<T>(value: T): T {
  return JSON.parse(JSON.stringify(value, (_key, member) => (member === '' ? undefined : member)))
}
