import { describe, expect, it } from 'vitest'
import { createSlots } from './slots.ts'

describe('createSlots', () => {
  it('runs no more than its number at a time, and groups take turns', async () => {
    const slots = createSlots(2)
    const order: string[] = []
    let running = 0
    let most = 0
    const work = (group: string, name: string) =>
      slots.use(group, async () => {
        running += 1
        most = Math.max(most, running)
        order.push(name)
        await new Promise((resolve) => setImmediate(resolve))
        running -= 1
      })
    const many = Array.from({ length: 6 }, (_, i) => work('busy', `busy-${i}`))
    await Promise.all([...many, work('quiet', 'quiet-0'), work('other', 'other-0')])
    expect(most).toBe(2)
    expect(order).toHaveLength(8)
    // Two of the busy namespace began before the others came, and one was ahead of them; the rest waits for its turn.
    expect(order.indexOf('quiet-0')).toBeLessThanOrEqual(4)
    expect(order.indexOf('other-0')).toBeLessThanOrEqual(4)
    expect(order.filter((name) => name.startsWith('busy'))).toEqual(['busy-0', 'busy-1', 'busy-2', 'busy-3', 'busy-4', 'busy-5'])
  })

  it('gives the slot back when the work fails', async () => {
    const slots = createSlots(1)
    await expect(slots.use('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(await slots.use('b', async () => 'yes')).toBe('yes')
  })
})
