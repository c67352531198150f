import { TestClock } from '@thv/kernel/clock'
import { describe, expect, it } from 'vitest'
import type { Member } from '../members/member.ts'
import { outgoingScope } from '../members/outgoing-scope.ts'
import { type ExclusiveClient, ExclusiveClients } from './exclusive-clients.ts'

function createPool() {
  const clock = new TestClock()
  const stats = { opened: 0, open: 0 }
  const member = {
    name: 'one',
    isPerCaller: true,
    open: () => {
      stats.opened++
      stats.open++
      return { close: async () => void stats.open-- }
    },
  } as unknown as Member
  const pool = new ExclusiveClients(clock)
  const take = (kind: unknown): ExclusiveClient | undefined => pool.take(member, { elicitation: { kind } }, 'ada')
  return { clock, stats, pool, take }
}

function taken(client: ExclusiveClient | undefined): ExclusiveClient {
  if (client === undefined) throw new Error('there is none')
  return client
}

describe('sessions for one call each', () => {
  it('are used again, and end when no call has used them for a while', async () => {
    const { clock, stats, pool, take } = createPool()
    const first = taken(take('a'))
    pool.giveBack(first)
    expect(take('a')).toBe(first)
    pool.giveBack(first)
    await clock.advance(60_000)
    expect([stats.open, clock.pending]).toEqual([0, 0])
    expect(take('a')).not.toBe(first)
  })

  it('are not shared by callers with different credentials, also where nothing authenticates', () => {
    const { pool, take } = createPool()
    const takeWith = (token: string) => {
      const exchange = { headers: { authorization: `Bearer ${token}` } } as never
      return taken(outgoingScope.run({ caller: { principal: 'anonymous' }, exchange }, () => take('a')))
    }
    const first = takeWith('one')
    pool.giveBack(first)
    expect(takeWith('two')).not.toBe(first)
    expect(takeWith('one')).toBe(first)
  })

  it('are at most 16 of one kind', () => {
    const { take } = createPool()
    for (let i = 0; i < 16; i++) taken(take('a'))
    expect(take('a')).toBeUndefined()
    expect(take('b')).toBeDefined()
  })

  it('do not pile up for a client that declares something else each time', async () => {
    const { clock, stats, pool, take } = createPool()
    for (let i = 0; i < 3_000; i++) {
      const client = taken(take(i))
      if (i % 2 === 0) pool.giveBack(client)
      else pool.discard(client)
    }
    expect(stats).toEqual({ opened: 3_000, open: 1_024 })
    pool.giveBack(taken(take('x'.repeat(10_000))))
    expect(stats.open).toBe(1_023)
    await clock.advance(60_000)
    expect([stats.open, clock.pending]).toEqual([0, 0])
  })
})
