import fc from 'fast-check'
import { expect, test } from 'vitest'
import { PlacedList } from './placed-list.ts'

test('holds what a Set would hold, whatever is added and deleted', () => {
  const steps = fc.array(fc.record({ which: fc.nat(9), isAdded: fc.boolean() }), { maxLength: 200 })
  fc.assert(
    fc.property(steps, (list) => {
      const items = Array.from({ length: 10 }, (_, id) => ({ id, place: -1 }))
      const placed = new PlacedList<(typeof items)[number]>()
      const set = new Set<(typeof items)[number]>()
      for (const { which, isAdded } of list) {
        const item = items[which]
        if (item === undefined) continue
        if (!isAdded) placed.delete(item)
        else if (!set.has(item)) placed.add(item)
        if (isAdded) set.add(item)
        else set.delete(item)
        expect(placed.size).toBe(set.size)
        expect(new Set(placed)).toEqual(set)
        for (const each of items) expect(each.place >= 0).toBe(set.has(each))
      }
    }),
  )
})

test('is empty after it was cleared, and deletes nothing that came later', () => {
  const list = new PlacedList<{ place: number }>()
  const [before, after] = [{ place: -1 }, { place: -1 }]
  list.add(before)
  list.clear()
  expect(list.size).toBe(0)
  list.add(after)
  list.delete(before)
  expect([...list]).toEqual([after])
})
