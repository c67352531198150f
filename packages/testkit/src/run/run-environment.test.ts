import { describe, expect, it } from 'vitest'
import { isCi, positiveCount, soakRounds } from './run-environment.ts'

describe('isCi', () => {
  it.each(['true', '1', 'TRUE', 'yes', 'woodpecker'])('CI=%s is CI', (CI) => expect(isCi({ CI })).toBe(true))
  it.each(['', '0', 'false', 'False'])('CI=%j is not CI', (CI) => expect(isCi({ CI })).toBe(false))
  it('is false where CI is not set', () => expect(isCi({})).toBe(false))
})

describe('counts from the environment', () => {
  it('are 1 round by default', () => expect(soakRounds({})).toBe(1))
  it('are whole numbers', () =>
    expect([soakRounds({ SOAK: '20' }), positiveCount('SOAK_KILLS', 5, { SOAK_KILLS: '50' })]).toEqual([20, 50]))
  it.each(['0', '', '-1', '1.5', 'many', ' 3', '00'])('reject SOAK=%j', (SOAK) =>
    expect(() => soakRounds({ SOAK })).toThrow(`SOAK=${SOAK}: set it to a whole number from 1 on, or unset it`),
  )
})
