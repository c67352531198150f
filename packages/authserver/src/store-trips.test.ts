import type { AuthStore } from '@thv/store/auth/auth-store'
import { createMemoryAuthStore } from '@thv/store/auth/memory-auth-store'
import { expect, it } from 'vitest'
import { startTestAuthServer } from './testing/test-auth-server.ts'

/** Each operation of the store is one script, so one round trip to Redis; an update reads before. */
function counting(store: AuthStore): { readonly store: AuthStore; trips: number } {
  const counted = {
    trips: 0,
    store: new Proxy(store, {
      get(target, name, receiver) {
        const member: unknown = Reflect.get(target, name, receiver)
        if (typeof member !== 'function' || typeof name === 'symbol' || name === 'observeRevocations') return member
        return (...args: unknown[]) => {
          counted.trips += name === 'update' ? 2 : 1
          return (member as (...all: unknown[]) => unknown).apply(target, args)
        }
      },
    }),
  }
  return counted
}

it('takes at most 24 round trips for a login and 6 for a refresh', async () => {
  const counted = counting(createMemoryAuthStore())
  await using server = await startTestAuthServer({ store: counted.store })
  const client = await server.client()
  counted.trips = 0
  const { body } = await server.tokens(client)
  expect(counted.trips).toBeGreaterThan(5)
  expect(counted.trips).toBeLessThanOrEqual(24)
  counted.trips = 0
  const refreshed = await server.token({ grant_type: 'refresh_token', refresh_token: body['refresh_token'] ?? '', client_id: client })
  expect(refreshed.status).toBe(200)
  expect(counted.trips).toBeGreaterThan(1)
  expect(counted.trips).toBeLessThanOrEqual(6)
})
