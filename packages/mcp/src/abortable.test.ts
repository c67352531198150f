import { describe, expect, it } from 'vitest'
import { orAbort } from './abortable.ts'

describe('orAbort', () => {
  it('settles as the promise does, and leaves no listener behind', async () => {
    const controller = new AbortController()
    let listeners = 0
    const { signal } = controller
    const add = signal.addEventListener.bind(signal)
    const remove = signal.removeEventListener.bind(signal)
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners++
      add(...args)
    }
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners--
      remove(...args)
    }
    expect(await orAbort(Promise.resolve(1), signal)).toBe(1)
    await expect(orAbort(Promise.reject(new Error('no')), signal)).rejects.toThrow('no')
    await new Promise((resolve) => setImmediate(resolve))
    expect(listeners).toBe(0)
  })

  it('rejects when the signal aborts, or has', async () => {
    const controller = new AbortController()
    const pending = orAbort(new Promise(() => {}), controller.signal)
    controller.abort(new Error('enough'))
    await expect(pending).rejects.toThrow('enough')
    await expect(orAbort(new Promise(() => {}), controller.signal)).rejects.toThrow('enough')
  })
})
