import { isThvError } from '@thv/kernel/errors'
import type { Listening, McpClient } from '@thv/mcp/client/mcp-client'
import { describe, expect, it } from 'vitest'
import { LocalRefusal } from './local-refusal.ts'
import { SharedClients } from './shared-clients.ts'

/** Clients whose requests wait until they are answered; closing one breaks them, as with real ones. */
function table(limit?: number) {
  const closed: number[] = []
  let opened = 0
  const answers: (() => void)[] = []
  const open = (): McpClient => {
    const id = opened++
    const closing = Promise.withResolvers<never>()
    closing.promise.catch(() => {})
    const client = {
      era: 'legacy',
      capabilities: { tools: {} },
      request: (method: string) => {
        const { promise, resolve } = Promise.withResolvers<object>()
        if (method === 'quick') resolve({ id })
        else answers.push(() => resolve({ id }))
        return Promise.race([promise, closing.promise])
      },
      listen: async (): Promise<Listening> => {
        const { promise: done, resolve } = Promise.withResolvers<void>()
        return { honoured: {}, done, close: async () => resolve(), [Symbol.asyncDispose]: async () => resolve() }
      },
      close: async () => {
        closed.push(id)
        closing.reject(new Error('the client is closed'))
      },
    }
    return client as unknown as McpClient
  }
  const clients = new SharedClients({ backend: 'one', open, ...(limit !== undefined && { limit }) })
  const answerAll = () => {
    for (const answer of answers.splice(0)) answer()
  }
  return { clients, closed, answerAll, opened: () => opened }
}

describe('clients of a backend that callers share', () => {
  it('survive any number of other callers while they have a call under way', async () => {
    const { clients, closed, answerAll } = table(10)
    const ada = clients.of('ada', 'ada').request('slow')
    for (let i = 0; i < 100; i++) await clients.of(`mallory ${i}`, 'mallory').request('quick')
    expect(clients.size).toBe(10)
    expect(closed).not.toContain(0)
    answerAll()
    expect(await ada).toEqual({ id: 0 })
  })

  it('refuse a newcomer when all of them are at work, by name, and let it in afterward', async () => {
    const { clients, closed, answerAll, opened } = table(5)
    const ada = clients.of('ada', 'ada').request('slow')
    const calls = [1, 2, 3, 4].map((i) => clients.of(`bob ${i}`, `bob ${i}`).request('slow'))
    const late = clients.of('carl', 'carl')
    const refused: unknown = await late.request('quick').catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(LocalRefusal)
    expect(isThvError(refused)).toBe(true)
    expect(refused).toMatchObject({ rpcCode: 503, data: { backend: 'one', reason: 'busy', mayHaveRun: false, retryable: true } })
    expect([closed, opened()]).toEqual([[], 5])
    answerAll()
    await Promise.all([ada, ...calls])
    await expect(late.request('quick')).resolves.toEqual({ id: 5 })
    expect(closed).toEqual([0])
  })

  it('leave room for others: a party with too many calls under way is refused, and no other is', async () => {
    const { clients, closed, answerAll } = table(8)
    const idle = clients.of('bob', 'bob')
    await idle.request('quick')
    const calls = [1, 2, 3, 4, 5, 6].map((i) => clients.of(`mallory ${i}`, 'mallory').request('slow'))
    const refused = clients.of('mallory 7', 'mallory').request('slow')
    await expect(refused).rejects.toMatchObject({ message: expect.stringContaining('too many of your calls are under way') })
    await expect(clients.of('ada', 'ada').request('quick')).resolves.toBeDefined()
    // Another call of a client that is at work needs no room.
    calls.push(clients.of('mallory 1', 'mallory').request('slow'))
    answerAll()
    await Promise.all(calls)
    await clients.of('mallory 8', 'mallory').request('quick')
    expect(closed).toEqual([2]) // the one of mallory that was used longest ago, though that of bob is older
    await expect(idle.request('quick')).resolves.toEqual({ id: 0 })
  })

  it('let callers behind one address use most of the room while no other party needs it, and take it back for others', async () => {
    const { clients, closed, answerAll, opened } = table()
    const calls = Array.from({ length: 750 }, (_, i) => clients.of(`user ${i}`, 'address gateway').request('slow'))
    await expect(clients.of('user 750', 'address gateway').request('slow')).rejects.toBeInstanceOf(LocalRefusal)
    const others = Array.from({ length: 100 }, (_, i) => clients.of(`other ${i}`, `principal ${i}`).request('slow'))
    expect(opened()).toBe(850)
    answerAll()
    await Promise.all([...calls, ...others])
    // Idle ones may fill all of it.
    for (let i = 750; i < 1_000; i++) await clients.of(`user ${i}`, 'address gateway').request('quick')
    expect([clients.size, closed.length]).toEqual([1_000, 100])
    // Those of the gateway made room for each other, and make room for others.
    expect(closed.every((id) => id < 750)).toBe(true)
    for (let i = 100; i < 200; i++) await clients.of(`other ${i}`, `principal ${i}`).request('quick')
    expect([clients.size, closed.length, closed.every((id) => id < 750)]).toEqual([1_000, 200, true])
  })

  it('are opened again for a caller whose client had to leave', async () => {
    const { clients, closed } = table(1)
    const ada = clients.of('ada', 'ada')
    await ada.request('quick')
    await clients.of('bob', 'bob').request('quick')
    expect(closed).toEqual([0])
    expect(ada.era).toBe('legacy')
    await expect(ada.request('quick')).resolves.toEqual({ id: 2 })
  })

  it('count a subscription as a use until it ends', async () => {
    const { clients, closed } = table(1)
    const listening = await clients.of('ada', 'ada').listen({}, { onNotification: () => {} })
    await expect(clients.of('bob', 'bob').request('quick')).rejects.toBeInstanceOf(LocalRefusal)
    await listening.close()
    await expect(clients.of('bob', 'bob').request('quick')).resolves.toBeDefined()
    expect(closed).toEqual([0])
    await clients.close()
    expect([closed, clients.size]).toEqual([[0, 1], 0])
  })
})
