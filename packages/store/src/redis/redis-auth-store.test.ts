import { TestClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { describe, expect, it } from 'vitest'
import { GET, UPDATE } from './auth-scripts.ts'
import { createRecordCipher } from './record-cipher.ts'
import { RedisAuthStore } from './redis-auth-store.ts'
import type { RedisArgument } from './redis-client.ts'

/** A store over a Redis that has one record. `onUpdate`: before an update is carried out. */
function open(onUpdate: (update: number) => 'lost' | undefined) {
  const clock = new TestClock()
  const state: { data: RedisArgument; updates: (readonly RedisArgument[])[] } = { data: '', updates: [] }
  const isData = (other: RedisArgument | undefined) => String(state.data) === String(other)
  const store = new RedisAuthStore({
    redis: {
      isAway: false,
      async run(script, _, args) {
        if (script === GET) return state.data === '' ? null : [state.data, Buffer.alloc(0)]
        if (script !== UPDATE) throw new RangeError('not expected')
        state.updates.push(args)
        const isLost = onUpdate(state.updates.length) === 'lost'
        const isWritten = isData(args[0]) || isData(args[3])
        if (isWritten) state.data = args[0] ?? ''
        if (isLost) throw new ThvError('redis_unavailable', 'no answer')
        return isWritten ? 1 : 0
      },
      async [Symbol.asyncDispose]() {},
    },
    cipher: createRecordCipher(['s']),
    keyPrefix: 'thv:auth:{a:b}:',
    clock,
  })
  const add = (n: number) =>
    store.update('account', 'x', { ttlMs: 60_000 }, (value) => ({ all: [...((value?.['all'] as number[]) ?? []), n] }))
  return { store, state, clock, add }
}

describe('an update of a record in Redis', () => {
  it('is made of what somebody else has written in between', async () => {
    let others: Promise<void>[] = []
    const { store, state, clock, add } = open((update) => {
      if (update === 1) others = [add(2)]
      return undefined
    })
    const updated = add(1)
    for (let step = 0; step < 20; step++) await clock.advance(100)
    await Promise.all([updated, ...others])
    expect((await store.get('account', 'x'))?.value).toEqual({ all: [1, 2] })
    expect(state.updates).toHaveLength(3)
  })

  it('is made once when its answer was lost', async () => {
    const { store, state, clock, add } = open((update) => (update === 1 ? 'lost' : undefined))
    const updated = add(1)
    await clock.advance(1_000)
    await updated
    expect(state.updates[1]).toEqual(state.updates[0])
    expect((await store.get('account', 'x'))?.value).toEqual({ all: [1] })
  })

  it('ends with an error when others keep writing', async () => {
    const { state, clock, add } = open((update) => {
      state.data = Buffer.from(`other ${update}`)
      return undefined
    })
    const updated = add(1).catch((error: unknown) => error)
    for (let step = 0; step < 150; step++) await clock.advance(100)
    expect(await updated).toMatchObject({ code: 'store_unavailable' })
  })
})
