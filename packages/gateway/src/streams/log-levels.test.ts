import { describe, expect, it } from 'vitest'
import { mostVerbose, wantsLevel } from './log-levels.ts'

describe('mostVerbose', () => {
  it('is the level that satisfies all', () => {
    expect(mostVerbose(['error', undefined, 'debug', 'info'])).toBe('debug')
    expect(mostVerbose(['emergency'])).toBe('emergency')
    expect(mostVerbose([undefined])).toBeUndefined()
    expect(mostVerbose([])).toBeUndefined()
  })
})

describe('wantsLevel', () => {
  it.each([
    ['debug', 'info', 'debug', false],
    ['info', 'info', 'debug', true],
    ['error', 'warning', 'debug', true],
    ['notice', 'warning', 'debug', false],
    // Never set: all that the server sends, as long as no session has asked for more.
    ['debug', undefined, undefined, true],
    ['debug', undefined, 'debug', false],
    ['info', undefined, 'debug', true],
    ['loud', 'emergency', 'debug', true],
    [undefined, 'emergency', 'debug', true],
  ] as const)('a message of level %s, set to %s, server at %s: %s', (level, own, upstream, expected) => {
    expect(wantsLevel(level, own, upstream)).toBe(expected)
  })
})
