import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { TestClock } from '@thv/kernel/clock'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { movedCheck, openRedis, redisScript } from './redis-client.ts'

const opened: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one[Symbol.asyncDispose]()
})

const SCRIPT = redisScript('return 1')
const INFO = 'redis_version:7.0.0\r\nloading:0\r\n'

/**
 * As much of a Redis as a client needs to be ready. `mute` ends the answers of the connections there are, but not the connections. `hold`: scripts
 * are answered when it resolves.
 */
async function startPeer({ hold }: { hold?: Promise<void> } = {}) {
  let connections = 0
  let mutedUpTo = 0
  const commands: string[] = []
  const server = createServer((socket) => {
    const number = ++connections
    let answered = Promise.resolve()
    socket.on('error', () => socket.destroy())
    socket.on('data', (chunk: Buffer) => {
      if (number <= mutedUpTo) return
      for (const [, command = ''] of chunk.toString('latin1').matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g)) {
        const name = command.toLowerCase()
        commands.push(`${number} ${name}`)
        const isCount = name === 'evalsha' || name === 'wait'
        const answer = name === 'info' ? `$${INFO.length}\r\n${INFO}\r\n` : isCount ? ':1\r\n' : '+OK\r\n'
        answered = answered.then(async () => {
          if (name === 'evalsha') await hold
          if (name === 'quit') socket.end(answer)
          else if (!socket.writableEnded) socket.write(answer)
        })
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  opened.push({
    async [Symbol.asyncDispose]() {
      server.close()
    },
  })
  const { port } = server.address() as AddressInfo
  const mute = () => {
    mutedUpTo = connections
  }
  return { address: { host: '127.0.0.1', port }, connections: () => connections, mute, commands }
}

describe('a connection to Redis', () => {
  it('that stays open and answers no more is replaced', async () => {
    const peer = await startPeer()
    const clock = new TestClock()
    const redis = await openRedis({ address: peer.address, db: 0, clock, timeoutMs: 200 })
    opened.push(redis)
    const answer = async () => {
      await clock.advance(2_000) // past every back-off
      return redis.run(SCRIPT, ['k'], []).catch(() => 'away')
    }
    await expect.poll(answer, { timeout: 30_000 }).toBe(1)
    const before = peer.connections()
    peer.mute()
    expect(await answer()).toBe('away')
    await expect.poll(answer, { timeout: 30_000 }).toBe(1)
    expect(peer.connections()).toBeGreaterThan(before)
  })
})

describe('a write that a replica must have', () => {
  it('is asked about over the connection that it went over, also where another one has taken its place meanwhile', async () => {
    const { promise: hold, resolve: release } = Promise.withResolvers<void>()
    const peer = await startPeer({ hold })
    const redis = await openRedis({ address: peer.address, db: 0, timeoutMs: 30_000, onUnacknowledged: () => {} })
    opened.push(redis)
    const script = redisScript('return 2', { isDurable: true })
    const written = vi.waitFor(() => redis.run(script, ['k'], []), { timeout: 30_000, interval: 20 })
    await expect.poll(() => peer.commands, { timeout: 30_000 }).toContain('1 evalsha')
    const replaced = redis.replace({})
    await expect.poll(() => peer.commands, { timeout: 30_000 }).toContain('1 quit')
    release()
    await replaced
    expect(await written).toBe(1)
    const count = (command: string) => peer.commands.filter((each) => each === command).length
    expect(count('1 wait') + count('2 wait')).toBeGreaterThan(0)
    expect(count('2 wait')).toBe(count('2 evalsha'))
  })
})

describe('a primary that has moved', () => {
  const noReplicas = new Error('NOREPLICAS Not enough good replicas to write.')

  it('is looked for at once where a replica answers, and never because of another answer', () => {
    const isMoved = movedCheck({ hasSentinels: false, clock: new TestClock() })
    for (let n = 0; n < 3; n++) expect(isMoved(new Error("READONLY You can't write against a read only replica."))).toBe(true)
    expect([isMoved(noReplicas), isMoved(new Error('OOM command not allowed'))]).toEqual([false, false])
  })

  it('is looked for with back-off where a primary has no replicas, not at each write', async () => {
    const clock = new TestClock()
    const isMoved = movedCheck({ hasSentinels: true, clock })
    const looks: number[] = []
    for (let second = 0; second < 60; second++) {
      for (let write = 0; write < 20; write++) {
        if (isMoved(noReplicas)) looks.push(second)
        await clock.advance(50)
      }
    }
    expect(looks[0]).toBe(0)
    expect(looks.length).toBeGreaterThan(8)
    expect(looks.length).toBeLessThan(40)
    expect(looks.filter((second) => second >= 30).length).toBeLessThan(16)
    // Long afterwards it is another story.
    await clock.advance(120_000)
    expect(isMoved(noReplicas)).toBe(true)
    await clock.advance(600)
    expect(isMoved(noReplicas)).toBe(true)
  })
})
