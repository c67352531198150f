import { TestClock } from '@thv/kernel/clock'
import { expect, test } from 'vitest'
import { FakeApi, things, unreachable } from '../testing/fake-api.ts'
import { createSharedCaches } from './shared-caches.ts'

test('one reflector per kind, scope and view, started by the first who asks', async () => {
  const api = new FakeApi()
  const clock = new TestClock()
  const caches = createSharedCaches(api, { clock })
  await clock.advance(0)
  expect(api.calls).toEqual([])
  const all = caches.of(things)
  expect(caches.of(things, {})).toBe(all)
  expect(caches.of(things, { namespace: 'x' })).not.toBe(all)
  const labelled = caches.of(things, { labelSelector: 'a=b' })
  expect(labelled).not.toBe(all)
  expect(caches.of(things, { labelSelector: { matchLabels: { a: 'b' } } })).toBe(labelled)
  expect(caches.of(things, { fieldSelector: 'metadata.name=x' })).not.toBe(all)
  const metadata = caches.metadataOf(things)
  expect(metadata).not.toBe(all)
  expect(caches.all).toHaveLength(5)
  api.put('a', 1)
  await caches.waitForSync()
  await clock.advance(0)
  expect(api.listCalls()).toHaveLength(5)
  expect(all.store.get({ namespace: 'ns', name: 'a' })?.spec).toEqual({ value: 1 })
  expect(metadata.store.get({ namespace: 'ns', name: 'a' })).not.toHaveProperty('spec')
  await caches.close()
  expect(api.openWatches).toBe(0)
  expect(clock.pending).toBe(0)
  expect(() => caches.of(things)).toThrow('closed')
})

test('errors say which cache they concern; waiting can be given up', async () => {
  const api = new FakeApi()
  api.listErrors.push(unreachable())
  const clock = new TestClock()
  const errors: unknown[] = []
  const caches = createSharedCaches(api, { clock, onError: (_error, context) => errors.push(context) })
  caches.of(things, { namespace: 'x' })
  await clock.advance(0)
  expect(errors).toEqual([{ cache: 'things in x', phase: 'list' }])
  const impatient = new AbortController()
  const waiting = caches.waitForSync(impatient.signal)
  impatient.abort(new Error('tired'))
  await expect(waiting).rejects.toThrow('tired')
  await caches.close()
})
