import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Arena, createArenaWriter } from './arena.ts'

const END = 0xff

/** The bytes of each item, and the end byte behind it. */
function itemsOf({ segments, segmentOf, offset, length }: Arena): string[] {
  return Array.from(segmentOf, (segment, item) => {
    const bytes = segments[segment] ?? new Uint8Array()
    const [from = 0, size = 0] = [offset[item], length[item]]
    expect(bytes[from + size]).toBe(END)
    return Buffer.from(bytes.subarray(from, from + size)).toString('latin1')
  })
}

const latin1 = (...parts: readonly string[]) => parts.map((part) => Buffer.from(part).toString('latin1')).join('\u00ff')

describe('an arena', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', 'é', '\u{1f4e6}', '\ud800'), maxLength: 12 })
  /** Texts one behind the other, each with its end byte, as another arena has them. */
  const source = fc.array(text, { minLength: 1, maxLength: 6 }).map((texts) => {
    const parts = texts.map((each) => Buffer.from(each))
    const bytes = new Uint8Array(Buffer.concat(parts.flatMap((part) => [part, Buffer.of(END)])))
    let at = 0
    const spans = parts.map(({ length }) => {
      const span = { from: at, length }
      at += length + 1
      return span
    })
    return { texts, bytes, spans }
  })
  const own = fc.record({ parts: fc.array(text, { minLength: 1, maxLength: 3 }) })
  const copied = fc.record({ source: fc.nat(2), item: fc.nat(5) })

  it('holds what was appended, whether written or copied, in any order and with segments of any size', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(own, copied), { maxLength: 30 }),
        fc.tuple(source, source, source),
        fc.integer({ min: 1, max: 60 }),
        (steps, sources, segmentBytes) => {
          const writer = createArenaWriter({ count: steps.length, end: END, segmentBytes })
          const expected = steps.map((step) => {
            if ('parts' in step) {
              const bytes = writer.append(...step.parts)
              expect(bytes).toBe(latin1(...step.parts).length + 1)
              return latin1(...step.parts)
            }
            const { texts, bytes, spans } = sources[step.source] ?? sources[0]
            const item = step.item % texts.length
            const { from, length } = spans[item] ?? { from: 0, length: 0 }
            writer.appendFrom(bytes, from, length)
            return latin1(texts[item] ?? '')
          })
          expect(itemsOf(writer.finish())).toEqual(expected)
        },
      ),
      { numRuns: 500 },
    )
  })

  it('keeps an item that is written between two neighbors that are copied', () => {
    const bytes = new Uint8Array(Buffer.from('one\u00fftwo\u00ff', 'latin1'))
    const writer = createArenaWriter({ count: 3, end: END })
    writer.appendFrom(bytes, 0, 3)
    writer.append('between')
    writer.appendFrom(bytes, 4, 3)
    expect(itemsOf(writer.finish())).toEqual(['one', 'between', 'two'])
  })

  it('rejects more or fewer items than it is for, and an item without parts', () => {
    const writer = createArenaWriter({ count: 1, end: END })
    expect(() => writer.append()).toThrow('an item of an arena has at least one part')
    expect(() => writer.finish()).toThrow('an arena for 1 items has only 0')
    writer.append('one')
    expect(() => writer.append('two')).toThrow('an arena for 1 items gets another one')
    expect(() => writer.appendFrom(new Uint8Array([END]), 0, 0)).toThrow('an arena for 1 items gets another one')
    expect(itemsOf(writer.finish())).toEqual(['one'])
  })
})
