import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import { createRecordCipher } from '@thv/store/redis/record-cipher'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { createCertificate } from '@thv/testkit/cluster/identity/certificate'
import { startRedis } from '@thv/testkit/redis/redis'
import { redisProblem } from '@thv/testkit/redis/redis-programs'
import { describe, expect, it } from 'vitest'
import { openLoginStore } from './login-store.ts'

const describeRedis = redisProblem() === undefined || process.env['CI'] ? describe : describe.skip

/** The files are looked at every 300 ms instead of every 30 s. */
const impatientClock: Clock = {
  now: () => systemClock.now(),
  monotonic: () => systemClock.monotonic(),
  sleep: (ms, signal) => systemClock.sleep(ms, signal),
  setTimer: (ms, run) => systemClock.setTimer(ms === 30_000 ? 300 : ms, run),
}

function configOf(redis_config: object, hmac: string) {
  const issuer = 'https://mcp.example.com'
  const read = readRunConfig({
    ...{ name: 'test', remote_url: 'https://example.com/mcp', transport: 'streamable-http' },
    oidc_config: { issuer, audience: `${issuer}/mcp` },
    embedded_auth_server_config: {
      ...{ issuer, allowed_audiences: [`${issuer}/mcp`], hmac_secret_files: [hmac] },
      upstreams: [{ name: 'corp', type: 'oidc', oidc_config: { issuer_url: 'https://login.example.com', client_id: 'x' } }],
      storage: { type: 'redis', redis_config },
    },
  })
  if (!read.ok || read.config.embedded_auth_server_config === undefined) throw new TypeError(JSON.stringify(read))
  return read.config.embedded_auth_server_config
}

describeRedis('the store of an authorization server on Redis with TLS and an ACL user', () => {
  it('reads the user, the password and the certificates again when their files change', async () => {
    await using stack = new AsyncDisposableStack()
    const folder = await mkdtemp(join(tmpdir(), 'thv-login-store-'))
    stack.defer(() => rm(folder, { recursive: true }))
    const file = (name: string) => join(folder, name)
    const redis = stack.use(await startRedis({ tls: true, users: ['thv on >first-password allkeys allchannels allcommands'] }))
    await writeFile(file('user'), 'thv\n')
    await writeFile(file('password'), 'first-password\n')
    await writeFile(file('ca.crt'), redis.caPem)
    const log = new CollectingLog()
    const config = configOf(
      {
        addr: `${redis.host}:${redis.port}`,
        acl_user_config: { username_file: file('user'), password_file: file('password') },
        tls: { ca_cert_file: file('ca.crt') },
      },
      file('hmac'),
    )
    const opened = stack.use(await openLoginStore(config, { env: {}, log, clock: impatientClock, name: 'test' }))
    const store = stack.use(opened.open(createRecordCipher(['secret'])))
    let writes = 0
    const works = async () => {
      const id = String(++writes)
      await store.put('grant', id, { value: { id }, ttlMs: 60_000 })
      return (await store.get('grant', id))?.value['id'] === id
    }
    const worksSoon = () => expect.poll(() => works().catch(() => false), { timeout: 60_000, interval: 100 }).toBe(true)
    await worksSoon()

    // Another password: connections of before are gone.
    await redis.command('ACL', 'SETUSER', 'thv', 'resetpass', '>second-password')
    await redis.command('CLIENT', 'KILL', 'USER', 'thv')
    await writeFile(file('password'), 'second-password')
    await worksSoon()
    expect(log.lines.join('\n')).toContain('credentials or certificates for redis replaced')

    // One that Redis does not accept changes nothing.
    await writeFile(file('password'), 'wrong-password')
    await expect.poll(() => log.lines.join('\n'), { timeout: 60_000 }).toContain('could not be replaced; those before stay')
    await worksSoon()
    await writeFile(file('password'), 'second-password')

    // Another user.
    await redis.command('ACL', 'SETUSER', 'other', 'on', '>second-password', 'allkeys', 'allchannels', 'allcommands')
    await writeFile(file('user'), 'other')
    await expect.poll(() => redis.command('CLIENT', 'LIST'), { timeout: 60_000 }).toMatch(/user=other/)
    await redis.command('ACL', 'DELUSER', 'thv')
    await worksSoon()

    // Certificates of another authority.
    const ca = createCertificate({ commonName: 'another authority', ca: true })
    const server = createCertificate({ commonName: 'localhost', hosts: ['localhost', '127.0.0.1'], issuer: ca })
    await writeFile(file('server.crt'), server.certPem)
    await writeFile(file('server.key'), server.keyPem, { mode: 0o600 })
    const changed = await redis.command('CONFIG', 'SET', 'tls-cert-file', file('server.crt'), 'tls-key-file', file('server.key'))
    expect(changed).toContain('OK')
    await redis.command('CLIENT', 'KILL', 'USER', 'other')
    await writeFile(file('ca.crt'), ca.certPem)
    await worksSoon()
    expect(log.lines.join('\n')).not.toMatch(/first-password|second-password|wrong-password/)
  })
})
