import { TestClock } from '@thv/kernel/clock'
import { expect, it } from 'vitest'
import { describeAuthStore } from '../testing/auth-store-contract.ts'
import type { AuthRecordKind } from './auth-store.ts'
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

it('ends all records of a family: those that have its name, one other, and several', async () => {
  const store = createMemoryAuthStore({ clock: new TestClock() })
  const put = (kind: AuthRecordKind, id: string, family: string) => store.put(kind, id, { value: { id }, ttlMs: 60_000, family })
  const counts: Readonly<Record<string, number>> = { none: 0, one: 1, three: 3 }
  for (const [family, count] of Object.entries(counts)) {
    for (const kind of ['grant', 'login'] as const) await put(kind, family, family)
    for (let i = 0; i < count; i++) await put('refresh', `${family}-${i}`, family)
  }
  await store.remove('refresh', 'three-1')
  await put('grant', 'other', 'other')
  await store.put('refresh', 'one', { value: {}, ttlMs: 60_000 }) // has the name of a family, and is not of it
  for (const [family, count] of Object.entries(counts)) {
    await store.revokeFamily(family, 60_000)
    for (const kind of ['grant', 'login'] as const) expect(await store.get(kind, family)).toBeUndefined()
    for (let i = 0; i < count; i++) expect(await store.get('refresh', `${family}-${i}`)).toBeUndefined()
  }
  expect(await store.get('grant', 'other')).toBeDefined()
  expect(await store.get('refresh', 'one')).toBeDefined()
})

it('keeps a copy of a value, and gives one', async () => {
  const store = createMemoryAuthStore({ clock: new TestClock() })
  const value = { list: ['a'] }
  await store.put('grant', 'x', { value, ttlMs: 60_000 })
  value.list.push('b')
  const read = await store.get('grant', 'x')
  Object.assign(read?.value ?? {}, { list: ['c'] })
  expect((await store.get('grant', 'x'))?.value).toEqual({ list: ['a'] })
})
