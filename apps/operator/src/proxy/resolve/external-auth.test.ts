import { readFileSync } from 'node:fs'
import { AUTH_TYPES, type AuthType } from '@thv/resources/kinds/mcp-external-auth-config/constants'
import type { MCPExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { fixturesOf } from '@thv/resources/testing/fixtures'
import { unsupportedFields } from '@thv/runconfig/middleware-table'
import type { OidcConfig } from '@thv/runconfig/policy-config'
import { describe, expect, it } from 'vitest'
import { judgeAuthConfig } from '../../references/judge-auth-config.ts'
import type { Lookup } from '../../references/lookup.ts'
import type { Contribution, Resolved } from '../contribution.ts'
import { type ExternalAuthArgs, resolveExternalAuth } from './external-auth.ts'
import { EXTERNAL_AUTH_TABLE, renderExternalAuthReference } from './external-auth-table.ts'
import { blockersOf, contributionOf, runnerReads } from './testing/snapshot.ts'

type Spec = MCPExternalAuthConfig['spec']

const RESOURCE = 'https://mcp.example.com/mcp'
const OIDC: OidcConfig = {
  issuer: 'https://mcp.example.com',
  audience: RESOURCE,
  resource_url: RESOURCE,
  allow_private_ip: false,
  jwks_allow_private_ip: false,
  insecure_allow_http: false,
  this_cluster: false,
  forward_token: false,
  scopes: ['openid', 'mcp:tools'],
}

const ref = (key: string) => ({ name: 'creds', key })
const provider = (name: string) => ({ name, type: 'oidc' as const, oidcConfig: { issuerUrl: 'https://idp.example.com', clientId: 'c' } })
const login = (change: object = {}) => ({
  type: 'embeddedAuthServer',
  embeddedAuthServer: { issuer: 'https://mcp.example.com', upstreamProviders: [provider('corporate')], ...change },
})

/** One that works for each type. */
const SPECS: Record<AuthType, unknown> = {
  unauthenticated: { type: 'unauthenticated' },
  tokenExchange: {
    type: 'tokenExchange',
    tokenExchange: {
      tokenUrl: 'https://idp.example.com/token',
      audience: 'orders',
      clientId: 'toolhive',
      clientSecretRef: ref('secret'),
      scopes: ['a', 'b'],
      subjectTokenType: 'jwt',
    },
  },
  headerInjection: { type: 'headerInjection', headerInjection: { headerName: 'X-Api-Key', valueSecretRef: ref('key') } },
  bearerToken: { type: 'bearerToken', bearerToken: { tokenSecretRef: ref('token') } },
  clientCredentials: {
    type: 'clientCredentials',
    clientCredentials: {
      clientId: 'toolhive',
      clientSecretRef: ref('secret'),
      issuer: 'https://idp.example.com',
      scopes: ['a'],
      resource: 'urn:x',
    },
  },
  awsSts: {
    type: 'awsSts',
    awsSts: {
      region: 'eu-central-1',
      roleMappings: [
        { claim: 'admins', roleArn: 'arn:aws:iam::123456789012:role/admin', priority: 1 },
        { matcher: 'true', roleArn: 'arn:aws:iam::123456789012:role/all' },
      ],
    },
  },
  upstreamInject: { type: 'upstreamInject', upstreamInject: { providerName: 'corporate' } },
  embeddedAuthServer: login(),
  oidc: { type: 'oidc', oidc: { issuer: 'https://idp.example.com' } },
}

function lookup(
  configs: Record<string, unknown>,
  secrets: Record<string, string[]> = { creds: ['secret', 'key', 'token'] },
): ExternalAuthArgs['lookup'] {
  return {
    externalAuthConfig: (name) => (Object.hasOwn(configs, name) ? { metadata: { name }, spec: configs[name] as Spec } : undefined),
    secret: (name) => (secrets[name] ? { uid: 'u', resourceVersion: '1', keys: new Set(secrets[name]) } : undefined),
  }
}

function resolve(configs: Record<string, unknown>, change: Partial<ExternalAuthArgs> = {}): Resolved {
  return resolveExternalAuth({
    ref: { name: 'auth' },
    authServerRef: undefined,
    kind: 'MCPServer',
    transport: 'streamable-http',
    oidc: OIDC,
    name: 'x',
    namespace: 'team',
    resourceUrl: 'http://mcp-x-proxy.team.svc.cluster.local:8080',
    lookup: lookup(configs),
    ...change,
  })
}

/** Members that the runner needs around it. */
const base = (kind: 'MCPServer' | 'MCPRemoteProxy') =>
  kind === 'MCPServer' ? {} : { image: '', remote_url: 'https://remote.example.com/mcp' }
const fields = ({ runConfig = {} }: Contribution) => Object.keys(runConfig)
const loginRef = { kind: 'MCPExternalAuthConfig', name: 'login' } as const

describe('each type on each kind', () => {
  const cases = AUTH_TYPES.flatMap((type) => (['MCPServer', 'MCPRemoteProxy'] as const).map((kind) => [type, kind] as const))

  it.each(cases)('%s on %s does what the table says', (type, kind) => {
    const effect = EXTERNAL_AUTH_TABLE[type][kind]
    const needsLogin = type === 'upstreamInject'
    const resolved = resolve({ auth: SPECS[type], login: login() }, { kind, ...(needsLogin && { authServerRef: loginRef }) })
    if (effect.effect === 'rejected') {
      expect(blockersOf(resolved)).toMatchObject([{ condition: 'ExternalAuthConfigValidated', status: 'False', reason: effect.reason }])
      return
    }
    const contribution = contributionOf(resolved, base(kind))
    const expected = effect.effect === 'runConfig' ? [effect.field] : []
    expect(fields(contribution).filter((field) => !needsLogin || field !== 'embedded_auth_server_config')).toEqual(expected)
    const variables = effect.effect === 'runConfig' ? effect.variables.map((name) => name.replace('<Secret name>', 'creds')) : []
    expect(contribution.env?.map(({ name }) => name)).toEqual(variables)
    expect(contribution.status?.['externalAuthConfigHash']).toMatch(/^[0-9a-f]+$/)
    expect(contribution.secrets).toEqual(variables.length > 0 ? ['creds'] : [])
  })

  it.each(cases)('%s on %s shows its condition as the kind does', (type, kind) => {
    const resolved = resolve({ auth: SPECS[type], login: login() }, { kind, ...(type === 'upstreamInject' && { authServerRef: loginRef }) })
    const told = resolved.contribution?.conditions?.filter(({ type: of }) => of === 'ExternalAuthConfigValidated')
    if (!resolved.ok) return expect(resolved.blockers).not.toEqual([])
    expect(told).toMatchObject(kind === 'MCPServer' ? [] : [{ status: 'True', reason: 'ExternalAuthConfigValid' }])
  })

  it('adds nothing without a reference', () => {
    const { runConfig, env, conditions } = contributionOf(resolve({}, { ref: undefined }))
    expect({ runConfig, env, conditions }).toEqual({ runConfig: {}, env: [], conditions: [] })
  })
})

describe('contributions to the proxy', () => {
  it('token exchange, with names expanded and the secret in a variable', () => {
    const { runConfig, env } = contributionOf(resolve({ auth: SPECS.tokenExchange }))
    expect(runConfig).toEqual({
      token_exchange_config: {
        token_url: 'https://idp.example.com/token',
        client_id: 'toolhive',
        audience: 'orders',
        scopes: ['a', 'b'],
        subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
        header_strategy: 'replace',
      },
    })
    expect(env).toEqual([{ name: 'TOOLHIVE_TOKEN_EXCHANGE_CLIENT_SECRET', valueFrom: { secretKeyRef: { name: 'creds', key: 'secret' } } }])
  })

  it('token exchange into a header of its own', () => {
    const auth = {
      type: 'tokenExchange',
      tokenExchange: { tokenUrl: 'https://i.example.com', audience: 'a', externalTokenHeaderName: 'X-T' },
    }
    const { runConfig, env } = contributionOf(resolve({ auth }))
    expect(runConfig?.token_exchange_config).toMatchObject({ header_strategy: 'custom', external_token_header_name: 'X-T' })
    expect(env).toEqual([])
  })

  it('a header from a Secret', () => {
    const { runConfig, env } = contributionOf(resolve({ auth: SPECS.headerInjection }))
    expect(runConfig?.header_injection_config).toEqual({ header_name: 'X-Api-Key', header_value_env: 'TOOLHIVE_HEADER_INJECTION_VALUE' })
    expect(env).toEqual([{ name: 'TOOLHIVE_HEADER_INJECTION_VALUE', valueFrom: { secretKeyRef: { name: 'creds', key: 'key' } } }])
  })

  it('a bearer token for a remote server', () => {
    const { runConfig, env } = contributionOf(resolve({ auth: SPECS.bearerToken }, { kind: 'MCPRemoteProxy' }), base('MCPRemoteProxy'))
    expect(runConfig?.remote_auth_config).toMatchObject({ bearer_token: 'creds,target=bearer_token' })
    expect(env).toEqual([{ name: 'TOOLHIVE_SECRET_creds', valueFrom: { secretKeyRef: { name: 'creds', key: 'token' } } }])
  })

  it('a bearer token for a server of our own, which the kubelet completes: the variable it uses stands before it', () => {
    const { runConfig, env } = contributionOf(resolve({ auth: SPECS.bearerToken }))
    expect(runConfig?.header_injection_config).toEqual({
      header_name: 'Authorization',
      header_value_env: 'TOOLHIVE_HEADER_INJECTION_VALUE',
    })
    expect(env).toEqual([
      { name: 'TOOLHIVE_HEADER_INJECTION_TOKEN', valueFrom: { secretKeyRef: { name: 'creds', key: 'token' } } },
      { name: 'TOOLHIVE_HEADER_INJECTION_VALUE', value: 'Bearer $(TOOLHIVE_HEADER_INJECTION_TOKEN)' },
    ])
  })

  it.each(['MCPServer', 'MCPRemoteProxy'] as const)('client credentials for an %s', (kind) => {
    const { runConfig, env } = contributionOf(resolve({ auth: SPECS.clientCredentials }, { kind }), base(kind))
    expect(runConfig?.remote_auth_config).toEqual({
      client_id: 'toolhive',
      client_secret: 'creds,target=client_secret',
      issuer: 'https://idp.example.com',
      scopes: ['a'],
      resource: 'urn:x',
      use_pkce: false,
      oauth_params: {},
    })
    expect(env).toEqual([{ name: 'TOOLHIVE_SECRET_creds', valueFrom: { secretKeyRef: { name: 'creds', key: 'secret' } } }])
  })

  it('AWS roles in snake_case', () => {
    const { runConfig } = contributionOf(resolve({ auth: SPECS.awsSts }, { kind: 'MCPRemoteProxy' }), base('MCPRemoteProxy'))
    expect(runConfig?.aws_sts_config).toEqual({
      region: 'eu-central-1',
      service: 'aws-mcp',
      role_mappings: [
        { claim: 'admins', role_arn: 'arn:aws:iam::123456789012:role/admin', priority: 1 },
        { matcher: 'true', role_arn: 'arn:aws:iam::123456789012:role/all' },
      ],
      role_claim: 'groups',
      session_duration: 3600,
      session_name_claim: 'sub',
    })
  })

  it('the token of the upstream provider', () => {
    const resolved = resolve({ auth: SPECS.upstreamInject, login: login() }, { authServerRef: loginRef })
    expect(contributionOf(resolved).runConfig?.upstream_swap_config).toEqual({ provider_name: 'corporate', header_strategy: 'replace' })
  })
})

describe('blockers', () => {
  const only = (resolved: Resolved) => {
    const [blocker, ...others] = blockersOf(resolved)
    expect(others).toEqual([])
    expect(resolved.contribution?.runConfig).toBeUndefined()
    return blocker
  }

  it.each<[string, Record<string, unknown>, Partial<ExternalAuthArgs>, string, string]>([
    ['a configuration that is not there', {}, {}, 'ExternalAuthConfigNotFound', 'names MCPExternalAuthConfig auth'],
    ['an invalid one, with its own reason', { auth: { type: 'awsSts', awsSts: { region: 'x' } } }, {}, 'ValidationFailed', 'is not valid'],
    ['a type of an older schema', { auth: { type: 'xaa' } }, {}, 'ValidationFailed', 'not supported'],
    ['a header for a server that speaks stdio', { auth: SPECS.headerInjection }, { transport: 'stdio' }, 'InvalidConfig', 'spec.secrets'],
    ['an exchange for such a server', { auth: SPECS.tokenExchange }, { transport: 'stdio' }, 'InvalidConfig', 'stdio'],
    [
      'AWS signatures of unknown callers',
      { auth: SPECS.awsSts },
      { kind: 'MCPRemoteProxy', oidc: undefined },
      'InvalidConfig',
      'set spec.oidcConfig',
    ],
    ['a provider without a server to log in to', { auth: SPECS.upstreamInject }, {}, 'InvalidConfig', 'set spec.authServerRef'],
    [
      'a provider that the server does not have',
      { auth: { type: 'upstreamInject', upstreamInject: { providerName: 'other' } }, login: login() },
      { authServerRef: loginRef },
      'InvalidConfig',
      'has none of that name',
    ],
    [
      'a subject of a provider without such a server',
      {
        auth: {
          type: 'tokenExchange',
          tokenExchange: { tokenUrl: 'https://i.example.com', audience: 'a', subjectProviderName: 'corporate' },
        },
      },
      {},
      'InvalidConfig',
      'set spec.authServerRef',
    ],
    [
      'a token that the server removes',
      { auth: SPECS.tokenExchange, login: login({ disableUpstreamTokenInjection: true }) },
      { authServerRef: loginRef },
      'InvalidConfig',
      'disableUpstreamTokenInjection',
    ],
    ['two embedded servers', { auth: login(), login: login() }, { authServerRef: loginRef }, 'InvalidConfig', 'keep one of them'],
    ['an embedded server without OIDC', { auth: login() }, { oidc: undefined }, 'InvalidConfig', 'set spec.oidcConfig with issuer'],
    [
      'an audience that is not the resource',
      { auth: login() },
      { oidc: { ...OIDC, audience: 'x' } },
      'InvalidConfig',
      'must be its resourceUrl',
    ],
    [
      'another issuer',
      { auth: login() },
      { oidc: { ...OIDC, issuer: 'https://x.example.com' } },
      'InvalidConfig',
      'the issuer of spec.oidcConfig',
    ],
    ['unknown scopes', { auth: login({ baselineClientScopes: ['openid', 'x'] }) }, {}, 'InvalidConfig', 'baselineClientScopes holds x'],
  ])('%s', (_, configs, change, reason, message) => {
    expect(only(resolve(configs, change))).toMatchObject({
      condition: 'ExternalAuthConfigValidated',
      reason,
      message: expect.stringContaining(message),
    })
  })

  it.each<[string, Record<string, unknown>, Partial<ExternalAuthArgs>, string, string]>([
    ['a server that is not there', {}, {}, 'AuthServerRefNotFound', 'spec.authServerRef names'],
    ['a kind that is none', {}, { authServerRef: { kind: 'Secret', name: 'login' } }, 'AuthServerRefInvalidKind', 'not Secret'],
    ['another type', { login: SPECS.bearerToken }, {}, 'AuthServerRefInvalidType', 'has type bearerToken'],
    ['an invalid server', { login: login({ issuer: 'http://mcp.example.com' }) }, {}, 'AuthServerRefInvalidConfig', 'is not valid'],
    ['a server without OIDC', { login: login() }, { oidc: undefined }, 'AuthServerRefInvalidConfig', 'set spec.oidcConfig'],
    [
      'a Secret that is missing',
      { login: login({ signingKeySecretRefs: [{ name: 'keys', key: 'k' }] }) },
      {},
      'AuthServerRefInvalidConfig',
      'Secret keys, which does not exist',
    ],
  ])('to log in: %s', (_, configs, change, reason, message) => {
    expect(only(resolve(configs, { ref: undefined, authServerRef: loginRef, ...change }))).toMatchObject({
      condition: 'AuthServerRefValidated',
      reason,
      message: expect.stringContaining(message),
    })
  })

  it.each(['tokenExchange', 'headerInjection', 'bearerToken', 'clientCredentials'] as const)(
    'a Secret or a key of %s that is missing',
    (type) => {
      for (const secrets of [{}, { creds: ['other'] }]) {
        const blocker = only(resolve({ auth: SPECS[type] }, { lookup: lookup({ auth: SPECS[type] }, secrets as Record<string, string[]>) }))
        expect(blocker).toMatchObject({ condition: 'ExternalAuthConfigValidated', reason: 'SecretNotFound' })
        expect(blocker?.message).toContain('Secret creds')
      }
    },
  )

  it.each([
    ['to log in', { ref: undefined, authServerRef: loginRef }, 'AuthServerRefInvalidConfig'],
    ['to the server', { ref: { name: 'login' } }, 'InvalidConfig'],
  ])('%s: a Secret of somebody else in place of the keys that the operator makes', (_, change, reason) => {
    const spec = login()
    const made = (controller: string | undefined) => ({
      ...lookup({ login: spec }),
      secret: () => (controller === undefined ? undefined : { uid: 'u', resourceVersion: '1', keys: new Set<string>(), controller }),
    })
    const resolved = (controller: string | undefined) => resolve({}, { ...change, lookup: made(controller) })
    for (const controller of ['', 'VirtualMCPServer login', 'MCPExternalAuthConfig other'])
      expect(only(resolved(controller))).toMatchObject({
        reason,
        message: expect.stringContaining('Secret login-authserver is in the way'),
      })
    for (const controller of [undefined, 'MCPExternalAuthConfig login']) expect(resolved(controller).ok).toBe(true)
  })

  it('tells of both references when both are wrong', () => {
    const blockers = blockersOf(resolve({}, { authServerRef: loginRef }))
    expect(blockers.map(({ condition }) => condition)).toEqual(['AuthServerRefValidated', 'ExternalAuthConfigValidated'])
  })

  it('shows what is right although something else is wrong', () => {
    const { contribution } = resolve({ login: login() }, { authServerRef: loginRef })
    expect(contribution?.conditions).toMatchObject([{ type: 'AuthServerRefValidated', status: 'True', reason: 'AuthServerRefValid' }])
    expect(contribution?.status).toEqual({ authServerConfigHash: expect.any(String) })
  })

  it('points at the OIDC configuration when that is what blocks', () => {
    const cases = [
      [{ ref: undefined, authServerRef: loginRef }, 'AuthServerRefValidated'],
      [{ ref: { name: 'login' } }, 'ExternalAuthConfigValidated'],
    ] as const
    for (const [change, condition] of cases) {
      const blocker = only(resolve({ login: login() }, { ...change, oidc: 'unresolved' }))
      expect(blocker).toMatchObject({ condition, message: expect.stringContaining('spec.oidcConfig, which has a problem of its own') })
    }
  })
})

describe('every manifest of the fixtures', () => {
  const manifests = fixturesOf('mcpexternalauthconfigs').map(({ manifest }) => manifest)
  const all: Pick<Lookup, 'secret'> = {
    secret: () => ({ uid: 'u', resourceVersion: '1', keys: { has: () => true } as unknown as Set<string> }),
  }

  it.each(manifests)('$metadata.name either blocks or gives what the runner reads, with no more than it asks for', ({ spec }) => {
    for (const kind of ['MCPServer', 'MCPRemoteProxy'] as const) {
      const server = (spec as { embeddedAuthServer?: { issuer: string } }).embeddedAuthServer
      const oidc = { ...OIDC, ...(server && { issuer: server.issuer }) }
      const resolved = resolve({}, { kind, oidc, lookup: { ...lookup({ auth: spec }), ...all } })
      if (resolved.ok) expect(runnerReads(resolved.contribution, base(kind))).toBeDefined()
      else expect(resolved.blockers[0]).toMatchObject({ condition: 'ExternalAuthConfigValidated', message: expect.stringContaining(': ') })
    }
  })

  it('mirrors the reason that the object itself shows', () => {
    for (const { spec } of manifests) {
      const { valid } = judgeAuthConfig({ spec: spec as Spec }, { secret: () => undefined })
      if (valid.status === 'True') continue
      const resolved = resolve({}, { lookup: lookup({ auth: spec }, {}) })
      expect(blockersOf(resolved)[0]?.reason).toBe(valid.reason)
    }
  })
})

describe('a server with several upstream providers', () => {
  const several = login({ upstreamProviders: [provider('a'), provider('b')] })

  it.each(['MCPServer', 'MCPRemoteProxy'] as const)('%s: users log in to each, and upstreamInject chooses whose token is sent', (kind) => {
    const inject = { type: 'upstreamInject', upstreamInject: { providerName: 'b' } }
    const resolved = resolve({ auth: inject, login: several }, { kind, authServerRef: loginRef })
    expect(resolved.ok).toBe(true)
    const config = runnerReads(resolved.contribution ?? {}, base(kind))
    expect(config.embedded_auth_server_config?.upstreams.map(({ name }) => name)).toEqual(['a', 'b'])
    expect(config.upstream_swap_config).toMatchObject({ provider_name: 'b' })
    expect(unsupportedFields(config)).toEqual([])
  })

  it('is refused where upstreamInject names none of them', () => {
    const inject = { type: 'upstreamInject', upstreamInject: { providerName: 'c' } }
    expect(blockersOf(resolve({ auth: inject, login: several }, { authServerRef: loginRef }))[0]?.message).toContain('provider c')
  })
})

describe('docs/reference/external-auth.md', () => {
  it('is what the table says', () => {
    expect(readFileSync(new URL('../../../../../docs/reference/external-auth.md', import.meta.url), 'utf8')).toBe(
      renderExternalAuthReference(),
    )
  })

  it('has a row for each type', () => {
    for (const type of AUTH_TYPES) expect(renderExternalAuthReference()).toContain(`| \`${type}\` |`)
  })
})
