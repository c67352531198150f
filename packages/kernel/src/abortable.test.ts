import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { abortable } from './abortable.ts'

describe('abortable', () => {
  it('gives what the work gives, and leaves no listener behind', async () => {
    const { signal } = new AbortController()
    expect(await abortable(Promise.resolve(7), signal)).toBe(7)
    await expect(abortable(Promise.reject(new Error('no')), signal)).rejects.toThrow('no')
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('ends with the reason of the signal, whatever becomes of the work', async () => {
    const stop = new AbortController()
    const work = Promise.withResolvers<number>()
    const waiting = abortable(work.promise, stop.signal)
    stop.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    await expect(abortable(work.promise, stop.signal)).rejects.toThrow('enough')
    work.reject(new Error('reported to no caller'))
  })
})
