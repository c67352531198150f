import { once } from 'node:events'
import type { Socket } from 'node:net'
import { createPeerCheck } from '@thv/http/server/peer-check'
import { canBecomeOthers, OTHER_USER, talkAs } from '@thv/http/testing/other-user'
import { isThvError } from '@thv/kernel/errors'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { PortForwarder, type PortForwarderOptions } from './port-forwarder.ts'
import { eventually } from './testing/eventually.ts'
import { echoNamed, listenOn, open, readAll, type TestServer, whoAnswers } from './testing/sockets.ts'

const cleanups: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function serve(onConnection: (socket: Socket) => void): Promise<TestServer> {
  const server = await listenOn('127.0.0.1', onConnection)
  cleanups.push(() => server.close())
  return server
}

async function forward(backends: readonly TestServer[], options: Partial<PortForwarderOptions> & { affinityMs?: number } = {}) {
  const forwarder = await PortForwarder.listen({ host: '127.0.0.1', port: 0, ...options })
  cleanups.push(() => forwarder.close())
  forwarder.set(backends, options.affinityMs)
  return forwarder
}

const ask = ({ host, port }: PortForwarder) => whoAnswers(host, port)

describe('PortForwarder', () => {
  it('passes bytes both ways and each end on its own', async () => {
    const seen = Promise.withResolvers<string>()
    const backend = await serve((socket) => {
      // Answers only after the client has ended its half.
      readAll(socket).then((text) => {
        seen.resolve(text)
        socket.end(`got ${text.length}`)
      }, seen.reject)
    })
    const forwarder = await forward([backend])
    const client = await open(forwarder.host, forwarder.port)
    client.end('x'.repeat(300_000))
    expect(await readAll(client)).toBe('got 300000')
    expect(await seen.promise).toHaveLength(300_000)
    await eventually(() => expect(forwarder.stats.active).toBe(0))
  })

  it('lets a server end first while the client still sends', async () => {
    const rest = Promise.withResolvers<string>()
    const backend = await serve((socket) => {
      socket.end('bye')
      readAll(socket).then(rest.resolve, rest.reject)
    })
    const forwarder = await forward([backend])
    const client = await open(forwarder.host, forwarder.port)
    expect(await readAll(client)).toBe('bye')
    client.end('still here')
    expect(await rest.promise).toBe('still here')
  })

  it('spreads connections by how many each backend has', async () => {
    const backends = [await serve(echoNamed('a')), await serve(echoNamed('b')), await serve(echoNamed('c'))]
    const forwarder = await forward(backends)
    const clients: Socket[] = []
    for (let i = 0; i < 30; i++) clients.push(await open(forwarder.host, forwarder.port))
    await eventually(() => expect(backends.map(({ accepted }) => accepted)).toEqual([10, 10, 10]))
    // Those of one backend end: it gets the next ones.
    for (const socket of backends[1]?.sockets ?? []) socket.resetAndDestroy()
    await eventually(() => expect(forwarder.stats.active).toBe(20))
    for (let i = 0; i < 5; i++) clients.push(await open(forwarder.host, forwarder.port))
    await eventually(() => expect(backends.map(({ accepted }) => accepted)).toEqual([10, 15, 10]))
    for (const client of clients) client.destroy()
  })

  it('keeps a client with its backend when the Service asks for that, until the backend is gone', async () => {
    const backends = [await serve(echoNamed('a')), await serve(echoNamed('b'))]
    const forwarder = await forward(backends, { affinityMs: 60_000 })
    const first = await ask(forwarder)
    for (let i = 0; i < 6; i++) expect(await ask(forwarder)).toBe(first)
    forwarder.set(
      backends.filter((_, i) => i !== (first === 'a' ? 0 : 1)),
      60_000,
    )
    expect(await ask(forwarder)).toBe(first === 'a' ? 'b' : 'a')
  })

  it('tries another backend when one refuses', async () => {
    const dead = await serve(echoNamed('dead'))
    const alive = await serve(echoNamed('alive'))
    const forwarder = await forward([dead, alive])
    await dead.close()
    for (let i = 0; i < 6; i++) expect(await ask(forwarder)).toBe('alive')
    expect(forwarder.stats.failedAttempts).toBeGreaterThan(0)
    expect(forwarder.stats.failedAttempts).toBeLessThan(6) // it is left alone for a while
  })

  it('breaks a connection at once when there is no backend, or none answers', async () => {
    const dead = await serve(echoNamed('dead'))
    const forwarder = await forward([], { patienceMs: 300 })
    expect(await ask(forwarder)).toMatch(/^(closed|ECONNRESET)$/)
    await dead.close()
    forwarder.set([dead], undefined)
    expect(await ask(forwarder)).toMatch(/^(closed|ECONNRESET)$/)
    expect(forwarder.stats.refused).toBe(2)
  })

  it('breaks the connection when the backend dies in the middle, so that half an answer never looks whole', async () => {
    const backend = await serve((socket) => void socket.write('half'))
    const forwarder = await forward([backend])
    const client = await open(forwarder.host, forwarder.port)
    await once(client, 'data')
    for (const socket of backend.sockets) socket.resetAndDestroy()
    await expect(readAll(client)).rejects.toMatchObject({ code: 'ECONNRESET' })
  })

  it('tells the backend when the client dies', async () => {
    const backend = await serve(echoNamed('a'))
    const forwarder = await forward([backend])
    const client = await open(forwarder.host, forwarder.port)
    await once(client, 'data')
    client.resetAndDestroy()
    await eventually(() => expect(backend.sockets.size).toBe(0))
    await eventually(() => expect(forwarder.stats.active).toBe(0))
  })

  it('leaves connections to a backend that is gone from the Service alone', async () => {
    const [old, next] = [await serve(echoNamed('old')), await serve(echoNamed('next'))]
    const forwarder = await forward([old])
    const client = await open(forwarder.host, forwarder.port)
    await once(client, 'data')
    forwarder.set([next], undefined)
    client.write('still you?')
    const [echo] = (await once(client, 'data')) as [Buffer]
    expect(echo.toString()).toBe('still you?')
    expect(await ask(forwarder)).toBe('next')
    client.destroy()
  })

  it('stops reading from a backend whose client does not read', async () => {
    let written = 0
    const backend = await serve((socket) => {
      const chunk = Buffer.alloc(65_536)
      const pump = () => {
        while (written < 1 << 30) {
          written += chunk.length
          if (!socket.write(chunk)) break
        }
      }
      socket.on('drain', pump)
      pump()
    })
    const forwarder = await forward([backend])
    const client = await open(forwarder.host, forwarder.port)
    client.pause()
    let before = -1
    await vi.waitFor(
      () => {
        const last = before
        before = written
        expect(written).toBe(last)
      },
      { timeout: 10_000, interval: 200 },
    )
    expect(written).toBeLessThan(64 << 20) // buffers of the kernel, three connections' worth
    expect(await ask(await forward([await serve(echoNamed('other'))]))).toBe('other')
    client.destroy()
  })

  it('takes 200 connections at once', async () => {
    const backends = [await serve(echoNamed('a')), await serve(echoNamed('b'))]
    const forwarder = await forward(backends)
    const payload = 'y'.repeat(20_000)
    const answers = await Promise.all(
      Array.from({ length: 200 }, async () => {
        const client = await open(forwarder.host, forwarder.port)
        client.end(payload)
        return (await readAll(client)).length
      }),
    )
    expect(new Set(answers)).toEqual(new Set([payload.length + 2]))
    expect(backends.map(({ accepted }) => accepted)).toEqual([100, 100])
  })

  it('closes what goes over its bound and works on', async () => {
    const backend = await serve(echoNamed('a'))
    const forwarder = await forward([backend], { maxConnections: 2 })
    const clients = [await open(forwarder.host, forwarder.port), await open(forwarder.host, forwarder.port)]
    await Promise.all(clients.map((client) => once(client, 'data')))
    expect(await ask(forwarder)).toMatch(/^(closed|ECONNRESET)$/)
    for (const client of clients) client.destroy()
    await eventually(async () => expect(await ask(forwarder)).toBe('a'))
  })

  it.skipIf(!canBecomeOthers)('resets the connections of other users before a backend sees them', async () => {
    const refused: string[] = []
    const backend = await serve(echoNamed('a'))
    const peers = createPeerCheck({ uid: process.getuid?.() ?? -1, onRefused: (reason) => refused.push(reason) })
    const forwarder = await forward([backend], { peers })
    expect(await talkAs(OTHER_USER, { port: forwarder.port, text: 'hello' })).toBe('')
    // Its process gone, the socket lives on in the kernel, which then names user 0.
    await Promise.all(Array.from({ length: 10 }, () => talkAs(OTHER_USER, { port: forwarder.port, text: 'hello', leaves: true })))
    await eventually(() => expect(forwarder.stats).toMatchObject({ accepted: 11, active: 0 }))
    expect(backend.accepted).toBe(0)
    expect(refused).toContain(`a connection of user ${OTHER_USER} was refused`)
    expect(await ask(forwarder)).toBe('a')
  })

  it('says why it cannot listen', async () => {
    const taken = await serve(echoNamed('a'))
    const error = await PortForwarder.listen({ host: '127.0.0.1', port: taken.port }).catch((e: unknown) => e)
    expect(isThvError(error, 'listen_failed')).toBe(true)
    expect(error).toMatchObject({ details: { reason: 'EADDRINUSE' } })
  })

  it('ends all connections when it closes', async () => {
    const backend = await serve(echoNamed('a'))
    const forwarder = await forward([backend])
    const client = await open(forwarder.host, forwarder.port)
    await once(client, 'data')
    await forwarder.close()
    await eventually(() => expect(backend.sockets.size).toBe(0))
    expect(await ask(forwarder)).toBe('ECONNREFUSED')
    client.destroy()
  })
})
