import type { Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { get, rawClient, rawExchange, startServer } from '../testing/loopback.ts'
import { canBecomeOthers, OTHER_USER, talkAs } from '../testing/other-user.ts'
import { createPeerCheck, peerCheckFromEnv } from './peer-check.ts'
import { sendText } from './respond.ts'
import type { SocketEnds, SocketTable } from './socket-table.ts'

const uid = process.getuid?.() ?? -1
const request = get('/hello', ['Connection: close'])

/** Answers with what it is given, and keeps the questions. */
function fakeTable(...owners: (number | undefined | Error)[]): SocketTable & { readonly asked: SocketEnds[] } {
  const asked: SocketEnds[] = []
  return {
    asked,
    async ownerOf(ends) {
      asked.push(ends)
      const owner = owners.shift()
      if (owner instanceof Error) throw owner
      return owner
    },
  }
}

function socketOf(remoteAddress: string, localAddress = '127.0.0.1'): Socket {
  return { remoteAddress, remotePort: 5_000, localAddress, localPort: 80, destroyed: false } as Socket
}

describe('createPeerCheck', () => {
  it.each([
    ['127.0.0.1', '127.0.0.1'],
    ['127.9.8.7', '127.3.0.1'],
    ['::1', '::1'],
    ['::ffff:127.0.0.1', '::ffff:127.0.0.1'],
    ['192.0.2.7', '127.0.0.1'], // bound to another address of this machine before it connected
  ])('looks up the owner of a connection from %s to %s', async (remote, local) => {
    const table = fakeTable(7)
    expect(await createPeerCheck({ uid: 7, table }).admits(socketOf(remote, local))).toBe(true)
    expect(table.asked).toEqual([{ localAddress: remote, localPort: 5_000, remoteAddress: local, remotePort: 80 }])
  })

  it('admits other machines without a look-up', () => {
    const table = fakeTable()
    expect(createPeerCheck({ uid: 7, table }).admits(socketOf('192.0.2.7', '192.0.2.1'))).toBe(true)
    expect(table.asked).toEqual([])
  })

  it('admits root', async () => {
    expect(await createPeerCheck({ uid: 7, table: fakeTable(0) }).admits(socketOf('127.0.0.1'))).toBe(true)
  })

  it('asks a second time for a socket that is missing in the list', async () => {
    expect(await createPeerCheck({ uid: 7, table: fakeTable(undefined, 7) }).admits(socketOf('127.0.0.1'))).toBe(true)
  })

  it.each([
    ['of another user', [8], 'a connection of user 8 was refused'],
    ['of an unknown owner', [undefined, undefined], 'a connection whose owner is unknown was refused'],
    ['when the list cannot be read', [new Error('EMFILE')], 'a connection was refused because its owner could not be looked up: EMFILE'],
  ])('refuses a connection %s, and reports each reason once', async (_, owners, reason) => {
    const reasons: string[] = []
    const check = createPeerCheck({ uid: 7, table: fakeTable(...owners, ...owners), onRefused: (text) => reasons.push(text) })
    expect(await check.admits(socketOf('127.0.0.1'))).toBe(false)
    expect(await check.admits(socketOf('127.0.0.1'))).toBe(false)
    expect(reasons).toEqual([reason])
  })

  it('refuses a connection that is closed already', async () => {
    const table = fakeTable()
    expect(await createPeerCheck({ uid: 7, table }).admits({ destroyed: true } as Socket)).toBe(false)
    expect(table.asked).toEqual([])
  })
})

describe('peerCheckFromEnv', () => {
  it('is off without THV_PEER_USER', () => {
    expect(peerCheckFromEnv({})).toBeUndefined()
  })

  it('takes the user from THV_PEER_USER', async () => {
    const check = peerCheckFromEnv({ THV_PEER_USER: '8' }, { table: fakeTable(8, 7) })
    expect(await check?.admits(socketOf('127.0.0.1'))).toBe(true)
    expect(await check?.admits(socketOf('127.0.0.1'))).toBe(false)
  })

  it.each(['root', '-1', '1.5', '99999999999'])('rejects %s', (text) => {
    expect(() => peerCheckFromEnv({ THV_PEER_USER: text })).toThrow('THV_PEER_USER is not the number of a user')
  })
})

describe('a server with a peer check', () => {
  it('serves a connection before and after its owner is known, with one look-up', async () => {
    const lookup = Promise.withResolvers<number>()
    let lookups = 0
    const table: SocketTable = {
      ownerOf() {
        lookups++
        return lookup.promise
      },
    }
    const handled: string[] = []
    await using loopback = await startServer(
      (exchange) => {
        handled.push(exchange.path)
        sendText(exchange, `answer ${exchange.path}`)
      },
      { peers: createPeerCheck({ uid, table }) },
    )
    using client = await rawClient(loopback.port)
    client.write(get('/first') + get('/second'))
    await expect.poll(() => loopback.server.stats.inFlight).toBe(2)
    expect(handled).toEqual([])
    lookup.resolve(uid)
    await client.until('answer /second')
    client.write(get('/third'))
    await client.until('answer /third')
    expect(handled).toEqual(['/first', '/second', '/third'])
    expect(lookups).toBe(1)
  })

  it('answers 403 with the reason to another user, closes the connection, and calls no handler', async () => {
    let handled = 0
    await using loopback = await startServer(() => void handled++, { peers: createPeerCheck({ uid, table: fakeTable(uid + 1) }) })
    const answer = await rawExchange(loopback.port, get('/first') + get('/second'))
    expect(answer).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n/)
    expect(answer).toContain('answers only to the user who started it')
    expect(answer).toMatch(/connection: close/i)
    expect(handled).toBe(0)
    expect(loopback.server.stats.forbidden).toBeGreaterThan(0)
  })

  it('closes the connection of another user that sends nothing', async () => {
    await using loopback = await startServer(() => {}, { peers: createPeerCheck({ uid, table: fakeTable(uid + 1) }) })
    using client = await rawClient(loopback.port)
    await client.untilClosed()
    expect(client.received).toBe('')
  })

  it('drains while an owner is being looked up', async () => {
    const table: SocketTable = { ownerOf: () => new Promise(() => {}) }
    await using loopback = await startServer(() => {}, { peers: createPeerCheck({ uid, table }) })
    using client = await rawClient(loopback.port)
    client.write(request)
    await expect.poll(() => loopback.server.stats.inFlight).toBe(1)
    expect(await loopback.server.drain(AbortSignal.abort())).toMatchObject({ aborted: 1 })
  })
})

describe.skipIf(!canBecomeOthers)('with real users', () => {
  const THIRD_USER = 65_533

  it.each([
    { serves: uid, user: uid, status: 200 },
    { serves: uid, user: OTHER_USER, status: 403 },
    { serves: OTHER_USER, user: OTHER_USER, status: 200 },
    { serves: OTHER_USER, user: 0, status: 200 },
    { serves: OTHER_USER, user: THIRD_USER, status: 403 },
  ])('a server for user $serves answers $status to user $user', async ({ serves, user, status }) => {
    await using loopback = await startServer((exchange) => sendText(exchange, 'hello'), { peers: createPeerCheck({ uid: serves }) })
    expect(await talkAs(user, { port: loopback.port, text: request })).toContain(`HTTP/1.1 ${status} `)
  })
})
