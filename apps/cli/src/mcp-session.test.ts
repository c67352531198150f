import { describe, expect, it } from 'vitest'
import { waitsOf } from './mcp-session.ts'

describe('--timeout', () => {
  it('holds for every step, the first answer of the server included', () => {
    for (const isInteractive of [true, false]) {
      const { timeoutMs, connectTimeoutMs, limits } = waitsOf('2m', { isInteractive })
      expect([timeoutMs, connectTimeoutMs, limits]).toEqual([120_000, 120_000, { connectTimeoutMs: 120_000, probeTimeoutMs: 120_000 }])
    }
  })

  it('is a minute, and ten where somebody may have to type', () => {
    expect(waitsOf(undefined, { isInteractive: false })).toEqual({ timeoutMs: 60_000, connectTimeoutMs: 30_000, limits: {} })
    expect(waitsOf(undefined, { isInteractive: true }).timeoutMs).toBe(600_000)
  })

  it.each(['soon', '0s', '-5s'])('%s is refused', (text) => {
    expect(() => waitsOf(text, { isInteractive: false })).toThrow(/--timeout must be a duration/)
  })
})
