import type { MCPExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { fixturesOf } from '@thv/resources/testing/fixtures'
import { describe, expect, it } from 'vitest'
import { secretUses } from '../../../../../apps/operator/src/references/auth-config-secrets.ts'
import { referencesOfExternalAuthConfig } from '../../../../../apps/operator/src/references/references.ts'
import { validateExternalAuthConfig } from './validation.ts'

type Spec = MCPExternalAuthConfig['spec']
type Server = NonNullable<Spec['embeddedAuthServer']>

const fixtures = fixturesOf('mcpexternalauthconfigs')
const problemsOf = (spec: unknown) => validateExternalAuthConfig({ spec: spec as Spec }).problems.join('\n')

const oidc = { name: 'corporate', type: 'oidc', oidcConfig: { issuerUrl: 'https://idp.example.com', clientId: 'c' } } as const
const oauth2 = (config: object) => ({
  name: 'git',
  type: 'oauth2',
  oauth2Config: {
    authorizationEndpoint: 'https://git.example.com/a',
    tokenEndpoint: 'https://git.example.com/t',
    clientId: 'c',
    ...config,
  },
})
const login = (change: Record<string, unknown>) => ({
  type: 'embeddedAuthServer',
  embeddedAuthServer: { issuer: 'https://mcp.example.com', upstreamProviders: [oidc], ...change },
})
const redis = (change: object) =>
  login({
    storage: {
      type: 'redis',
      redis: { aclUserConfig: { passwordSecretRef: { name: 'r', key: 'p' } }, addr: 'redis.example.com:6379', ...change },
    },
  })
const issuer = (change: object) =>
  login({ trustedIssuers: [{ issuerUrl: 'https://ci.example.com', expectedAudience: 'a', allowedDelegateClients: ['d'], ...change }] })
const grant = (change: object) =>
  issuer({
    jwtBearerGrant: {
      maxAssertionAge: '5m',
      subjectBindings: [{ subject: 's', allowedResources: ['https://mcp.example.com'] }],
      ...change,
    },
  })
const exchange = (change: object) => ({
  type: 'tokenExchange',
  tokenExchange: { tokenUrl: 'https://idp.example.com/token', audience: 'a', ...change },
})
const aws = (change: object) => ({
  type: 'awsSts',
  awsSts: { region: 'eu-central-1', fallbackRoleArn: 'arn:aws:iam::123456789012:role/mcp', ...change },
})
const secret = { name: 's', key: 'k' }

describe('validateExternalAuthConfig', () => {
  it.each(fixtures)('finds nothing wrong with $manifest.metadata.name', ({ manifest }) => {
    expect(problemsOf(manifest.spec)).toBe('')
  })

  it.each<[string, unknown, string]>([
    [
      'a member that belongs to another type',
      { ...exchange({}), bearerToken: { tokenSecretRef: secret } },
      'spec.bearerToken has no effect',
    ],
    ['a missing member', { type: 'headerInjection' }, 'spec.headerInjection must be set'],
    ['a type that is not built', { type: 'obo' }, 'spec.type obo is not supported'],
    ['two spellings that differ', exchange({ token_url: 'https://other.example.com' }), 'two spellings'],
    ['a token URL without a host', exchange({ tokenUrl: 'https://' }), 'spec.tokenExchange.tokenUrl is not an http or https URL'],
    ['a password in a URL', exchange({ tokenUrl: 'https://me:hunter2@idp.example.com' }), 'holds a user name or password'],
    ['a client secret without a client', exchange({ clientSecretRef: secret }), 'has no effect without clientId'],
    ['a header that the proxy sets', exchange({ externalTokenHeaderName: 'Host' }), 'a header that the proxy sets itself'],
    [
      'a header injection of such a header',
      { type: 'headerInjection', headerInjection: { headerName: 'Mcp-Session-Id', valueSecretRef: secret } },
      'a header that the proxy sets itself',
    ],

    ['no role at all', aws({ fallbackRoleArn: undefined }), 'must set fallbackRoleArn, roleMappings or both'],
    ['something that is not a role', aws({ fallbackRoleArn: 'arn:aws:iam::1:user/x' }), 'is not the ARN of an IAM role'],
    [
      'a mapping with claim and matcher',
      aws({ roleMappings: [{ claim: 'a', matcher: 'true', roleArn: 'arn:aws:iam::123456789012:role/x' }] }),
      'roleMappings[0] must set exactly one of claim and matcher',
    ],
    [
      'a mapping with neither',
      aws({ roleMappings: [{ roleArn: 'arn:aws:iam::123456789012:role/x' }] }),
      'exactly one of claim and matcher',
    ],
    ['a mapping to no role', aws({ roleMappings: [{ claim: 'a', roleArn: 'x' }] }), 'roleMappings[0].roleArn is not the ARN'],
    ['a session that is too long', aws({ sessionDuration: 50_000 }), 'between 900 and 43200'],

    ['an http issuer', login({ issuer: 'http://mcp.example.com' }), 'issuer must begin with https://, or set insecureAllowHTTP'],
    ['an issuer with a slash at its end', login({ issuer: 'https://mcp.example.com/' }), 'no trailing slash'],
    ['an issuer with a query', login({ issuer: 'https://mcp.example.com?a' }), 'no query'],
    ['an http login page', login({ authorizationEndpointBaseUrl: 'http://login.example.com' }), 'authorizationEndpointBaseUrl must begin'],
    ['no provider', login({ upstreamProviders: [] }), 'must name at least one provider'],
    ['a provider twice', login({ upstreamProviders: [oidc, oidc] }), 'holds corporate more than once'],
    ['a provider without its settings', login({ upstreamProviders: [{ name: 'a', type: 'oidc' }] }), 'must set oidcConfig'],
    ['settings of another type', login({ upstreamProviders: [{ ...oidc, type: 'oauth2' }] }), 'must set oauth2Config and nothing else'],
    [
      'an http provider',
      login({ upstreamProviders: [{ ...oidc, oidcConfig: { ...oidc.oidcConfig, issuerUrl: 'http://idp.example.com' } }] }),
      'oidcConfig.issuerUrl must begin with https://',
    ],
    [
      'a parameter that the server sets',
      login({
        upstreamProviders: [{ ...oidc, oidcConfig: { ...oidc.oidcConfig, additionalAuthorizationParams: { state: 'x', a: 'b' } } }],
      }),
      'must not set state: the server does so itself',
    ],
    ['an http endpoint', login({ upstreamProviders: [oauth2({ tokenEndpoint: 'http://git.example.com/t' })] }), 'or set insecureAllowHTTP'],
    [
      'a client twice',
      login({ upstreamProviders: [oauth2({ dcrConfig: { discoveryUrl: 'https://x.example.com/d' } })] }),
      'exactly one of clientId',
    ],
    ['no client', login({ upstreamProviders: [oauth2({ clientId: undefined })] }), 'exactly one of clientId and dcrConfig'],
    [
      'a secret beside a registration',
      login({
        upstreamProviders: [
          oauth2({ clientId: undefined, clientSecretRef: secret, dcrConfig: { discoveryUrl: 'https://x.example.com/d' } }),
        ],
      }),
      'must not be set with dcrConfig',
    ],
    [
      'a registration without a place',
      login({ upstreamProviders: [oauth2({ clientId: undefined, dcrConfig: {} })] }),
      'exactly one of discoveryUrl and registrationEndpoint',
    ],
    [
      'a first provider on demand',
      login({ upstreamProviders: [{ ...oauth2({}), loginPolicy: 'onDemand' }] }),
      'loginPolicy must be required, because the first provider says who the user is',
    ],
    ['an unknown primary provider', login({ primaryUpstreamProvider: 'other' }), 'must be the name of one of upstreamProviders'],
    ['a key twice', login({ signingKeySecretRefs: [secret, secret] }), 'signingKeySecretRefs holds s/k more than once'],
    ['a lifespan that is too short', login({ tokenLifespans: { accessTokenLifespan: '1s' } }), 'between 1m and 24h'],
    ['a lifespan that is none', login({ tokenLifespans: { refreshTokenLifespan: 'soon' } }), 'between 1h and 720h'],
    ['a cache time that is none', login({ cimd: { enabled: true, cacheFallbackTtl: '0s' } }), 'a duration above 0'],
    [
      'client secrets in the clear',
      login({ allowConfidentialClientRegistration: true, insecureAllowHTTP: true }),
      'would travel in the clear',
    ],
    [
      'client secrets over http on localhost',
      login({ issuer: 'http://localhost:8080', allowConfidentialClientRegistration: true }),
      'needs an https:// issuer',
    ],
    [
      'forced clients without any',
      login({ forceConfidentialRedirectUris: ['https://a.example.com/cb'] }),
      'needs allowConfidentialClientRegistration',
    ],
    [
      'a forced client on localhost',
      login({ allowConfidentialClientRegistration: true, forceConfidentialRedirectUris: ['https://localhost/cb'] }),
      'must not lead to localhost',
    ],
    [
      'delegate clients over http',
      login({ issuer: 'http://localhost', delegateClients: [{ clientId: 'd', clientSecretRef: secret, scopes: ['s'], audiences: ['a'] }] }),
      'delegateClients need an issuer that begins with https://',
    ],

    ['redis without a place', redis({ addr: undefined }), 'exactly one of addr and sentinelConfig'],
    [
      'redis with two places',
      redis({ sentinelConfig: { masterName: 'm', sentinelAddrs: ['a:1'] } }),
      'exactly one of addr and sentinelConfig',
    ],
    ['redis without a port', redis({ addr: 'redis.example.com' }), 'storage.redis.addr must be host:port'],
    ['redis with a URL', redis({ addr: 'redis://redis.example.com:6379' }), 'must be host:port'],
    ['a port that is none', redis({ addr: 'redis.example.com:70000' }), 'must be host:port'],
    [
      'a cluster without an address',
      redis({ addr: undefined, clusterMode: true, sentinelConfig: { masterName: 'm', sentinelAddrs: ['a:1'] } }),
      'clusterMode needs addr',
    ],
    [
      'sentinels without a place',
      redis({ addr: undefined, sentinelConfig: { masterName: 'm' } }),
      'exactly one of sentinelAddrs and sentinelService',
    ],
    ['TLS for no sentinels', redis({ sentinelTls: {} }), 'sentinelTls needs sentinelConfig'],
    ['a timeout that is none', redis({ dialTimeout: 'never' }), 'dialTimeout must be a duration'],
    [
      'memory with redis settings',
      login({ storage: { type: 'memory', redis: { aclUserConfig: { passwordSecretRef: secret } } } }),
      'if and only if',
    ],

    ['an http trusted issuer', issuer({ issuerUrl: 'http://ci.example.com' }), 'trustedIssuers[0].issuerUrl must begin with https://'],
    ['private keys by discovery', issuer({ allowPrivateIPs: true }), 'allowPrivateIPs needs jwksUrl'],
    ["'*' and more", issuer({ allowedDelegateClients: ['*', 'd'] }), "'*' must stand alone"],
    ["'*' with may_act", issuer({ allowedDelegateClients: ['*'], allowMayAct: true }), "'*' must not be used with allowMayAct"],
    ['no client that may exchange', issuer({ allowedDelegateClients: undefined }), 'must name the clients'],
    ['no audience', issuer({ expectedAudience: undefined }), 'expectedAudience must be set'],
    ['an age of nothing', grant({ maxAssertionAge: '0s' }), 'maxAssertionAge must be a duration above 0'],
    ['no subject', grant({ subjectBindings: [] }), 'at least one subject'],
    [
      'a subject twice',
      grant({
        subjectBindings: [
          { subject: 's', allowedResources: ['https://a.example.com'] },
          { subject: 's', allowedResources: ['https://b.example.com'] },
        ],
      }),
      'names a subject more than once',
    ],
    [
      'any subject',
      grant({ subjectBindings: [{ subject: 'system:*', allowedResources: ['https://a.example.com'] }] }),
      'without wildcards',
    ],
  ])('refuses %s', (_, spec, message) => {
    expect(problemsOf(spec)).toContain(message)
  })

  it('tells all problems at once', () => {
    const { problems } = validateExternalAuthConfig({ spec: login({ issuer: 'nothing', upstreamProviders: [] }) as Spec })
    expect(problems).toHaveLength(2)
  })

  it('never repeats a password that stands in a URL', () => {
    expect(problemsOf(exchange({ tokenUrl: 'https://me:hunter2@idp.example.com' }))).not.toContain('hunter2')
  })

  it('takes http where the object says so, and on localhost', () => {
    expect(problemsOf(login({ issuer: 'http://mcp.example.com', insecureAllowHTTP: true }))).toBe('')
    expect(problemsOf(login({ issuer: 'http://127.0.0.1:8080' }))).toBe('')
    expect(problemsOf(issuer({ issuerUrl: 'http://ci.example.com', insecureAllowHTTP: true }))).toBe('')
  })

  it('takes an issuer that is only for assertions without naming delegates', () => {
    expect(problemsOf(grant({}))).toBe('')
    const only = {
      issuerUrl: 'https://ci.example.com',
      jwtBearerGrant: { maxAssertionAge: '5m', subjectBindings: [{ subject: 's', allowedResources: ['https://mcp.example.com'] }] },
    }
    expect(problemsOf(login({ trustedIssuers: [only] }))).toBe('')
    expect(problemsOf(login({ trustedIssuers: [{ ...only, allowMayAct: true }] }))).toContain('must name the clients')
  })

  it('warns of what works but is unsafe', () => {
    const warnings = (spec: unknown) => validateExternalAuthConfig({ spec: spec as Spec }).warnings.join('\n')
    expect(warnings(exchange({ tokenUrl: 'http://keycloak.auth.svc/token' }))).toContain('plain HTTP')
    expect(warnings(login({}))).toContain('tokens die with the pod')
    expect(warnings(login({ signingKeySecretRefs: [secret], insecureAllowHTTP: true }))).toContain('in the clear')
    expect(warnings(exchange({}))).toBe('')
  })
})

describe('secretUses', () => {
  it.each(fixtures)('knows the Secrets of $manifest.metadata.name that the index knows', ({ manifest }) => {
    const config = { metadata: manifest.metadata, spec: manifest.spec as Spec }
    const names = new Set(secretUses(validateExternalAuthConfig(config).spec).map(({ name }) => name))
    expect([...names].toSorted()).toEqual(referencesOfExternalAuthConfig(config).secrets.toSorted())
  })

  it('names the fields', () => {
    const server = fixtures.find(({ manifest }) => manifest.metadata.name === 'login-full')?.manifest.spec as { embeddedAuthServer: Server }
    const { spec } = validateExternalAuthConfig({ spec: server as unknown as Spec })
    expect(secretUses(spec).map(({ field }) => field)).toEqual([
      'embeddedAuthServer.signingKeySecretRefs[0]',
      'embeddedAuthServer.signingKeySecretRefs[1]',
      'embeddedAuthServer.hmacSecretRefs[0]',
      'embeddedAuthServer.upstreamProviders[corporate].oidcConfig.clientSecretRef',
      'embeddedAuthServer.upstreamProviders[github].oauth2Config.clientSecretRef',
      'embeddedAuthServer.upstreamProviders[chat].oauth2Config.dcrConfig.initialAccessTokenRef',
      'embeddedAuthServer.delegateClients[0].clientSecretRef',
      'embeddedAuthServer.storage.redis.aclUserConfig.usernameSecretRef',
      'embeddedAuthServer.storage.redis.aclUserConfig.passwordSecretRef',
      'embeddedAuthServer.storage.redis.tls.caCertSecretRef',
      'embeddedAuthServer.storage.redis.sentinelTls.caCertSecretRef',
    ])
  })
})
