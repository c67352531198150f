import { afterEach, describe, expect, it, vi } from 'vitest'
import { systemClock, TestClock } from './clock.ts'

describe('TestClock', () => {
  it('fires due timers in order of due time, then of creation, each at its own time', async () => {
    const clock = new TestClock(1_000)
    const fired: [string, number][] = []
    const note = (name: string) => () => void fired.push([name, clock.now()])
    clock.setTimer(30, note('late'))
    clock.setTimer(10, note('first'))
    clock.setTimer(20, note('a'))
    clock.setTimer(20, note('b'))
    clock.setTimer(31, note('never'))
    await clock.advance(30)
    expect(fired).toEqual([
      ['first', 1_010],
      ['a', 1_020],
      ['b', 1_020],
      ['late', 1_030],
    ])
    expect(clock.pending).toBe(1)
    expect(clock.monotonic()).toBe(30)
  })

  it('lets promise callbacks run in between, so that sleeps set by them fire too', async () => {
    const clock = new TestClock()
    const start = clock.now()
    const wokenAt: number[] = []
    const loop = (async () => {
      for (let i = 0; i < 3; i++) {
        await clock.sleep(10)
        await Promise.resolve().then(() => undefined)
        wokenAt.push(clock.now() - start)
      }
    })()
    await clock.advance(25)
    expect(wokenAt).toEqual([10, 20])
    await clock.advance(5)
    await loop
    expect(wokenAt).toEqual([10, 20, 30])
  })

  it('does not fire a cancelled timer', async () => {
    const clock = new TestClock()
    const fn = vi.fn()
    const timer = clock.setTimer(5, fn)
    timer.cancel()
    timer.cancel()
    await clock.advance(10)
    expect(fn).not.toHaveBeenCalled()
    expect(clock.pending).toBe(0)
  })

  it('rejects a sleep with the reason of its signal and forgets the timer', async () => {
    const clock = new TestClock()
    const controller = new AbortController()
    const reason = new Error('enough')
    const sleep = clock.sleep(1_000, controller.signal)
    expect(clock.pending).toBe(1)
    controller.abort(reason)
    await expect(sleep).rejects.toBe(reason)
    expect(clock.pending).toBe(0)
    await expect(clock.sleep(1_000, controller.signal)).rejects.toBe(reason)
    expect(clock.pending).toBe(0)
  })

  it('adds overlapping advances up and never goes back', async () => {
    const clock = new TestClock(0)
    await Promise.all([clock.advance(10), clock.advance(20)])
    expect(clock.now()).toBe(30)
  })

  it('moves the wall clock alone on a jump', async () => {
    const clock = new TestClock(5_000)
    const fn = vi.fn()
    clock.setTimer(10, fn)
    clock.jump(-3_000)
    await clock.advance(9)
    expect([clock.now(), clock.monotonic(), fn.mock.calls.length]).toEqual([2_009, 9, 0])
    await clock.advance(1)
    expect(fn).toHaveBeenCalledOnce()
  })

  it('fails instead of firing endlessly when a timer re-arms itself without delay', async () => {
    const clock = new TestClock(0, 1_000)
    const again = () => void clock.setTimer(0, again)
    again()
    await expect(clock.advance(1)).rejects.toThrow(/more than 1000 timers .*re-arms itself/)
  })

  it('refuses to go back, to the end of time, or to wait for NaN', async () => {
    const clock = new TestClock()
    await expect(clock.advance(-1)).rejects.toThrow(RangeError)
    await expect(clock.advance(Number.NaN)).rejects.toThrow(RangeError)
    await expect(clock.advance(Number.POSITIVE_INFINITY)).rejects.toThrow(RangeError)
    expect(() => clock.setTimer(Number.NaN, () => undefined)).toThrow(RangeError)
    await expect(clock.sleep(Number.NaN)).rejects.toThrow(RangeError)
  })
})

describe('systemClock', () => {
  afterEach(() => {
    vi.useRealTimers()
    vi.restoreAllMocks()
  })

  it('sleeps no shorter than asked', async () => {
    const before = systemClock.monotonic()
    await systemClock.sleep(15)
    expect(systemClock.monotonic() - before).toBeGreaterThanOrEqual(15)
  })

  it('rejects a sleep with the reason of its signal', async () => {
    const controller = new AbortController()
    const sleep = systemClock.sleep(60_000, controller.signal)
    controller.abort('stop')
    await expect(sleep).rejects.toBe('stop')
    await expect(systemClock.sleep(60_000, controller.signal)).rejects.toBe('stop')
  })

  it('leaves no listener on the signal of a sleep that is over', async () => {
    const { signal } = new AbortController()
    const add = vi.spyOn(signal, 'addEventListener')
    const remove = vi.spyOn(signal, 'removeEventListener')
    await systemClock.sleep(1, signal)
    expect(add).toHaveBeenCalledOnce()
    expect(remove.mock.calls[0]?.[1]).toBe(add.mock.calls[0]?.[1])
  })

  it('waits longer than the limit of a Node timer', async () => {
    vi.useFakeTimers()
    const fn = vi.fn()
    const days = 60 * 24 * 3_600_000
    systemClock.setTimer(days, fn)
    systemClock.setTimer(Number.POSITIVE_INFINITY, () => expect.unreachable('an endless timer fired'))
    await vi.advanceTimersByTimeAsync(days - 1)
    expect(fn).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1)
    expect(fn).toHaveBeenCalledOnce()
  })

  it('keeps the process alive for a sleep, not for a timer', () => {
    const handles: NodeJS.Timeout[] = []
    const real = globalThis.setTimeout
    vi.spyOn(globalThis, 'setTimeout').mockImplementation(((fn: () => void, ms: number) => {
      const handle = real(fn, ms)
      handles.push(handle)
      return handle
    }) as typeof setTimeout)
    const controller = new AbortController()
    const sleep = systemClock.sleep(60_000, controller.signal)
    const timer = systemClock.setTimer(60_000, () => undefined)
    expect(handles.map((handle) => handle.hasRef())).toEqual([true, false])
    timer.cancel()
    controller.abort()
    return expect(sleep).rejects.toThrow()
  })

  it('does not fire a cancelled timer', async () => {
    const fn = vi.fn()
    systemClock.setTimer(1, fn).cancel()
    await systemClock.sleep(10)
    expect(fn).not.toHaveBeenCalled()
  })
})
