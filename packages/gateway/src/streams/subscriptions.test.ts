import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Subscriptions } from './subscriptions.ts'

const YES = { accepted: true } as const
const NO = { accepted: false } as const

describe('Subscriptions', () => {
  it('tells the process of the first subscriber and of the leaving of the last', async () => {
    const table = new Subscriptions<string>()
    const told: string[] = []
    const forward = (what: string) => async () => {
      told.push(what)
      return YES
    }
    await table.subscribe('a', 'u', forward('sub a'))
    await table.subscribe('b', 'u', forward('sub b'))
    await table.unsubscribe('a', 'u', forward('unsub a'))
    expect([...table.subscribersOf('u')]).toEqual(['b'])
    await table.unsubscribe('b', 'u', forward('unsub b'))
    await table.unsubscribe('b', 'u', forward('again'))
    expect(told).toEqual(['sub a', 'unsub b'])
    expect(table.uris).toEqual([])
  })

  it('counts a subscription only once the process has accepted it', async () => {
    const table = new Subscriptions<string>()
    expect(await table.subscribe('a', 'u', async () => NO)).toBe(NO)
    expect(table.uris).toEqual([])
    let asked = 0
    await table.subscribe('b', 'u', async () => {
      asked++
      return YES
    })
    expect([asked, [...table.subscribersOf('u')]]).toEqual([1, ['b']])
  })

  it('goes on after a forward that failed', async () => {
    const table = new Subscriptions<string>()
    await expect(table.subscribe('a', 'u', () => Promise.reject(new Error('pipe')))).rejects.toThrow('pipe')
    expect(await table.subscribe('a', 'u', async () => YES)).toBe(YES)
  })

  it('names the URIs without subscribers when a session ends', async () => {
    const table = new Subscriptions<string>()
    for (const [who, uri] of [
      ['a', 'u'],
      ['a', 'v'],
      ['b', 'v'],
    ] as const)
      await table.subscribe(who, uri, async () => YES)
    expect(table.leave('a')).toEqual(['u'])
    expect(table.restore('c', ['v', 'w'])).toEqual(['w'])
    expect([...table.subscribersOf('v')]).toEqual(['b', 'c'])
  })

  it('keeps the process and the table in step, in whatever order answers come', async () => {
    const step = fc.record({
      who: fc.constantFrom('a', 'b', 'c'),
      uri: fc.constantFrom('u', 'v'),
      subscribes: fc.boolean(),
      accepts: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), fc.scheduler(), async (steps, scheduler) => {
        const table = new Subscriptions<string>()
        /** The view of a server that knows a single client. */
        const server = new Set<string>()
        const answer = (uri: string, subscribes: boolean, accepts: boolean) => async () => {
          await scheduler.schedule(Promise.resolve())
          if (subscribes && accepts) server.add(uri)
          if (!subscribes) server.delete(uri)
          return accepts || !subscribes ? YES : NO
        }
        const all = steps.map(({ who, uri, subscribes, accepts }) =>
          table[subscribes ? 'subscribe' : 'unsubscribe'](who, uri, answer(uri, subscribes, accepts)),
        )
        await scheduler.waitFor(Promise.all(all))
        expect(new Set(table.uris)).toEqual(server)
      }),
    )
  })
})
