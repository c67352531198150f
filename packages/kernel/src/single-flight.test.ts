import { describe, expect, it, vi } from 'vitest'
import { createSingleFlight } from './single-flight.ts'

describe('createSingleFlight', () => {
  it('gives concurrent callers of one key the same promise and runs once', async () => {
    const flight = createSingleFlight<string, number>()
    const { promise, resolve } = Promise.withResolvers<number>()
    const fn = vi.fn(() => promise)
    const first = flight.run('k', fn)
    const second = flight.run('k', () => expect.unreachable('a second flight started'))
    expect(second).toBe(first)
    expect(flight.size).toBe(1)
    resolve(7)
    await expect(Promise.all([first, second])).resolves.toEqual([7, 7])
    expect(fn).toHaveBeenCalledOnce()
    expect(flight.size).toBe(0)
  })

  it('keeps keys apart', async () => {
    const flight = createSingleFlight<string, string>()
    const both = [flight.run('a', async () => 'A'), flight.run('b', async () => 'B')]
    expect(flight.size).toBe(2)
    await expect(Promise.all(both)).resolves.toEqual(['A', 'B'])
  })

  it('shares an error and does not keep it', async () => {
    const flight = createSingleFlight<string, number>()
    const error = new Error('down')
    const callers = [flight.run('k', () => Promise.reject(error)), flight.run('k', async () => 1)]
    for (const outcome of await Promise.allSettled(callers)) expect(outcome).toEqual({ status: 'rejected', reason: error })
    await expect(flight.run('k', async () => 2)).resolves.toBe(2)
  })

  it('frees the key before its callers go on, so that they can start again', async () => {
    const flight = createSingleFlight<string, number>()
    let runs = 0
    const again = flight.run('k', async () => ++runs).then(() => flight.run('k', async () => ++runs))
    await expect(again).resolves.toBe(2)
  })

  it('turns a synchronous throw into a rejection and frees the key', async () => {
    const flight = createSingleFlight<string, number>()
    const run = flight.run('k', () => {
      throw new Error('at once')
    })
    await expect(run).rejects.toThrow('at once')
    expect(flight.size).toBe(0)
  })

  it('joins a call for the same key from inside the function', async () => {
    const flight = createSingleFlight<string, number>()
    let inner: Promise<number> | undefined
    const outer = flight.run('k', async () => {
      inner = flight.run('k', () => expect.unreachable('recursed'))
      return 3
    })
    expect(inner).toBe(outer)
    await expect(outer).resolves.toBe(3)
  })

  it('takes a key with the value undefined for a key', async () => {
    const flight = createSingleFlight<undefined, undefined>()
    const first = flight.run(undefined, async () => undefined)
    expect(flight.run(undefined, async () => undefined)).toBe(first)
    await first
  })
})
