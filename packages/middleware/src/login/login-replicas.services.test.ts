import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createOutbound } from '@thv/http/outbound/outbound'
import { createHttpServer } from '@thv/http/server/server'
import { systemClock } from '@thv/kernel/clock'
import { createLifecycle } from '@thv/kernel/lifecycle'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { logIn, registerAt } from '@thv/testkit/oidc/log-in'
import { startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { startSentinels } from '@thv/testkit/redis/redis'
import { redisProblem } from '@thv/testkit/redis/redis-programs'
import { describe, expect, it } from 'vitest'
import { type LoginMount, mountOf, openLoginServer } from './login-server.ts'

const describeRedis = redisProblem() === undefined || process.env['CI'] ? describe : describe.skip
const PASSWORD = 'pa55'

describeRedis('three replicas of an authorization server on Redis with Sentinels', () => {
  it('finish a login that was begun at another one, however requests are spread, also when it dies before the code [002-094]', async () => {
    await using stack = new AsyncDisposableStack()
    const sentinels = stack.use(await startSentinels({ password: PASSWORD }))
    const idp = stack.use(await startOidcServer())
    const folder = await mkdtemp(join(tmpdir(), 'login-replicas-'))
    stack.defer(() => rm(folder, { recursive: true }))
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    await writeFile(join(folder, 'key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }))
    await writeFile(join(folder, 'hmac'), randomBytes(32).toString('hex'))

    const replicas: LoginMount[] = []
    const served: string[] = []
    const dead = new Set<number>()
    /** Dies when it has answered the callback of the provider. */
    let dies = false
    const http = createHttpServer({
      handler: async (exchange) => {
        const living = [...replicas.keys()].filter((each) => !dead.has(each))
        const replica = living[served.length % living.length] ?? -1
        served.push(`${replica} ${exchange.path.replace(/(?<=\/oauth\/login\/).*/, '')}`)
        await replicas[replica]?.handle(exchange)
        if (dies && exchange.path === '/oauth/callback') dead.add(replica)
      },
      busy: (exchange) => void exchange.response.writeHead(503).end(),
      clock: systemClock,
      onError: () => {},
    })
    const { url: issuer } = await http.listen({ host: '127.0.0.1', port: 0 })
    stack.defer(async () => void (await http.drain(AbortSignal.timeout(100))))
    const { client_id, client_secret } = await registerAt(idp, issuer)
    const read = readRunConfig({
      ...{ name: 'test', remote_url: 'https://example.com/mcp', transport: 'streamable-http' },
      oidc_config: { issuer, audience: `${issuer}/mcp` },
      embedded_auth_server_config: {
        issuer,
        allowed_audiences: [`${issuer}/mcp`],
        scopes_supported: ['openid', 'mcp'],
        signing_key_config: { key_dir: folder, signing_key_file: 'key.pem' },
        hmac_secret_files: [join(folder, 'hmac')],
        upstreams: [
          {
            ...{ name: 'corp', type: 'oidc' },
            oidc_config: {
              issuer_url: idp.issuer,
              client_id,
              client_secret_env_var: 'SECRET',
              scopes: ['openid'],
              allow_private_ips: true,
            },
          },
        ],
        storage: {
          type: 'redis',
          redis_config: {
            sentinel_config: {
              master_name: sentinels.masterName,
              sentinel_addrs: sentinels.addresses.map(({ host, port }) => `${host}:${port}`),
            },
            acl_user_config: { password_env_var: 'REDIS_PASSWORD' },
            key_prefix: 'thv:auth:{team:login}:',
          },
        },
      },
    })
    if (!read.ok) throw new TypeError(JSON.stringify(read.problems))
    const outbound = createOutbound()
    stack.defer(() => outbound.close())
    const log = new CollectingLog()
    for (let i = 0; i < 3; i++) {
      const lifecycle = createLifecycle()
      stack.defer(async () => void (await lifecycle.shutdown()))
      const env = { SECRET: client_secret, REDIS_PASSWORD: PASSWORD }
      const server = await openLoginServer(read.config, { env, log, clock: systemClock, outbound, lifecycle, keepsTokens: true })
      if (server === undefined) throw new TypeError('no server')
      replicas.push(mountOf(server))
    }

    for (let round = 0; round < 3; round++) {
      served.length = round // each step is the next replica's the next time
      const { accessToken, refreshToken, clientId } = await logIn(issuer, { user: 'ada', scope: 'openid mcp' })
      expect(accessToken).toMatch(/^ey/)
      for (const path of ['/oauth/authorize', '/oauth/login/', '/oauth/callback', '/oauth/token'])
        expect(served.some((each) => each.endsWith(path))).toBe(true)
      expect(new Set(served.map((each) => each[0]))).toEqual(new Set(['0', '1', '2']))
      const form = { grant_type: 'refresh_token', refresh_token: refreshToken ?? '', client_id: clientId }
      const refreshed = await fetch(`${issuer}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) })
      expect(refreshed.status).toBe(200)
    }

    dies = true
    expect((await logIn(issuer, { user: 'ada', scope: 'openid mcp' })).accessToken).toMatch(/^ey/)
    expect(dead.size).toBe(1)
  })
})
