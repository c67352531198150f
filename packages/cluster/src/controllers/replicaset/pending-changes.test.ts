import { TestClock } from '@thv/kernel/clock'
import { ObjectStore, type Pod } from '@thv/kube'
import { describe, expect, it } from 'vitest'
import { createPendingChanges } from './pending-changes.ts'

const OWNER = 'ns/web'

function pod(uid: string, resourceVersion: string, deletionTimestamp?: string): Pod {
  return { metadata: { namespace: 'ns', name: 'web-1', uid, resourceVersion, ...(deletionTimestamp && { deletionTimestamp }) } }
}

function setUp() {
  const store = new ObjectStore<Pod>()
  const stats = { resourceVersion: '10' as string | undefined }
  const clock = new TestClock()
  return { store, stats, clock, pending: createPendingChanges({ store, stats: stats as never }, clock) }
}

describe('changes that a cache may not know', () => {
  it('a created pod is waited for until it is there', () => {
    const { store, pending } = setUp()
    pending.created(OWNER, pod('a', '11'))
    expect(pending.settled(OWNER)).toBe(false)
    store.set(pod('another', '9'))
    expect(pending.settled(OWNER)).toBe(false)
    store.set(pod('a', '11'))
    expect(pending.settled(OWNER)).toBe(true)
  })

  it('a created pod that is gone again is not waited for', () => {
    const { stats, pending } = setUp()
    pending.created(OWNER, pod('a', '11'))
    stats.resourceVersion = undefined // a list is under way
    expect(pending.settled(OWNER)).toBe(false)
    stats.resourceVersion = '12'
    expect(pending.settled(OWNER)).toBe(true)
  })

  it('a deleted pod is waited for until it goes, is gone, or is another one', () => {
    const { store, pending } = setUp()
    store.set(pod('a', '9'))
    pending.deleted(OWNER, pod('a', '9'))
    expect(pending.settled(OWNER)).toBe(false)
    store.set(pod('a', '11', '2026-01-01T00:00:00Z'))
    expect(pending.settled(OWNER)).toBe(true)
    pending.deleted(OWNER, pod('a', '9'))
    store.set(pod('b', '12'))
    expect(pending.settled(OWNER)).toBe(true)
  })

  it('every wait ends, and one owner does not wait for another', async () => {
    const { clock, pending } = setUp()
    pending.created(OWNER, pod('a', '11'))
    expect(pending.settled('ns/other')).toBe(true)
    await clock.advance(5 * 60_000 - 1_000)
    expect(pending.settled(OWNER)).toBe(false)
    await clock.advance(2_000)
    expect(pending.settled(OWNER)).toBe(true)
  })

  it('an owner that is gone is forgotten', () => {
    const { pending } = setUp()
    pending.created(OWNER, pod('a', '11'))
    pending.forget(OWNER)
    expect(pending.settled(OWNER)).toBe(true)
  })
})
