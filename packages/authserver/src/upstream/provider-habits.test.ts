import { TestClock } from '@thv/kernel/clock'
import type { UpstreamConfig } from '@thv/runconfig/auth-server-config'
import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { isActiveAt, registerAt } from '@thv/testkit/oidc/log-in'
import { type OidcServer, type OidcServerOptions, startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { decodeJwt } from 'jose'
import { expect, it } from 'vitest'
import { startTestAuthServer } from '../testing/test-auth-server.ts'
import { UpstreamVault } from '../vault/upstream-vault.ts'

const HABITS = {
  rotating: {},
  fixed: { rotatesRefreshTokens: false },
  once: { refreshTokens: 'first' },
  forgetful: { refreshTokens: 'never' },
} as const satisfies Record<string, OidcServerOptions>
type Habit = keyof typeof HABITS

const TOKEN_SECONDS = 600

it('one login at five providers of different habits: each keeps its user logged in for as long as its tokens allow', async () => {
  await using stack = new AsyncDisposableStack()
  const clock = new TestClock(Date.now())
  const port = await freePort()
  const issuer = `http://127.0.0.1:${port}`
  const idps = {} as Record<Habit | 'corp', OidcServer>
  const env: Record<string, string> = {}
  const more: UpstreamConfig[] = []
  for (const [name, habit] of Object.entries(HABITS) as [Habit, OidcServerOptions][]) {
    const idp = stack.use(await startOidcServer(habit))
    idps[name] = idp
    const { client_id, client_secret } = await registerAt(idp, issuer, name)
    env[`SECRET_${name}`] = client_secret
    const oidc_config = {
      issuer_url: idp.issuer,
      client_id,
      client_secret_env_var: `SECRET_${name}`,
      scopes: ['openid'],
      allow_private_ips: true,
    }
    more.push({ name, type: 'oidc', oidc_config } as unknown as UpstreamConfig)
  }
  idps.corp = stack.use(await startOidcServer())
  for (const idp of Object.values(idps)) idp.accessTokenSeconds = TOKEN_SECONDS
  await using server = await startTestAuthServer({
    ...{ port, env, more, clock, idp: idps.corp },
    config: { disable_upstream_token_injection: false },
    tokens: (refreshers, sealed) => new UpstreamVault({ ...sealed, cipher: () => sealed.cipher, refreshers, clock }),
  })
  const clientId = await server.client()
  const logIn = async () => decodeJwt((await server.tokens(clientId)).body['access_token'] ?? '').sub ?? ''
  const tokensOf = async (account: string) => {
    const used = (Object.keys(idps) as (keyof typeof idps)[]).map(async (provider) => {
      const result = await server.server.tokens.use({ account, provider })
      return [provider, result.kind === 'usable' ? result.accessToken : result.kind] as const
    })
    return Object.fromEntries(await Promise.all(used)) as Record<keyof typeof idps, string>
  }

  const account = await logIn()
  // The next ID tokens are signed by a key that the server has not seen.
  idps.corp.rotateKeys()
  idps.rotating.rotateKeys({ keepOld: true })
  await clock.advance(60_000)
  expect(await logIn()).toBe(account)
  const before = await tokensOf(account)
  for (const [name, idp] of Object.entries(idps)) expect([name, await isActiveAt(idp, before[name as Habit])]).toEqual([name, true])

  await clock.advance(TOKEN_SECONDS * 1_000)
  const { forgetful, ...after } = await tokensOf(account)
  expect(forgetful).toBe('missing')
  for (const [name, token] of Object.entries(after)) {
    expect([name, token === before[name as Habit]]).toEqual([name, false])
    expect([name, await isActiveAt(idps[name as Habit], token)]).toEqual([name, true])
  }
  // A login brings it back, and the others with it.
  expect(await logIn()).toBe(account)
  expect(await isActiveAt(idps.forgetful, (await tokensOf(account)).forgetful)).toBe(true)
})
