import { TestClock } from '@thv/kernel/clock'
import { expect, it } from 'vitest'
import { Debounce } from './debounce.ts'

function debounce(windowMs: number) {
  const clock = new TestClock()
  let fired = 0
  const one = new Debounce({ clock, windowMs, fire: () => fired++ })
  return { clock, one, fired: () => fired }
}

it.each([500, 1_000, 2_000])(
  'changes within a window of %d ms fire once, a window after the last [001-082] [001-086] [001-121]',
  async (windowMs) => {
    const { clock, one, fired } = debounce(windowMs)
    for (let i = 0; i < 3; i += 1) {
      one.change()
      await clock.advance(windowMs / 2)
    }
    expect(fired()).toBe(0)
    await clock.advance(windowMs / 2)
    expect(fired()).toBe(1)
    await clock.advance(windowMs * 10)
    expect(fired()).toBe(1)
    one.change()
    await clock.advance(windowMs)
    expect(fired()).toBe(2)
  },
)

it('fires at most five windows after the first change of a storm', async () => {
  const { clock, one, fired } = debounce(1_000)
  for (let i = 0; i < 100; i += 1) {
    one.change()
    await clock.advance(100)
  }
  expect(fired()).toBe(2)
})

it('does not fire after it is closed', async () => {
  const { clock, one, fired } = debounce(1_000)
  one.change()
  one.close()
  await clock.advance(10_000)
  expect(fired()).toBe(0)
})
