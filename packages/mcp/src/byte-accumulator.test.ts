import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ByteAccumulator } from './byte-accumulator.ts'

describe('ByteAccumulator', () => {
  it('is a concatenation', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 700, size: 'max' }), { maxLength: 8 }), fc.uint8Array(), (chunks, rest) => {
        const bytes = new ByteAccumulator()
        for (const chunk of chunks) bytes.append(chunk)
        expect(bytes.length).toBe(chunks.reduce((sum, chunk) => sum + chunk.length, 0))
        expect(Buffer.concat([...chunks, rest]).equals(bytes.take(rest))).toBe(true)
        expect(bytes.length).toBe(0)
        expect(bytes.take(rest).equals(rest)).toBe(true)
      }),
    )
  })

  it('gives what it holds away for good', () => {
    const bytes = new ByteAccumulator()
    bytes.append(Buffer.from('abc'))
    const first = bytes.take(Buffer.from('d'))
    bytes.append(Buffer.from('xyz'))
    expect(first.toString()).toBe('abcd')
    bytes.clear()
    expect(bytes.take(Buffer.from('')).toString()).toBe('')
  })
})
