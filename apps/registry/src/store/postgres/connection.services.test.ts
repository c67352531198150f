import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect as connectTo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import { createCertificate } from '@thv/testkit/cluster/identity/certificate'
import { describePostgres, testPostgres } from '@thv/testkit/postgres/describe-postgres'
import type { TestDatabase } from '@thv/testkit/postgres/test-database'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import type { PostgresConfig } from '../../config/registry-config.ts'
import { managed } from '../testing/contract/contract-tools.ts'
import { openDatabase } from './database.ts'
import { openPostgresStore } from './postgres-store.ts'
import { configOf, quiet } from './testing/test-config.ts'

describePostgres('connections', () => {
  let database: TestDatabase
  let folder: string
  beforeAll(async () => {
    database = await testPostgres().createDatabase()
    folder = mkdtempSync(join(tmpdir(), 'thv-postgres-'))
    writeFileSync(join(folder, 'right.crt'), testPostgres().access.caPem)
    writeFileSync(join(folder, 'wrong.crt'), createCertificate({ commonName: 'another authority', ca: true }).certPem)
    writeFileSync(join(folder, 'empty.crt'), '')
  })
  afterAll(() => rmSync(folder, { recursive: true }))
  afterEach(() => vi.unstubAllEnvs())

  const connect = async (more: Partial<PostgresConfig>, { password }: { password?: string } = database) => {
    const { password: _, ...rest } = database
    const config = configOf({ ...rest, ...(password !== undefined && { password }) }, more)
    const opened = await openDatabase(config, { clock: systemClock, log: quiet })
    try {
      const [row] = await opened.query<{ ssl: boolean }>('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()')
      return row?.ssl ? 'encrypted' : 'plain'
    } finally {
      await opened.close()
    }
  }
  const outcome = (work: Promise<string>) => work.catch((error: { code?: string }) => String(error.code))

  const named = 'localhost'
  const address = '127.0.0.1'
  test.each([
    ['disable', address, undefined, 'plain'],
    ['allow', address, undefined, 'plain'],
    ['prefer', address, undefined, 'encrypted'],
    ['require', address, undefined, 'encrypted'],
    ['require', address, 'right.crt', 'encrypted'],
    ['require', address, 'wrong.crt', 'store_unavailable'],
    ['verify-ca', address, 'right.crt', 'encrypted'],
    ['verify-ca', named, 'wrong.crt', 'store_unavailable'],
    ['verify-ca', named, undefined, 'store_unavailable'],
    ['verify-full', named, 'right.crt', 'encrypted'],
    ['verify-full', address, 'right.crt', 'store_unavailable'],
    ['verify-full', named, 'wrong.crt', 'store_unavailable'],
    ['verify-full', named, 'empty.crt', 'registry_config_invalid'],
    ['verify-full', named, 'missing.crt', 'registry_config_invalid'],
  ] as const)('sslMode %s to %s with %s: %s', async (sslMode, host, cert, expected) => {
    const more = cert === undefined ? {} : { sslRootCert: join(folder, cert) }
    expect(await outcome(connect({ sslMode, host, ...more }))).toBe(expected)
  })

  /** A server in front of the real one that answers the first bytes of a connection itself, or passes everything on. */
  const inFront = async (answer: (first: Buffer) => Buffer | undefined) => {
    let connections = 0
    const server = createServer((client) => {
      connections++
      client.on('error', () => {}) // the other side hangs up
      client.once('data', (first: Buffer) => {
        const own = answer(first)
        if (own !== undefined) return void client.end(own)
        const upstream = connectTo(database.port, '127.0.0.1')
        upstream.on('error', () => client.destroy())
        client.on('close', () => upstream.destroy())
        upstream.write(first)
        client.pipe(upstream).pipe(client)
      })
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    return { port: (server.address() as AddressInfo).port, made: () => connections, [Symbol.dispose]: () => void server.close() }
  }
  const asksForTls = (first: Buffer) => first.length === 8 && first.readInt32BE(4) === 80_877_103
  const fields = 'SFATAL\0C28000\0Mno pg_hba.conf entry for this kind of connection\0\0'
  const unwelcome = Buffer.concat([Buffer.from('E'), Buffer.from([0, 0, 0, fields.length + 4]), Buffer.from(fields)])

  test.each([
    ['prefer', 'a server without TLS', (first: Buffer) => (asksForTls(first) ? Buffer.from('N') : undefined), 'plain'],
    ['prefer', 'a server whose TLS is broken', (first: Buffer) => (asksForTls(first) ? Buffer.from('Snonsense') : undefined), 'plain'],
    ['allow', 'a server that insists on TLS', (first: Buffer) => (asksForTls(first) ? undefined : unwelcome), 'encrypted'],
    ['require', 'a server without TLS', (first: Buffer) => (asksForTls(first) ? Buffer.from('N') : undefined), 'store_unavailable'],
    ['disable', 'a server that insists on TLS', (first: Buffer) => (asksForTls(first) ? undefined : unwelcome), 'store_unavailable'],
  ] as const)('sslMode %s to %s: %s', async (sslMode, _, answer, expected) => {
    using front = await inFront(answer)
    expect(await outcome(connect({ sslMode, port: front.port }))).toBe(expected)
  })

  test('the whole store works with sslMode prefer on a server without TLS, and keeps to what worked', async () => {
    using front = await inFront((first) => (asksForTls(first) ? Buffer.from('N') : undefined))
    const fresh = await testPostgres().createDatabase()
    await using store = await openPostgresStore(configOf(fresh, { sslMode: 'prefer', port: front.port, maxOpenConns: 3 }), { log: quiet })
    await store.putSource(managed('own'))
    const before = front.made()
    await Promise.all(Array.from({ length: 20 }, () => store.sources()))
    expect(front.made() - before).toBeLessThanOrEqual(2)
    const heard = Promise.withResolvers<void>()
    store.onChange(() => heard.resolve())
    await store.publish({ source: 'own', name: 'x/y', version: '1.0.0', text: '{}' })
    await heard.promise
  })

  test('sslMode prefer and allow try a wrong password once', async () => {
    for (const sslMode of ['prefer', 'allow'] as const) {
      using front = await inFront(() => undefined)
      expect(await outcome(connect({ sslMode, port: front.port }, { password: 'wrong-one' }))).toBe('store_unavailable')
      expect(front.made()).toBe(1)
    }
  })

  test('a server without TLS gets no password from who asks for it', async () => {
    const received: Buffer[] = []
    const server = createServer((socket) => {
      socket.on('data', (data) => {
        received.push(Buffer.from(data))
        socket.write('N')
      })
      socket.on('error', () => {}) // the other side hangs up
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const error = await connect({ sslMode: 'require', port: (server.address() as AddressInfo).port }).catch((e: unknown) => e)
    server.close()
    expect(error).toMatchObject({ code: 'store_unavailable' })
    expect(errorMessage(error)).toContain('does not support SSL')
    expect(Buffer.concat(received).length).toBe(8) // the question, and nothing else
  })

  test('reports a wrong and a missing password without showing one', async () => {
    for (const password of ['wrong-one', undefined]) {
      vi.stubEnv('PGPASSFILE', join(folder, 'none'))
      vi.stubEnv('PGPASSWORD', database.password)
      vi.stubEnv('HOME', folder)
      const error = await connect({}, password === undefined ? {} : { password }).catch((e: unknown) => e)
      expect(error).toMatchObject({ code: 'store_unavailable' })
      expect(errorMessage(error)).toMatch(/password/)
      expect(errorMessage(error)).not.toContain('wrong-one')
      expect(errorMessage(error)).not.toContain(database.password)
    }
  })

  test('the password comes from a password file', async () => {
    const file = join(folder, 'pgpass')
    writeFileSync(file, `*:*:*:${database.user}:${database.password}\n`, { mode: 0o600 })
    vi.stubEnv('PGPASSFILE', file)
    expect(await connect({}, {})).toBe('plain')
  })

  test('the password comes from ~/.pgpass where PGPASSFILE is not set', async () => {
    writeFileSync(join(folder, '.pgpass'), `*:*:*:${database.user}:${database.password}\n`, { mode: 0o600 })
    vi.stubEnv('PGPASSFILE', undefined)
    vi.stubEnv('HOME', folder)
    expect(await connect({}, {})).toBe('plain')
  })

  test('closed port, unknown host, unknown database', async () => {
    expect(await outcome(connect({ port: 1 }))).toBe('store_unavailable')
    expect(await outcome(connect({ host: 'nowhere.invalid' }))).toBe('store_unavailable')
    expect(await outcome(connect({ database: 'none' }))).toBe('store_unavailable')
  })

  test('more calls than connections wait their turn', async () => {
    const opened = await openDatabase(configOf(database, { maxOpenConns: 3 }), { clock: systemClock, log: quiet })
    const pids = await Promise.all(
      Array.from({ length: 40 }, () => opened.query<{ pid: number }>('SELECT pg_backend_pid() AS pid, pg_sleep(0.01)')),
    )
    expect(new Set(pids.flat().map(({ pid }) => pid)).size).toBeLessThanOrEqual(2)
    await opened.close()
  })

  test('a database with a stricter isolation by default fails no transaction that only waits', async () => {
    const strict = await testPostgres().createDatabase()
    const opened = await openDatabase(configOf(strict), { clock: systemClock, log: quiet })
    await opened.query(`ALTER DATABASE ${strict.database} SET default_transaction_isolation = 'serializable'`)
    await opened.close()
    await using store = await openPostgresStore(configOf(strict), { log: quiet })
    await store.putSource(managed('own'))
    const versions = Array.from({ length: 40 }, (_, i) => `1.0.${i}`)
    await Promise.all(versions.map((version) => store.publish({ source: 'own', name: 'x/y', version, text: '{}' })))
    expect(await store.versionsOf('own', 'x/y')).toHaveLength(40)
  })
})
