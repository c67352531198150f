import { X509Certificate } from 'node:crypto'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestClock } from '@thv/kernel/clock'
import { isThvError } from '@thv/kernel/errors'
import { request } from '@thv/testkit/cluster/http-request'
import { afterEach, describe, expect, it } from 'vitest'
import { type ApiServerOptions, type EmbeddedApiServer, startApiServer } from '../api-server.ts'
import { openIdentity, type ServerIdentity } from './server-identity.ts'

const DAY_MS = 86_400_000
const cleanups: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'thv-identity-'))
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function start(options: ApiServerOptions): Promise<EmbeddedApiServer> {
  const server = await startApiServer(options)
  cleanups.push(() => server.close())
  return server
}

const HOSTS = ['127.0.0.1', 'localhost']
const shown = ({ ca, server, adminToken, serviceAccountKey }: ServerIdentity) => ({
  ca: ca.certPem,
  server: server.certPem,
  adminToken,
  key: serviceAccountKey.export({ type: 'pkcs8', format: 'pem' }),
})

describe('the identity of the server', () => {
  it('survives in one file that only its owner may read', () => {
    const folder = newFolder()
    const clock = new TestClock(Date.now())
    const first = openIdentity({ folder, hosts: HOSTS, clock })
    expect(readdirSync(folder)).toEqual(['identity.json'])
    chmodSync(join(folder, 'identity.json'), 0o644)
    first.keepPort(4711)
    expect(statSync(join(folder, 'identity.json')).mode & 0o777).toBe(0o600)
    const second = openIdentity({ folder, hosts: HOSTS, clock })
    expect(shown(second)).toEqual(shown(first))
    expect(second.port).toBe(4711)
    chmodSync(join(folder, 'identity.json'), 0o644)
    openIdentity({ folder, hosts: HOSTS, clock })
    expect(statSync(join(folder, 'identity.json')).mode & 0o777).toBe(0o600)
    expect(shown(openIdentity({ folder: undefined, hosts: HOSTS, clock }))).not.toEqual(shown(first))
  })

  it('renews the certificate of the server when it grows old or does not fit, the authority only when it must, and never the rest', async () => {
    const folder = newFolder()
    const clock = new TestClock(Date.now())
    const open = (hosts = HOSTS) => shown(openIdentity({ folder, hosts, clock }))
    const first = open()
    await clock.advance(100 * DAY_MS)
    expect(open()).toEqual(first)
    const moved = open([...HOSTS, '127.0.0.9'])
    expect(moved).toEqual({ ...first, server: expect.any(String) })
    expect(new X509Certificate(moved.server).checkIP('127.0.0.9')).toBe('127.0.0.9')
    expect(new X509Certificate(moved.server).verify(new X509Certificate(first.ca).publicKey)).toBe(true)
    await clock.advance(200 * DAY_MS)
    const older = open()
    expect(older).toEqual({ ...first, server: expect.any(String) })
    expect(older.server).not.toBe(moved.server)
    await clock.advance(3_300 * DAY_MS)
    const last = open()
    expect({ ...last, ca: first.ca, server: first.server }).toEqual(first)
    expect(last.ca).not.toBe(first.ca)
  })

  it.each([
    ['nothing', ''],
    ['half a file', '{"format": 1, "ca": {"certPem": "SECRET'],
    ['another format', '{"format": 2}'],
    ['a list', '[]'],
    ['no certificates', '{"format": 1, "adminToken": "SECRET-SECRET-SECRET", "serviceAccountKeyPem": "SECRET"}'],
    ['a weak token', '{"format": 1, "adminToken": "SECRET"}'],
  ])('refuses %s by the name of the file, and tells no secrets', (_what, content) => {
    const folder = newFolder()
    const file = join(folder, 'identity.json')
    writeFileSync(file, content)
    const open = () => openIdentity({ folder, hosts: HOSTS, clock: new TestClock(Date.now()) })
    expect(open).toThrow(file)
    expect(open).toThrow(/is damaged \(.+\): restore it, or delete it/)
    expect(open).not.toThrow(/SECRET/)
    expect(readFileSync(file, 'utf8')).toBe(content)
  })

  it('refuses a certificate with the key of another', () => {
    const folder = newFolder()
    const clock = new TestClock(Date.now())
    openIdentity({ folder, hosts: HOSTS, clock })
    const file = join(folder, 'identity.json')
    const record = JSON.parse(readFileSync(file, 'utf8')) as { ca: { keyPem: string }; server: { keyPem: string } }
    writeFileSync(file, JSON.stringify({ ...record, ca: { ...record.ca, keyPem: record.server.keyPem } }))
    expect(() => openIdentity({ folder, hosts: HOSTS, clock })).toThrow('ca is not a certificate with its private key')
  })

  it('makes a restarted server the same to its clients', async () => {
    const folder = newFolder()
    const first = await start({ folder })
    await first.close()
    const again = await start({ folder })
    expect([again.url, again.adminToken, again.caPem]).toEqual([first.url, first.adminToken, first.caPem])
    const headers = { authorization: `Bearer ${first.adminToken}` }
    expect((await request(`${first.url}/api/v1/namespaces`, { caPem: first.caPem, headers })).status).toBe(200)
  })

  it('takes another port when the last one is gone, and keeps that; a port that was asked for has no substitute', async () => {
    const folder = newFolder()
    const first = await start({ folder })
    await first.close()
    const port = Number(new URL(first.url).port)
    const squatter = createServer()
    await new Promise<void>((resolve) => squatter.listen(port, '127.0.0.1', resolve))
    const refused = await startApiServer({ folder, port }).catch((error: unknown) => error)
    expect(isThvError(refused, 'listen_failed')).toBe(true)
    const second = await start({ folder })
    expect(second.url).not.toBe(first.url)
    await second.close()
    await new Promise((resolve) => squatter.close(resolve))
    const third = await start({ folder })
    expect(third.url).toBe(second.url)
  })
})
