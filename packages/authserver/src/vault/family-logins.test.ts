import { systemClock, TestClock } from '@thv/kernel/clock'
import { isThvError, ThvError } from '@thv/kernel/errors'
import type { AuthStore } from '@thv/store/auth/auth-store'
import { createMemoryAuthStore } from '@thv/store/auth/memory-auth-store'
import { describe, expect, it } from 'vitest'
import { FamilyLogins } from './family-logins.ts'

const MINUTE = 60_000

/** Each operation takes some seconds, as during a failover. */
function slow(store: AuthStore, clock: TestClock): AuthStore {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function') return member
      return async (...args: unknown[]) => {
        await clock.sleep(3_000)
        const answer: unknown = await (member as (...all: unknown[]) => unknown).apply(target, args)
        await clock.sleep(3_000)
        return answer
      }
    },
  })
}

describe('providers of a family', () => {
  it('that are joined at several replicas at once are all kept, also while another one is marked as ended', async () => {
    await using store = createMemoryAuthStore()
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

  it('that are joined at once are all kept while each operation of the store takes seconds', async () => {
    const clock = new TestClock()
    await using store = createMemoryAuthStore({ clock })
    await store.put('login', 'f', { value: { providers: ['corp'] }, ttlMs: 100 * MINUTE, family: 'f' })
    const names = ['saas-0', 'saas-1', 'saas-2']
    const joined = Promise.allSettled(names.map((name) => new FamilyLogins(slow(store, clock), clock).join('f', name)))
    for (let step = 0; step < 600; step++) await clock.advance(100)
    expect((await joined).map(({ status }) => status)).toEqual(names.map(() => 'fulfilled'))
    expect((await store.get('login', 'f'))?.value).toEqual({ providers: expect.arrayContaining(['corp', ...names]) })
  })

  it('are not joined while the store is away, and the caller learns it', async () => {
    await using store = createMemoryAuthStore()
    await store.put('login', 'f', { value: { providers: ['corp'] }, ttlMs: MINUTE, family: 'f' })
    const away = Object.assign(Object.create(store) as AuthStore, {
      update: () => Promise.reject(new ThvError('store_unavailable', 'away')),
    })
    const logins = new FamilyLogins(away, systemClock)
    expect(isThvError(await logins.join('f', 'saas').catch((error: unknown) => error), 'store_unavailable')).toBe(true)
    expect(await logins.hasJoined('f', 'saas')).toBe(false)
  })

  it('of a family that has ended are not written again', async () => {
    await using store = createMemoryAuthStore()
    await store.put('login', 'f', { value: { providers: ['corp'] }, ttlMs: MINUTE, family: 'f' })
    await store.revokeFamily('f', MINUTE)
    await new FamilyLogins(store, systemClock).join('f', 'saas')
    expect(await store.get('login', 'f')).toBeUndefined()
  })
})
