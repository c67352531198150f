import { describe, expect, it } from 'vitest'
import { isValidSessionId, mintSessionId } from './session-id.ts'

describe('session ids', () => {
  it('are long, visible ASCII and never the same', () => {
    const ids = Array.from({ length: 1_000 }, mintSessionId)
    expect(new Set(ids).size).toBe(1_000)
    for (const id of ids) {
      expect(isValidSessionId(id)).toBe(true)
      expect(Buffer.from(id, 'base64url').length * 8).toBeGreaterThanOrEqual(128)
    }
  })

  it.each([
    ['a', true],
    ['!~', true],
    ['x'.repeat(256), true],
    ['x'.repeat(257), false],
    ['', false],
    ['a b', false],
    ['a\n', false],
    ['a\u007f', false],
    ['é', false],
    [undefined, false],
    [['a'], false],
  ])('%j is valid: %s', (id, valid) => {
    expect(isValidSessionId(id)).toBe(valid)
  })
})
