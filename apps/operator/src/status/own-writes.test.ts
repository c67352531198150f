import { configMaps, type KubeObject } from '@thv/kube'
import { describe, expect, it, vi } from 'vitest'
import { noteOwnWrite, withOwnWrites } from './own-writes.ts'

const signal = new AbortController().signal
const at = (resourceVersion: string, uid = 'u') => ({ metadata: { name: 'a', namespace: 'b', uid, resourceVersion } })

function serving(object: KubeObject | undefined) {
  const tryGet = vi.fn(async () => object)
  return { tryGet: tryGet as never, calls: tryGet }
}

describe('own writes', () => {
  it('the cache is good enough while nothing was written, and when it has seen it', async () => {
    const client = serving(at('9'))
    expect(await withOwnWrites(client, { type: configMaps, cached: at('5') }, signal)).toEqual(at('5'))
    noteOwnWrite(client, at('6'))
    expect(await withOwnWrites(client, { type: configMaps, cached: at('6') }, signal)).toEqual(at('6'))
    expect(await withOwnWrites(client, { type: configMaps, cached: at('5') }, signal)).toEqual(at('5')) // no longer noted
    expect(client.calls).not.toHaveBeenCalled()
  })

  it('the server is asked while the cache is behind', async () => {
    const client = serving(at('12'))
    noteOwnWrite(client, at('10'))
    expect(await withOwnWrites(client, { type: configMaps, cached: at('9') }, signal)).toEqual(at('12'))
    expect(await withOwnWrites(client, { type: configMaps, cached: at('9', 'other') }, signal)).toEqual(at('9', 'other'))
  })

  it.each([undefined, at('12', 'another')])('what is gone is not written to: %j', async (live) => {
    const client = serving(live)
    noteOwnWrite(client, at('10'))
    expect(await withOwnWrites(client, { type: configMaps, cached: at('9') }, signal)).toBeUndefined()
  })
})
