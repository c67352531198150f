import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { TestClock } from '@thv/kernel/clock'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isHttpError } from '../http-errors.ts'
import { type ConnectorOptions, guardedConnector, type ResolvedAddress } from './guarded-connector.ts'

const listener = createServer((socket) => socket.on('error', () => {}).end('hi'))
let port = ''

beforeAll(async () => {
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  port = String((listener.address() as AddressInfo).port)
})

afterAll(() => {
  listener.close()
})

async function dial(hostname: string, options: ConnectorOptions): Promise<string | undefined> {
  const connect = guardedConnector({ connectTimeoutMs: 2_000, ...options })
  const socket = await new Promise<Socket>((resolve, reject) =>
    connect({ hostname, host: `${hostname}:${port}`, protocol: 'http:', port }, (error, opened) =>
      error ? reject(error) : resolve(opened as Socket),
    ),
  )
  const address = socket.remoteAddress
  socket.destroy()
  return address
}

const resolveTo =
  (...addresses: string[]) =>
  async (): Promise<ResolvedAddress[]> =>
    addresses.map((address) => ({ address }))
const blocked = async (hostname: string, options: ConnectorOptions) => {
  const error = await dial(hostname, options).catch((e: unknown) => e)
  expect(error).toBeInstanceOf(Error)
  expect(isHttpError(error, 'backend_blocked')).toBe(true)
  return (error as Error).message
}

const allowLoopback = { allowLoopback: true }

describe('guardedConnector', () => {
  it('connects to the address that the name resolves to', async () => {
    expect(await dial('backend.example', { policy: allowLoopback, resolve: resolveTo('127.0.0.1') })).toBe('127.0.0.1')
  })

  it('connects to an address as it is, without resolving', async () => {
    const resolve = () => Promise.reject(new Error('asked'))
    expect(await dial('127.0.0.1', { policy: allowLoopback, resolve })).toBe('127.0.0.1')
    expect(await dial('127.0.0.1', { resolve })).toBe('127.0.0.1')
  })

  it('uses the DNS of the system by default', async () => {
    expect(await dial('localhost', { policy: allowLoopback })).toBe('127.0.0.1')
  })

  it.each([
    ['127.0.0.1', {}],
    ['::1', {}],
    ['169.254.169.254', { allowLoopback: true, allowPrivate: true }],
    ['::ffff:169.254.169.254', { allowLoopback: true }],
    ['fe80::1%lo', { allowLoopback: true }],
    ['10.0.0.1', { denyPrivate: true }],
    ['0.0.0.0', { allowLoopback: true }],
    ['64:ff9b::a9fe:a9fe', { allowLoopback: true }],
  ])('refuses a public name that resolves to %s', async (address, policy) => {
    expect(await blocked('innocent.example', { policy, resolve: resolveTo(address) })).toMatch(/^innocent.example: /)
  })

  it.each(['localhost', 'metadata.google.internal', 'kubernetes.default.svc'])('refuses the name %s without asking DNS', async (name) => {
    let asked = 0
    const resolve = async () => [{ address: '8.8.8.8', port: ++asked }]
    await blocked(name, { policy: {}, resolve })
    expect(asked).toBe(0)
  })

  it('skips addresses that are forbidden and takes one that is not', async () => {
    const resolve = resolveTo('169.254.169.254', '10.0.0.1', '127.0.0.1')
    expect(await dial('mixed.example', { policy: { allowLoopback: true, denyPrivate: true }, resolve })).toBe('127.0.0.1')
  })

  it('asks once: what DNS says later does not matter', async () => {
    let asked = 0
    const resolve = async () => [{ address: asked++ === 0 ? '127.0.0.1' : '169.254.169.254' }]
    expect(await dial('rebinding.example', { policy: allowLoopback, resolve })).toBe('127.0.0.1')
    expect(asked).toBe(1)
    await blocked('rebinding.example', { policy: allowLoopback, resolve: resolveTo('169.254.169.254') })
  })

  it('tries the next address when one does not answer', async () => {
    // Port 1 of loopback refuses.
    const resolve = async () => [{ address: '127.0.0.1', port: 1 }, { address: '127.0.0.1' }]
    expect(await dial('two.example', { policy: allowLoopback, resolve })).toBe('127.0.0.1')
  })

  it('reports the last failure when none answers', async () => {
    const resolve = async () => [
      { address: '127.0.0.1', port: 1 },
      { address: '127.0.0.1', port: 2 },
    ]
    await expect(dial('none.example', { policy: allowLoopback, resolve })).rejects.toMatchObject({ code: 'ECONNREFUSED', port: 2 })
  })

  it('lets a platform say the port as well', async () => {
    const seen: unknown[] = []
    const resolve = async (host: string, asked: number) => {
      seen.push([host, asked])
      return [{ address: '127.0.0.1', port: Number(port) }]
    }
    const connect = guardedConnector({ resolve })
    const socket = await new Promise<Socket>((done, reject) =>
      connect({ hostname: 'svc.team', host: 'svc.team', protocol: 'http:', port: '' }, (error, opened) =>
        error ? reject(error) : done(opened as Socket),
      ),
    )
    socket.destroy()
    expect(seen).toEqual([['svc.team', 80]])
  })

  it('says so when a name has no address', async () => {
    const error = await dial('empty.example', { policy: {}, resolve: resolveTo() }).catch((e: unknown) => e)
    expect(isHttpError(error, 'backend_dns')).toBe(true)
  })

  it('limits the wait for a resolver', async () => {
    const clock = new TestClock()
    const pending = dial('slow.example', { policy: {}, clock, resolve: () => new Promise(() => {}) }).catch((e: unknown) => e)
    await clock.advance(2_000)
    expect(isHttpError(await pending, 'backend_dns')).toBe(true)
    expect(clock.pending).toBe(0)
  })
})
