import { TestClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { describe, expect, it } from 'vitest'
import { UNCONSUME, UNTAKE } from './auth-scripts.ts'
import { LostAnswers } from './lost-answers.ts'
import { createRecordCipher } from './record-cipher.ts'
import { RedisAuthStore } from './redis-auth-store.ts'
import type { RedisArgument, RedisClient, RedisScript } from './redis-client.ts'

interface Call {
  readonly script: RedisScript
  readonly keys: readonly string[]
  readonly args: readonly RedisArgument[]
}

/** A Redis with these answers. */
function fakeRedis(answer: (call: Call) => unknown): { redis: RedisClient; calls: Call[] } {
  const calls: Call[] = []
  const redis: RedisClient = {
    isAway: false,
    async run(script, keys, args) {
      const call = { script, keys, args }
      calls.push(call)
      return answer(call)
    },
    async [Symbol.asyncDispose]() {},
  }
  return { redis, calls }
}

const lost = () => new ThvError('redis_unavailable', 'it does not answer')
const undoOf = (id: number) => ({ script: UNCONSUME, keys: [`k${id}`], args: [`attempt ${id}`] })

describe('operations that were given up', () => {
  it.each([
    ['consumed', UNCONSUME, (store: RedisAuthStore) => store.consume('code', 'c', { graceMs: 0 })],
    ['taken', UNTAKE, (store: RedisAuthStore) => store.take('pending', 'p')],
  ])('are taken back also where Redis refused the repetition of one that it may have carried out: %s', async (_, script, work) => {
    const clock = new TestClock()
    const answers = [lost(), Object.assign(new Error('OOM command not allowed'), { name: 'ReplyError' })]
    const { redis, calls } = fakeRedis((call) => {
      const error = call.script === script ? undefined : answers.shift()
      if (error !== undefined) throw error
      return 1
    })
    await using store = new RedisAuthStore({ redis, cipher: createRecordCipher(['s']), keyPrefix: 'thv:auth:{a:b}:', clock })
    const worked = work(store).catch((error: unknown) => error)
    await clock.advance(1_000)
    expect(await worked).toMatchObject({ code: 'store_unavailable' })
    await clock.advance(1_000)
    const [first, second, undo, ...more] = calls
    expect([second?.args, undo?.script, more]).toEqual([first?.args, script, []])
    expect([undo?.keys, undo?.args]).toEqual([first?.keys, first?.args.slice(0, 1)])
  })

  it('need no taking back where Redis refused them at once', async () => {
    const clock = new TestClock()
    const { redis, calls } = fakeRedis(() => {
      throw Object.assign(new Error('OOM command not allowed'), { name: 'ReplyError' })
    })
    await using store = new RedisAuthStore({ redis, cipher: createRecordCipher(['s']), keyPrefix: 'thv:auth:{a:b}:', clock })
    await expect(store.consume('code', 'c', { graceMs: 0 })).rejects.toMatchObject({ code: 'store_unavailable' })
    await clock.advance(10_000)
    expect(calls).toHaveLength(1)
  })

  it('are remembered for two minutes, a thousand of them, and not beyond the end of the store', async () => {
    const clock = new TestClock()
    const state = { isAway: true }
    const { redis, calls } = fakeRedis(() => {
      if (state.isAway) throw lost()
      return 1
    })
    const answers = new LostAnswers(redis, clock)
    answers.add(undoOf(0))
    await clock.advance(100_000)
    for (let id = 1; id < 1_500; id++) answers.add(undoOf(id))
    await clock.advance(30_000)
    calls.length = 0
    state.isAway = false
    await clock.advance(10_000)
    // The first one is too old by now.
    expect(calls.map(({ keys }) => keys[0])).toEqual(Array.from({ length: 999 }, (_, index) => `k${index + 1}`))
    expect(answers.isWaiting).toBe(false)

    state.isAway = true
    answers.add(undoOf(1))
    answers[Symbol.dispose]()
    answers.add(undoOf(2))
    calls.length = 0
    state.isAway = false
    await clock.advance(10_000)
    expect([calls, clock.pending]).toEqual([[], 0])
  })
})
