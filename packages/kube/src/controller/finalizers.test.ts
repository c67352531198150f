import { TestClock } from '@thv/kernel/clock'
import { describe, expect, test } from 'vitest'
import type { ObjectMeta } from '../objects/types.ts'
import { OneObjectApi, refusal, type Widget, widgets } from '../testing/one-object-api.ts'
import { addFinalizer, dropFinalizer, ensureFinalizer, hasFinalizer, removeFinalizer } from './finalizers.ts'

const name = 'example.com/mine'
const widget = (extra: Partial<ObjectMeta> = {}): Widget => ({
  metadata: { name: 'w', namespace: 'ns', uid: 'u', resourceVersion: '10', ...extra },
})

/** Lets the clock run while the work waits. */
async function withClock<R>(work: (clock: TestClock) => Promise<R>): Promise<R> {
  const clock = new TestClock()
  const result = work(clock)
  result.catch(() => {}) // seen by the caller below
  for (let n = 0; n < 50; n++) await clock.advance(1_000)
  return await result
}

describe('patches', () => {
  test('a first finalizer is tied to the resourceVersion, a further one to the list', () => {
    expect(addFinalizer(widget(), name)).toEqual([
      { op: 'test', path: '/metadata/resourceVersion', value: '10' },
      { op: 'add', path: '/metadata/finalizers', value: [name] },
    ])
    expect(addFinalizer(widget({ finalizers: ['x'] }), name)).toEqual([
      { op: 'test', path: '/metadata/finalizers', value: ['x'] },
      { op: 'add', path: '/metadata/finalizers/-', value: name },
    ])
    expect(addFinalizer(widget({ finalizers: [name] }), name)).toBeUndefined()
  })

  test('only the one that is there is removed', () => {
    expect(removeFinalizer(widget({ finalizers: ['x', name] }), name)).toEqual([
      { op: 'test', path: '/metadata/finalizers', value: ['x', name] },
      { op: 'remove', path: '/metadata/finalizers/1' },
    ])
    expect(removeFinalizer(widget({ finalizers: ['x'] }), name)).toBeUndefined()
    expect(removeFinalizer(widget(), name)).toBeUndefined()
    expect(hasFinalizer(widget({ finalizers: [name] }), name)).toBe(true)
    expect(hasFinalizer(widget(), name)).toBe(false)
  })
})

describe('ensureFinalizer and dropFinalizer', () => {
  test('one request when the given object is current, none when there is nothing to do', async () => {
    const api = new OneObjectApi(widget())
    const added = await ensureFinalizer(api.client, { type: widgets, object: widget(), name })
    expect(added?.metadata.finalizers).toEqual([name])
    expect(api).toMatchObject({ gets: 0, patches: { length: 1 } })
    await ensureFinalizer(api.client, { type: widgets, object: added ?? widget(), name })
    expect(api.patches).toHaveLength(1)
    const dropped = await dropFinalizer(api.client, { type: widgets, object: added ?? widget(), name })
    expect(dropped?.metadata.finalizers).toEqual([])
  })

  test('edits of others meanwhile are kept', async () => {
    const api = new OneObjectApi(widget())
    api.meanwhile = (attempt) => {
      if (attempt <= 3) api.edit(({ metadata }) => (metadata.finalizers = [...(metadata.finalizers ?? []), `other/${attempt}`]))
    }
    const added = await withClock((clock) => ensureFinalizer(api.client, { type: widgets, object: widget(), name }, { clock }))
    expect(added?.metadata.finalizers).toEqual(['other/1', 'other/2', 'other/3', name])
    const dropped = await withClock((clock) =>
      dropFinalizer(api.client, { type: widgets, object: widget({ finalizers: [name] }), name }, { clock }),
    )
    expect(dropped?.metadata.finalizers).toEqual(['other/1', 'other/2', 'other/3'])
  })

  test('gives up after a number of tries', async () => {
    const api = new OneObjectApi(widget())
    api.meanwhile = (attempt) => api.edit(({ metadata }) => (metadata.finalizers = [`other/${attempt}`]))
    const work = withClock((clock) => ensureFinalizer(api.client, { type: widgets, object: widget(), name }, { clock, maxAttempts: 4 }))
    await expect(work).rejects.toMatchObject({ status: 422 })
    expect(api.patches).toHaveLength(4)
  })

  test('the same patch refused twice on fresh state is no race: the error comes at once', async () => {
    const api = new OneObjectApi(widget())
    api.meanwhile = () => {
      throw refusal(422, 'Invalid')
    }
    await expect(
      withClock((clock) => ensureFinalizer(api.client, { type: widgets, object: widget(), name }, { clock })),
    ).rejects.toMatchObject({ status: 422 })
    expect(api.patches).toHaveLength(2)
  })

  test('other errors are thrown as they are', async () => {
    const api = new OneObjectApi(widget())
    api.meanwhile = () => {
      throw refusal(403, 'Forbidden')
    }
    await expect(ensureFinalizer(api.client, { type: widgets, object: widget(), name })).rejects.toMatchObject({ status: 403 })
    expect(api.patches).toHaveLength(1)
  })

  test('an object that is gone, or was replaced under its name, is not touched', async () => {
    const api = new OneObjectApi(undefined)
    expect(await dropFinalizer(api.client, { type: widgets, object: widget({ finalizers: [name] }), name })).toBeUndefined()
    const replaced = new OneObjectApi(widget({ uid: 'another', resourceVersion: '99' }))
    const result = await withClock((clock) => ensureFinalizer(replaced.client, { type: widgets, object: widget(), name }, { clock }))
    expect(result).toBeUndefined()
    expect(replaced.object?.metadata.finalizers).toBeUndefined()
  })

  test('an object that is being deleted takes none', async () => {
    const api = new OneObjectApi(widget())
    const object = widget({ deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['x'] })
    expect(await ensureFinalizer(api.client, { type: widgets, object, name })).toBe(object)
    expect(api.patches).toEqual([])
  })
})
