import { type Clock, systemClock } from '@thv/kernel/clock'
import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { describe, expect, it } from 'vitest'
import { startTestVmcp, type TestVmcp } from './testing/test-vmcp.ts'

/* The authorization server of a virtual server limits requests by address: five registrations at once, then one a second. */

const MANY = 24
const AT_ONCE = 5
/** No address earns another request, however long the test takes. */
const FROZEN: Clock = { ...systemClock, monotonic: () => 0 }
const HEADERS = { 'content-type': 'application/json' }
const BODY = JSON.stringify({ client_name: 'test', redirect_uris: ['http://127.0.0.1:8765/callback'] })

describe('the limits of logins at a virtual server behind a gateway', () => {
  it.each([
    ['count the gateway where headers are not trusted', {}, (index: number) => `10.9.0.${index}`, 'some'],
    ['count each client by the header', { trustProxyHeaders: true }, (index: number) => `10.9.0.${index}`, 'none'],
    [
      'count each client by the last hop, whatever it wrote before that',
      { trustProxyHeaders: true },
      (index: number) => `10.9.0.${index}, 6.6.6.6`,
      'some',
    ],
    [
      'count each client before the proxies that are named',
      { trustProxyHeaders: true, trustedProxies: ['127.0.0.1', '10.1.0.0/16'] },
      (index: number) => `6.6.6.6, 10.9.0.${index}, 10.1.2.3`,
      'none',
    ],
    [
      'count the address of a connection that is none of the proxies that are named',
      { trustProxyHeaders: true, trustedProxies: ['10.1.0.0/16'] },
      (index: number) => `10.9.0.${index}`,
      'some',
    ],
    [
      'count the proxies alone where the header is no list of addresses',
      { trustProxyHeaders: true },
      (index: number) => `10.9.0.${index}, not an address`,
      'some',
    ],
  ])('%s', async (_, config, forwardedFor, refused) => {
    await using vmcp = await startLoginServer(config)
    const statuses = await Promise.all(Array.from({ length: MANY }, (_, index) => registerAs(vmcp, forwardedFor(index))))
    expect(statuses.filter((status) => status === 201)).toHaveLength(refused === 'some' ? AT_ONCE : MANY)
    expect(statuses.filter((status) => status === 429)).toHaveLength(refused === 'some' ? MANY - AT_ONCE : 0)
  })
})

/** Its provider is never asked. */
async function startLoginServer(config: object): Promise<TestVmcp> {
  const port = await freePort()
  const issuer = `http://127.0.0.1:${port}`
  const resource = `${issuer}/mcp`
  const oauth2_config = {
    ...{ authorization_endpoint: 'https://idp.example/auth', token_endpoint: 'https://idp.example/token', client_id: 'c' },
    ...{ client_secret_env_var: 'SECRET', userinfo: { endpoint_url: 'https://idp.example/me' } },
  }
  return await startTestVmcp({
    ...{ port, env: { SECRET: 's' }, backends: {}, clock: FROZEN },
    config: {
      ...config,
      incomingAuth: { type: 'oidc', oidc: { issuer, audience: resource, resource, scopes: ['openid', 'mcp'] } },
      authServer: {
        ...{ issuer, scopes_supported: ['openid', 'mcp'], allowed_audiences: [resource] },
        upstreams: [{ name: 'corp', type: 'oauth2', oauth2_config }],
      },
    },
  })
}

async function registerAs({ base }: TestVmcp, forwardedFor: string): Promise<number> {
  const headers = { ...HEADERS, 'x-forwarded-for': forwardedFor }
  const answer = await fetch(`${base}/oauth/register`, { method: 'POST', headers, body: BODY })
  await answer.body?.cancel()
  return answer.status
}
