import { TestClock } from '@thv/kernel/clock'
import { jsonEqual } from '@thv/kernel/json'
import { describe, expect, test } from 'vitest'
import { OneObjectApi, refusal, type Widget, widgets } from '../testing/one-object-api.ts'
import { writeStatus } from './status-writer.ts'

const key = { namespace: 'ns', name: 'w' }
const widget = (status?: Record<string, unknown>): Widget => ({
  metadata: { ...key, uid: 'u', resourceVersion: '10' },
  ...(status === undefined ? {} : { status }),
})

async function write(
  api: OneObjectApi,
  mutate: (current: Widget) => object | undefined,
  extra: { cached?: Widget; maxAttempts?: number; reads?: readonly string[] } = {},
) {
  const clock = new TestClock()
  const { cached, maxAttempts, reads } = extra
  const result = writeStatus(api.client, { type: widgets, key, cached }, { mutate, clock, maxAttempts, reads })
  result.catch(() => {}) // seen by the caller below
  for (let n = 0; n < 20; n++) await clock.advance(1_000)
  return await result
}

describe('writeStatus', () => {
  test('one write to the status, tied to the version it was computed from', async () => {
    const api = new OneObjectApi(widget())
    const result = await write(api, () => ({ phase: 'Ready' }))
    expect(result).toMatchObject({ written: true, object: { status: { phase: 'Ready' } } })
    expect(api.gets).toBe(1)
    expect(api.patches).toEqual([
      {
        subresource: 'status',
        ops: [
          { op: 'replace', path: '/metadata/resourceVersion', value: '10' },
          { op: 'add', path: '/status', value: { phase: 'Ready' } },
        ],
      },
    ])
  })

  test('no write when nothing would change', async () => {
    const api = new OneObjectApi(widget({ phase: 'Ready', list: [{ a: 1, b: 2 }] }))
    expect(await write(api, () => ({ list: [{ b: 2, a: 1, c: undefined }], phase: 'Ready' }))).toMatchObject({ written: false })
    expect(await write(api, () => undefined)).toMatchObject({ written: false, object: { metadata: { name: 'w' } } })
    expect(api.patches).toEqual([])
  })

  test('another object that has the name by now is left alone', async () => {
    const api = new OneObjectApi({ ...widget(), metadata: { ...key, uid: 'other', resourceVersion: '20' } })
    expect(await write(api, () => ({ phase: 'Ready' }), { cached: widget() })).toEqual({ written: false, object: undefined })
    expect(api.object).not.toHaveProperty('status')
  })

  test('an object from a cache saves the read; when it is stale the status is computed again', async () => {
    const api = new OneObjectApi(widget())
    api.edit((object) => {
      object.status = { n: 1 } // by somebody else
    })
    const seen: unknown[] = []
    const result = await write(
      api,
      (current) => {
        seen.push(current.status)
        return { n: Number(current.status?.n ?? 0) + 1 }
      },
      { cached: widget() },
    )
    expect(seen).toEqual([undefined, { n: 1 }])
    expect(result.object?.status).toEqual({ n: 2 })
    expect(api.gets).toBe(1)
  })

  test('a status that goes back before the cache has seen our last write is written all the same', async () => {
    const api = new OneObjectApi(widget({ ready: true }))
    const cached = widget({ ready: true })
    await write(api, () => ({ ready: false }), { cached })
    const back = await write(api, () => ({ ready: true }), { cached })
    expect(back).toMatchObject({ written: true, before: { status: { ready: false } } })
    expect(api.object?.status).toEqual({ ready: true })
    expect(api.gets).toBe(0)
  })

  test('conflicts are tried again a number of times', async () => {
    const api = new OneObjectApi(widget({ n: 0 }))
    api.meanwhile = (attempt) => {
      if (attempt <= 3) api.edit((object) => (object.status = { n: attempt * 10 }))
    }
    const result = await write(api, (current) => ({ n: Number(current.status?.n) + 1 }))
    expect(result.object?.status).toEqual({ n: 31 })
    api.meanwhile = () => api.edit(() => {})
    await expect(write(api, () => ({ n: -1 }), { maxAttempts: 3 })).rejects.toMatchObject({ status: 409 })
    expect(api.patches).toHaveLength(4 + 3)
  })

  describe('that looks at some members only', () => {
    const told = (current: Widget) => ({ message: 'ours', list: [...((current.status?.['list'] ?? []) as string[]), 'ours'] })

    test('is written although somebody writes the others all the time', async () => {
      const api = new OneObjectApi(widget({ message: 'old', list: ['theirs'] }))
      api.meanwhile = (attempt) => api.edit((object) => (object.status = { ...object.status, message: `storm ${attempt}` }))
      const { written } = await write(api, told, { reads: ['list'], maxAttempts: 2 })
      expect(written).toBe(true)
      expect(api.object?.status).toEqual({ message: 'ours', list: ['theirs', 'ours'] })
    })

    test('is computed again when one of those has changed', async () => {
      const api = new OneObjectApi(widget({ list: ['theirs'] }))
      api.meanwhile = (attempt) => {
        if (attempt <= 2) api.edit((object) => (object.status = { list: [`theirs ${attempt}`] }))
      }
      await write(api, told, { reads: ['list'] })
      expect(api.object?.status).toEqual({ message: 'ours', list: ['theirs 2', 'ours'] })
      expect(api.patches).toHaveLength(3)
    })

    test('is not written into another object that has the name by now', async () => {
      const api = new OneObjectApi(widget({ list: [] }))
      api.meanwhile = (attempt) => api.edit((object) => (object.metadata.uid = attempt === 1 ? 'u' : 'other'))
      expect(await write(api, told, { reads: ['list'], cached: widget({ list: [] }) })).toEqual({ written: false, object: undefined })
      expect(api.object?.status).toEqual({ list: [] })
    })

    test('counts on the version where there is nothing to compare', async () => {
      const api = new OneObjectApi(widget())
      api.meanwhile = (attempt) => {
        if (attempt === 2) api.edit((object) => (object.status = { list: ['theirs'] }))
        else api.edit(() => {})
      }
      await write(api, told, { reads: ['list'] })
      expect(api.object?.status).toEqual({ message: 'ours', list: ['theirs', 'ours'] })
    })

    test('that the server finds invalid is refused, not tried again and again', async () => {
      const api = new OneObjectApi(widget({ list: [] }))
      api.meanwhile = (attempt) => {
        if (attempt === 1) throw refusal(409, 'Conflict')
        throw refusal(422, 'Invalid')
      }
      await expect(write(api, told, { reads: ['list'] })).rejects.toMatchObject({ status: 422 })
      expect(api.patches).toHaveLength(3)
    })
  })

  test('a conflict after which the status is already as wanted needs no further write', async () => {
    const api = new OneObjectApi(widget())
    api.meanwhile = () => api.edit((object) => (object.status = { phase: 'Ready' }))
    expect(await write(api, () => ({ phase: 'Ready' }))).toMatchObject({ written: false })
    expect(api.patches).toHaveLength(1)
  })

  test('an object that is gone, before or meanwhile, is no error; other refusals are', async () => {
    expect(await write(new OneObjectApi(undefined), () => ({}))).toEqual({ written: false, object: undefined })
    const api = new OneObjectApi(widget())
    api.meanwhile = () => {
      api.object = undefined
    }
    expect(await write(api, () => ({}))).toEqual({ written: false, object: undefined })
    const strict = new OneObjectApi(widget())
    strict.meanwhile = () => {
      throw refusal(422, 'Invalid')
    }
    await expect(write(strict, () => ({}))).rejects.toMatchObject({ status: 422 })
    expect(strict.patches).toHaveLength(1)
  })
})

test.each([
  [{ a: 1, b: undefined }, { a: 1 }, true],
  [{ a: undefined }, { b: undefined }, true],
  [{ a: 1 }, { b: 1 }, false],
  [{ a: null }, {}, false],
  [[1, 2], [2, 1], false],
  [[1], { 0: 1 }, false],
  [{ a: [{ b: 'x' }] }, { a: [{ b: 'x' }] }, true],
  ['1', 1, false],
  [null, undefined, false],
])('jsonEqual(%j, %j) is %j', (a, b, expected) => {
  expect(jsonEqual(a, b)).toBe(expected)
  expect(jsonEqual(b, a)).toBe(expected)
})
