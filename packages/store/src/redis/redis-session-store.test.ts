import { describe, expect, it } from 'vitest'
import { CLEAR_RECORDS } from './record-cipher.ts'
import type { RedisClient } from './redis-client.ts'
import { RedisSessionStore } from './redis-session-store.ts'
import { CREATE, DELETE, GET } from './session-scripts.ts'

const alice = { id: 's1', owner: 'alice' }

/** Answers in the order of the questions, as one connection does. */
function fakeRedis() {
  const keys: (readonly string[])[] = []
  let last: Promise<unknown> = Promise.resolve()
  let record: unknown
  const redis: RedisClient = {
    isAway: false,
    run(script, named, args) {
      keys.push(named)
      let answer: unknown = null
      if (script === CREATE) {
        record = args[2]
        answer = 1
      } else if (script === GET && record !== undefined) answer = [Buffer.from('1'), record, 60_000, Buffer.from('60000')]
      else if (script === DELETE) {
        answer = record === undefined ? 0 : 1
        record = undefined
      }
      last = last.then(() => answer)
      return last
    },
    async [Symbol.asyncDispose]() {},
  }
  return { redis, keys }
}

describe('sessions in Redis', () => {
  it('that are deleted stay so, also when they were read in the same moment', async () => {
    const { redis } = fakeRedis()
    await new RedisSessionStore<{ n: number }>({ redis, cipher: CLEAR_RECORDS }).create({ ...alice, value: { n: 1 } }, 60_000)
    const store = new RedisSessionStore<{ n: number }>({ redis, cipher: CLEAR_RECORDS }) // knows nothing yet
    const [read, deleted] = await Promise.all([store.get(alice), store.delete(alice)])
    expect([read?.value, deleted]).toEqual([{ n: 1 }, true])
    expect(await store.get(alice)).toBeUndefined()
  })

  it('have no id that names their index', async () => {
    const { redis, keys } = fakeRedis()
    const store = new RedisSessionStore<{ n: number }>({ redis, cipher: CLEAR_RECORDS, keyPrefix: 'p:' })
    await store.size()
    const [, index = ''] = keys[0] ?? []
    expect(index).toMatch(/^p:/)
    expect(index.slice('p:'.length)).not.toMatch(/^[\x21-\x7e]+$/) // what a client may send as an id
  })
})
