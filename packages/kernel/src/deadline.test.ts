import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { abortable } from './deadline.ts'

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

it('hands a result that comes after the abort to its taker', async () => {
  const stop = new AbortController()
  const work = Promise.withResolvers<string>()
  const late = Promise.withResolvers<string>()
  const waiting = abortable(work.promise, stop.signal, late.resolve)
  stop.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
  work.resolve('a connection')
  expect(await late.promise).toBe('a connection')
})
