import { systemClock, TestClock } from '@thv/kernel/clock'
import { isThvError } from '@thv/kernel/errors'
import type { AuthStore } from '@thv/store/auth/auth-store'
import { createMemoryAuthStore } from '@thv/store/auth/memory-auth-store'
import { describe, expect, it } from 'vitest'
import { FamilyLogins } from './family-logins.ts'

const MINUTE = 60_000

/** Reads of other replicas come between a read and the write that follows. */
function slow(store: AuthStore): AuthStore {
  const get = store.get.bind(store)
  return Object.assign(store, {
    get: async (...args: Parameters<AuthStore['get']>) => {
      const found = await get(...args)
      await new Promise((resolve) => setTimeout(resolve, 5))
      return found
    },
  })
}

describe('providers of a family', () => {
  it('that are joined at several replicas at once are all kept, also while another one is marked as ended', async () => {
    await using store = slow(createMemoryAuthStore())
    await store.put('login', 'f', { value: { account: 'ada', providers: ['corp'] }, ttlMs: MINUTE, family: 'f' })
    const replicas = Array.from({ length: 6 }, () => new FamilyLogins(store, systemClock))
    replicas[0]?.end('f', 'corp')
    await Promise.all(replicas.map((logins, index) => logins.join('f', `saas-${index}`)))
    const expected = { account: 'ada', providers: ['corp', ...replicas.map((_, index) => `saas-${index}`)], ended: ['corp'] }
    await expect
      .poll(async () => {
        const { providers = [], ...rest } = ((await store.get('login', 'f'))?.value ?? {}) as { providers?: string[] }
        return { ...rest, providers: providers.toSorted() }
      })
      .toEqual(expected)
    for (const [index, logins] of replicas.entries()) expect(await logins.hasJoined('f', `saas-${(index + 1) % 6}`)).toBe(true)
  })

  it('are not changed while another replica holds the record for too long, and the caller learns it', async () => {
    const clock = new TestClock()
    await using store = createMemoryAuthStore({ clock })
    await store.put('login', 'f', { value: { providers: ['corp'] }, ttlMs: MINUTE, family: 'f' })
    const logins = new FamilyLogins(Object.assign(store, { lock: async () => undefined }), clock)
    const joined = logins.join('f', 'saas').catch((error: unknown) => error)
    for (let step = 0; step < 100; step++) await clock.advance(200)
    expect(isThvError(await joined, 'store_unavailable')).toBe(true)
    expect((await store.get('login', 'f'))?.value).toEqual({ providers: ['corp'] })
  })

  it('can be joined after a replica died that held the record', async () => {
    const clock = new TestClock()
    await using store = createMemoryAuthStore({ clock })
    await store.put('login', 'f', { value: { providers: ['corp'] }, ttlMs: MINUTE, family: 'f' })
    await store.lock('login:f', 5_000)
    const joined = new FamilyLogins(store, clock).join('f', 'saas')
    for (let step = 0; step < 60; step++) await clock.advance(100)
    await joined
    expect((await store.get('login', 'f'))?.value).toEqual({ providers: ['corp', 'saas'] })
  })
})
