import { describe, expect, it } from 'vitest'
import { callbackPath } from './auth-server-config.ts'
import { readRunConfig } from './read-run-config.ts'

const ISSUER = 'https://mcp.example.com'
const OIDC = { issuer_url: 'https://idp.example.com', client_id: 'x' }
const LOGIN = { issuer: ISSUER, allowed_audiences: [`${ISSUER}/mcp`], upstreams: [{ name: 'corp', type: 'oidc', oidc_config: OIDC }] }
const DELEGATE = { client_id: 'agent', client_secret_file: '/etc/agent', scopes: [], audiences: [] }
const TRUSTED = { issuer_url: 'https://partner.example.com' }

function plain(name: string, more: object) {
  const oauth2_config = {
    authorization_endpoint: 'https://a.example.com/a',
    token_endpoint: 'https://a.example.com/t',
    client_id: 'x',
    ...more,
  }
  return { name, type: 'oauth2', oauth2_config }
}

function problemsOf(login: object, oidc: object | undefined = { issuer: ISSUER, audience: `${ISSUER}/mcp` }): string[] {
  const document = {
    name: 'x',
    remote_url: 'https://example.com/mcp',
    transport: 'streamable-http',
    embedded_auth_server_config: { ...LOGIN, ...login },
  }
  const read = readRunConfig(oidc === undefined ? document : { ...document, oidc_config: oidc })
  return read.ok ? [] : read.problems.map(({ path, message }) => `${path.replace('embedded_auth_server_config', '')} ${message}`)
}

describe('embedded_auth_server_config', () => {
  it('is read, with its defaults', () => {
    expect(problemsOf({})).toEqual([])
  })

  it('gives each further provider a path of its own', () => {
    const upstreams = [LOGIN.upstreams[0], plain('a', {}), { ...LOGIN.upstreams[0], name: 'b' }] as { name: string }[]
    expect(problemsOf({ upstreams })).toEqual([])
    expect(upstreams.map(({ name }) => callbackPath(upstreams, name))).toEqual([
      '/oauth/callback',
      '/oauth/callback/a',
      '/oauth/callback/b',
    ])
    expect(callbackPath([plain('a', {})], 'a')).toBe('/oauth/callback')
  })

  it.each<[string, object, string]>([
    ['an unknown member', { isuer: 'x' }, '.isuer is not a known field'],
    [
      'an unknown member of a provider',
      { upstreams: [{ name: 'a', type: 'oidc', oidc_config: { ...OIDC, pkce: false } }] },
      '.upstreams[0].oidc_config.pkce is not a known field',
    ],
    ['an unknown member of the storage', { storage: { type: 'memory', size: 3 } }, '.storage.size is not a known field'],
    ['plain http', { issuer: 'http://mcp.example.com' }, '.issuer expects https'],
    ['an issuer with a slash at its end', { issuer: `${ISSUER}/` }, '.issuer expects an http or https URL without'],
    ['no provider', { upstreams: [] }, '.upstreams expects at least one provider'],
    [
      'two providers of one name',
      { upstreams: [LOGIN.upstreams[0], LOGIN.upstreams[0]] },
      '.upstreams[1].name is the name of another provider',
    ],
    [
      'a first provider on demand',
      { upstreams: [{ ...LOGIN.upstreams[0], login_policy: 'onDemand' }] },
      '.upstreams[0].login_policy expects required',
    ],
    [
      'two OAuth 2 providers with one redirect URI',
      {
        upstreams: [
          LOGIN.upstreams[0],
          plain('a', { redirect_uri: `${ISSUER}/cb` }),
          plain('b', { redirect_uri: 'https://other.example.com/cb' }),
        ],
      },
      '.upstreams[2].oauth2_config.redirect_uri has the path of another provider: their answers could be mixed up',
    ],
    [
      'an OAuth 2 provider with the redirect URI that is the default of another one',
      { upstreams: [plain('a', {}), plain('b', { redirect_uri: `${ISSUER}/oauth/callback` })] },
      '.upstreams[1].oauth2_config.redirect_uri has the path of another provider',
    ],
    [
      'a provider of another type',
      { upstreams: [{ name: 'a', type: 'oauth2', oidc_config: OIDC }] },
      '.upstreams[0].oidc_config is needed with type oidc',
    ],
    [
      'a provider with plain http',
      { upstreams: [{ name: 'a', type: 'oidc', oidc_config: { ...OIDC, issuer_url: 'http://idp.example.com' } }] },
      '.upstreams[0] expects https',
    ],
    [
      'a parameter that the login sets itself',
      { upstreams: [{ name: 'a', type: 'oidc', oidc_config: { ...OIDC, additional_authorization_params: { state: 'x' } } }] },
      'expects a parameter that the login does not set itself',
    ],
    [
      'a long access token',
      { token_lifespans: { access_token_lifespan: '25h' } },
      '.token_lifespans.access_token_lifespan expects 1m to 24h',
    ],
    [
      'a code that is gone at once',
      { token_lifespans: { auth_code_lifespan: '1s' } },
      '.token_lifespans.auth_code_lifespan expects 30s to 10m',
    ],
    [
      'a Redis password twice',
      { storage: { type: 'redis', redis_config: { addr: 'r:1', acl_user_config: { password_env_var: 'P', password_file: '/p' } } } },
      '.acl_user_config.password_file must not be given together with password_env_var',
    ],
    ['Redis without its settings', { storage: { type: 'redis' } }, '.storage.redis_config is needed with type redis'],
    ['a baseline scope that is not supported', { baseline_client_scopes: ['admin'] }, '.baseline_client_scopes holds a scope'],
    [
      'secrets over plain http',
      { insecure_allow_http: true, allow_confidential_client_registration: true },
      '.allow_confidential_client_registration must not be used with insecure_allow_http',
    ],
    [
      'two delegate clients of one id',
      { delegate_clients: [DELEGATE, DELEGATE] },
      '.delegate_clients[1].client_id is the id of another client',
    ],
    [
      'a delegate client without a secret',
      { delegate_clients: [{ ...DELEGATE, client_secret_file: undefined }] },
      '.delegate_clients[0] expects exactly one of client_secret_file and client_secret_env_var',
    ],
    [
      'a delegate client that looks like a registered one',
      { delegate_clients: [{ ...DELEGATE, client_id: 'c1.x' }] },
      '.delegate_clients[0].client_id must not look like',
    ],
    [
      'a trusted issuer with plain http',
      { trusted_issuers: [{ issuer_url: 'http://partner.example.com' }] },
      '.trusted_issuers[0] expects https',
    ],
    [
      'two trusted issuers of one name',
      { trusted_issuers: [TRUSTED, TRUSTED] },
      '.trusted_issuers[1].issuer_url is that of another issuer',
    ],
    [
      'private addresses by discovery',
      { trusted_issuers: [{ ...TRUSTED, allow_private_ips: true }] },
      '.trusted_issuers[0].allow_private_ips needs jwks_url',
    ],
    [
      'all clients and some',
      { trusted_issuers: [{ ...TRUSTED, expected_audience: 'x', allowed_delegate_clients: ['*', 'a'] }] },
      '.trusted_issuers[0].allowed_delegate_clients expects * alone',
    ],
    [
      'all clients with may_act',
      { trusted_issuers: [{ ...TRUSTED, expected_audience: 'x', allowed_delegate_clients: ['*'], allow_may_act: true }] },
      '.trusted_issuers[0].allowed_delegate_clients must name the clients',
    ],
    [
      'an exchange for any audience',
      { trusted_issuers: [{ ...TRUSTED, allowed_delegate_clients: ['a'] }] },
      '.trusted_issuers[0].expected_audience is needed',
    ],
    [
      'another audience than the proxy asks for',
      { allowed_audiences: [`${ISSUER}/other`] },
      '.allowed_audiences expects the audience of oidc_config',
    ],
  ])('refuses %s', (_, login, problem) => {
    expect(problemsOf(login).join('\n')).toContain(problem)
  })

  it('needs a proxy that asks for its tokens', () => {
    expect(problemsOf({}, {}).join('\n')).toContain('oidc_config.issuer')
    expect(problemsOf({}, { issuer: 'https://other.example.com', audience: `${ISSUER}/mcp` }).join('\n')).toContain(
      '.issuer expects the issuer of oidc_config',
    )
    const alone = readRunConfig({
      name: 'x',
      remote_url: 'https://example.com/mcp',
      transport: 'streamable-http',
      embedded_auth_server_config: LOGIN,
    })
    expect(alone).toMatchObject({
      ok: false,
      problems: [{ path: 'embedded_auth_server_config', message: expect.stringContaining('needs oidc_config') }],
    })
  })
})

describe('the provider whose claims policies see', () => {
  const authz = (provider: string) => ({
    authz_config: { type: 'cedarv1', cedar: { policies: ['permit(principal, action, resource);'], primary_upstream_provider: provider } },
  })
  const problems = (more: object, login: object = { embedded_auth_server_config: LOGIN }) => {
    const document = { name: 'x', remote_url: 'https://example.com/mcp', transport: 'streamable-http' }
    const read = readRunConfig({ ...document, oidc_config: { issuer: ISSUER, audience: `${ISSUER}/mcp` }, ...login, ...more })
    return read.ok ? [] : read.problems.map(({ path, message }) => `${path} ${message}`)
  }

  it('is one of the authorization server', () => {
    expect(problems(authz('corp'))).toEqual([])
    expect(problems({ authz_config_path: '/etc/authz.json', authz_primary_upstream_provider: 'corp' })).toEqual([])
  })

  it.each<[string, object, object | undefined, string]>([
    ['unknown', authz('other'), undefined, 'authz_config.cedar.primary_upstream_provider must be the name of one of'],
    ['without a server', authz('corp'), {}, 'authz_config.cedar.primary_upstream_provider must be the name of one of'],
    ['an unknown copy', { authz_config_path: '/a', authz_primary_upstream_provider: 'x' }, undefined, 'must be the name of one of'],
    ['a copy without policies', { authz_primary_upstream_provider: 'corp' }, undefined, 'needs authz_config_path'],
  ])('%s: is a problem', (_, more, login, problem) => {
    expect(problems(more, login)).toEqual([expect.stringContaining(problem)])
  })
})
