import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Fifo, type FifoEntry } from './fifo.ts'

type Step = { op: 'push'; value: number } | { op: 'shift' } | { op: 'remove'; index: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ op: fc.constant('push' as const), value: fc.integer() }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('shift' as const) }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('remove' as const), index: fc.nat(30) }) },
)

describe('Fifo', () => {
  it('does what an array does', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const fifo = new Fifo<number>()
        const all: FifoEntry<number>[] = []
        let model: FifoEntry<number>[] = []
        for (const s of steps) {
          if (s.op === 'push') {
            const entry = fifo.push(s.value)
            all.push(entry)
            model.push(entry)
          } else if (s.op === 'shift') {
            expect(fifo.shift()).toBe(model.shift())
          } else {
            const entry = all[s.index]
            if (!entry) continue
            expect(fifo.remove(entry)).toBe(model.includes(entry))
            model = model.filter((other) => other !== entry)
          }
          expect(fifo.size).toBe(model.length)
        }
        for (const entry of model) expect(fifo.shift()?.value).toBe(entry.value)
        expect(fifo.shift()).toBeUndefined()
      }),
    )
  })
})
