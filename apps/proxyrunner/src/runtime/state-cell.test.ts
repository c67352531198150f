import { describe, expect, it, vi } from 'vitest'
import { createStateCell } from './state-cell.ts'

describe('createStateCell', () => {
  it('tells each listener of each change, and of nothing else', () => {
    const cell = createStateCell({ ready: false, message: 'a', generation: 0 }, () => expect.unreachable())
    const listener = vi.fn()
    const leave = cell.onChange(listener)
    cell.onChange(listener)
    cell.set({ message: 'a' })
    expect(listener).not.toHaveBeenCalled()
    cell.set({ ready: true })
    expect(listener).toHaveBeenCalledTimes(2)
    leave()
    cell.set({ generation: 1 })
    expect(listener).toHaveBeenCalledTimes(3)
    expect(cell.current).toEqual({ ready: true, message: 'a', generation: 1 })
  })

  it('goes on after a listener that throws', () => {
    const errors: unknown[] = []
    const cell = createStateCell({ ready: false, message: '', generation: 0 }, (error) => errors.push(error))
    const listener = vi.fn()
    cell.onChange(() => {
      throw new Error('no')
    })
    cell.onChange(listener)
    cell.set({ ready: true })
    expect(listener).toHaveBeenCalledOnce()
    expect(errors).toHaveLength(1)
  })
})
