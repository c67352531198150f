import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HeldBody } from './held-body.ts'

describe('a held body', () => {
  it('is what came, in any pieces', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 2_000 }), { maxLength: 6 }), (pieces) => {
        const body = new HeldBody()
        for (const [i, piece] of pieces.entries()) {
          body.append(Buffer.from(piece))
          expect(body.length).toBe(pieces.slice(0, i + 1).reduce((sum, { length }) => sum + length, 0))
        }
        expect(body.take()).toEqual(Buffer.concat(pieces))
      }),
    )
  })

  it('is not copied when it came in one', () => {
    const chunk = Buffer.from('all of it')
    const body = new HeldBody()
    body.append(chunk)
    expect(body.take()).toBe(chunk)
  })
})
