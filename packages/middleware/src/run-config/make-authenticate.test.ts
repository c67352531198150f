import type { IncomingProvider } from '@thv/auth/incoming/incoming-provider'
import { createOutbound } from '@thv/http/outbound/outbound'
import { systemClock } from '@thv/kernel/clock'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import type { RunConfig } from '@thv/runconfig/run-config'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { describe, expect, it } from 'vitest'
import { incomingProviderOf } from './incoming-provider-of.ts'
import { makeAuthenticate } from './make-authenticate.ts'
import { protectedResourceOf } from './protected-resource-of.ts'

function configOf(oidc: object, more: object = {}): RunConfig {
  const document = { name: 'x', transport: 'streamable-http', remote_url: 'https://example.com/mcp', oidc_config: oidc, ...more }
  const read = readRunConfig(document)
  if (!read.ok) throw new TypeError(JSON.stringify(read.problems))
  return read.config
}

function providerOf(oidc: object, { env = {}, more = {} } = {}): IncomingProvider {
  const config = configOf(oidc, more)
  if (config.oidc_config === undefined) throw new TypeError('no oidc_config')
  return incomingProviderOf(config, config.oidc_config, env)
}

const ISSUER = 'https://idp.example.com'

describe('oidc_config', () => {
  it.each<[string, object, object, Partial<IncomingProvider>]>([
    ['issuer', {}, {}, { issuer: ISSUER, audience: undefined, allowPrivateIP: false }],
    ['audience', { audience: 'a' }, {}, { audience: 'a' }],
    ['resource_url', { resource_url: 'https://mcp.example.com' }, {}, { audience: 'https://mcp.example.com' }],
    ['both', { audience: 'a', resource_url: 'https://mcp.example.com' }, {}, { audience: 'a' }],
    ['required_subject', { required_subject: 'system:*' }, {}, { requiredSubject: 'system:*' }],
    ['jwks_url', { jwks_url: 'https://k.example.com' }, {}, { jwksUrl: 'https://k.example.com' }],
    ['allow_private_ip', { allow_private_ip: true }, {}, { allowPrivateIP: true, jwksAllowPrivateIP: false }],
    ['jwks_allow_private_ip', { jwks_allow_private_ip: true }, {}, { allowPrivateIP: false, jwksAllowPrivateIP: true }],
    ['insecure_allow_http', { insecure_allow_http: true }, {}, { allowHttp: true }],
    ['ca_cert_path', { ca_cert_path: '/ca' }, {}, { caCertPath: '/ca' }],
    ['thv_ca_bundle', {}, { thv_ca_bundle: '/ca' }, { caCertPath: '/ca' }],
    ['auth_token_file', { auth_token_file: '/t' }, {}, { authTokenFile: '/t' }],
    ['jwks_auth_token_file', {}, { jwks_auth_token_file: '/t' }, { authTokenFile: '/t' }],
  ])('%s reaches the provider', (_member, oidc, more, expected) => {
    expect(providerOf({ issuer: ISSUER, ...oidc }, { more })).toMatchObject(expected)
  })

  it('introspection takes its secret from the document or from the variable', () => {
    const introspection = { issuer: ISSUER, introspection_url: `${ISSUER}/introspect`, client_id: 'c' }
    const env = { TOOLHIVE_OIDC_CLIENT_SECRET: 'from env' }
    const { clientSecret } = { ...providerOf({ ...introspection, client_secret: 'in clear' }, { env }).introspection }
    expect(clientSecret).toBe('in clear')
    expect(providerOf(introspection, { env }).introspection).toEqual({
      ...{ url: `${ISSUER}/introspect`, clientId: 'c', clientSecret: 'from env' },
    })
  })

  it.each(['https://oauth2.googleapis.com/tokeninfo', 'https://api.github.com/applications/x/token'])('%s is no introspection', (url) => {
    expect(() => providerOf({ issuer: ISSUER, introspection_url: url })).toThrow(/does not offer token introspection/)
  })

  it('this_cluster asks the API server of the cluster for issuer and keys', () => {
    const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '6443' }
    expect(providerOf({ this_cluster: true }, { env })).toMatchObject({
      issuer: 'https://[fd00::1]:6443',
      jwksUrl: 'https://[fd00::1]:6443/openid/v1/jwks',
      discoversIssuer: true,
      allowPrivateIP: true,
    })
    expect(() => providerOf({ this_cluster: true })).toThrow(/KUBERNETES_SERVICE_HOST is not set/)
  })

  it('warns of what leaves the proxy more open, or does nothing', async () => {
    const log = new CollectingLog()
    const outbound = createOutbound()
    const deps = { env: {}, log, clock: systemClock, outbound }
    const middleware = makeAuthenticate(configOf({ issuer: 'https://idp.invalid', client_id: 'c' }), deps)
    await middleware?.close?.(AbortSignal.timeout(1_000))
    await outbound.close()
    expect(log.lines.slice(0, 2)).toEqual([
      expect.stringMatching(/tokens for any audience are accepted/),
      expect.stringMatching(/client_id has no effect without introspection_url/),
    ])
  })
})

it('the metadata names the issuer, and none where clients cannot log in', () => {
  expect(protectedResourceOf(configOf({ issuer: ISSUER, scopes: ['mcp'] }, { endpoint_prefix: '/p', trust_proxy_headers: true }))).toEqual({
    ...{ url: undefined, authorizationServers: [ISSUER], scopes: ['mcp'], trustProxyHeaders: true, endpointPrefix: '/p' },
  })
  expect(protectedResourceOf(configOf({ this_cluster: true }))?.authorizationServers).toEqual([])
})
