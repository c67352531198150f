import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createArenaWriter } from './arena.ts'
import { FIELD_END } from './snapshot-data.ts'
import { createTextFinder } from './text-finder.ts'

describe('the text finder', () => {
  it('finds the next item as a look at each field of each does, never across two fields', () => {
    const field = fc.string({ unit: fc.constantFrom('a', 'b', ' ', 'é', '\u{1f4e6}'), maxLength: 6 })
    const item = fc.array(field, { minLength: 1, maxLength: 3 })
    fc.assert(
      fc.property(
        fc.array(item, { maxLength: 20 }),
        field,
        fc.nat(20),
        fc.integer({ min: 1, max: 40 }),
        (items, needle, from, segmentBytes) => {
          fc.pre(needle !== '')
          const writer = createArenaWriter({ count: items.length, end: FIELD_END, segmentBytes })
          for (const fields of items) writer.append(...fields)
          const naive = items.findIndex((fields, i) => i >= from && fields.some((text) => text.includes(needle)))
          expect(createTextFinder(writer.finish()).next(Buffer.from(needle), from)).toBe(naive)
        },
      ),
      { numRuns: 500 },
    )
  })
})
