import { TestClock } from '@thv/kernel/clock'
import { expect, it } from 'vitest'
import { describeAuthStore } from '../testing/auth-store-contract.ts'
import { createMemoryAuthStore } from './memory-auth-store.ts'

describeAuthStore('memory', async () => {
  const clock = new TestClock()
  return { store: createMemoryAuthStore({ clock }), passed: (ms) => clock.advance(ms) }
})

it('has no room beyond its limits, and room again when records expire', async () => {
  const clock = new TestClock()
  const store = createMemoryAuthStore({ clock, maxRecords: 3, maxPending: 1 })
  await store.put('pending', 'a', { value: {}, ttlMs: 1_000 })
  await expect(store.put('pending', 'b', { value: {}, ttlMs: 1_000 })).rejects.toMatchObject({ code: 'store_unavailable' })
  await store.put('grant', 'a', { value: {}, ttlMs: 1_000 })
  await store.put('grant', 'b', { value: {}, ttlMs: 1_000 })
  await expect(store.addOnce('replay', 'c', 1_000)).rejects.toMatchObject({ code: 'store_unavailable' })
  await clock.advance(1_001)
  await store.put('pending', 'b', { value: {}, ttlMs: 1_000 })
  expect(await store.get('pending', 'b')).toBeDefined()
})
