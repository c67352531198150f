import { isThvError } from '@thv/kernel/errors'
import type { Listening, McpClient } from '@thv/mcp/client/mcp-client'
import { describe, expect, it } from 'vitest'
import { LocalRefusal } from './local-refusal.ts'
import { SharedClients } from './shared-clients.ts'

/** Clients whose requests wait until they are answered; closing one breaks them, as with real ones. */
function table(limits: { readonly all: number; readonly perParty: number }) {
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
  const clients = new SharedClients({ backend: 'one', open, limits })
  const answerAll = () => {
    for (const answer of answers.splice(0)) answer()
  }
  return { clients, closed, answerAll, opened: () => opened }
}

describe('clients of a backend that callers share', () => {
  it('survive any number of other callers while they have a call under way', async () => {
    const { clients, closed, answerAll } = table({ all: 10, perParty: 10 })
    const ada = clients.of('ada', 'ada').request('slow')
    for (let i = 0; i < 100; i++) await clients.of(`mallory ${i}`, 'mallory').request('quick')
    expect(clients.size).toBe(10)
    expect(closed).not.toContain(0)
    answerAll()
    expect(await ada).toEqual({ id: 0 })
  })

  it('refuse a newcomer when all of them are at work, by name, and let it in afterward', async () => {
    const { clients, closed, answerAll, opened } = table({ all: 5, perParty: 3 })
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

  it('give each party a share: one that has all of it under way is refused, and no other is', async () => {
    const { clients, closed, answerAll } = table({ all: 100, perParty: 3 })
    const idle = clients.of('bob', 'bob')
    await idle.request('quick')
    const calls = [1, 2, 3].map((i) => clients.of(`mallory ${i}`, 'mallory').request('slow'))
    await expect(clients.of('mallory 4', 'mallory').request('slow')).rejects.toBeInstanceOf(LocalRefusal)
    await expect(clients.of('ada', 'ada').request('quick')).resolves.toBeDefined()
    // Another call of a client that is there needs no room.
    calls.push(clients.of('mallory 1', 'mallory').request('slow'))
    answerAll()
    await Promise.all(calls)
    await clients.of('mallory 4', 'mallory').request('quick')
    expect(closed).toEqual([1 + 1]) // the one of mallory that was used longest ago, though that of bob is older
    await expect(idle.request('quick')).resolves.toEqual({ id: 0 })
  })

  it('are opened again for a caller whose client had to leave', async () => {
    const { clients, closed } = table({ all: 1, perParty: 1 })
    const ada = clients.of('ada', 'ada')
    await ada.request('quick')
    await clients.of('bob', 'bob').request('quick')
    expect(closed).toEqual([0])
    expect(ada.era).toBe('legacy')
    await expect(ada.request('quick')).resolves.toEqual({ id: 2 })
  })

  it('count a subscription as a use until it ends', async () => {
    const { clients, closed } = table({ all: 1, perParty: 1 })
    const listening = await clients.of('ada', 'ada').listen({}, { onNotification: () => {} })
    await expect(clients.of('bob', 'bob').request('quick')).rejects.toBeInstanceOf(LocalRefusal)
    await listening.close()
    await expect(clients.of('bob', 'bob').request('quick')).resolves.toBeDefined()
    expect(closed).toEqual([0])
    await clients.close()
    expect([closed, clients.size]).toEqual([[0, 1], 0])
  })
})
