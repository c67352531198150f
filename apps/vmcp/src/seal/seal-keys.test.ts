import { describe, expect, it } from 'vitest'
import { SealKeys } from './seal-keys.ts'

const SECRET = 'a secret of more than sixteen bytes'
const OTHER = 'another one of more than sixteen bytes'
const fromEnv = (current: string, previous?: string) =>
  SealKeys.fromEnv({ VMCP_SESSION_HMAC_SECRET: current, VMCP_SESSION_HMAC_SECRET_PREVIOUS: previous }).sealFor('workflows')

describe('seals', () => {
  it('open exactly what they sealed', () => {
    const seal = SealKeys.random().sealFor('workflows')
    const text = seal.seal({ id: 'a', round: 1 })
    expect(seal.open(text)).toEqual({ id: 'a', round: 1 })
    expect(text).not.toContain('"')
    for (let i = 0; i < text.length; i++)
      expect(seal.open(`${text.slice(0, i)}${text[i] === 'A' ? 'B' : 'A'}${text.slice(i + 1)}`)).toBeUndefined()
    const foreign = SealKeys.random().sealFor('workflows').seal({ id: 'a' })
    for (const other of [undefined, 7, '', 'vmcp1.', 'vmcp1..', `${text}=`, `${text} `, `${text}.`, `${text}.x`, foreign, 'v'.repeat(1e6)])
      expect(seal.open(other)).toBeUndefined()
  })

  it('are worthless for another purpose', () => {
    const keys = SealKeys.random()
    expect(keys.sealFor('parked calls').open(keys.sealFor('workflows').seal({ id: 'a' }))).toBeUndefined()
  })

  it('of one secret open each other, and after a rotation those of the previous secret too', () => {
    const old = fromEnv(SECRET).seal({ id: 'a' })
    expect(fromEnv(SECRET).open(old)).toEqual({ id: 'a' })
    expect(fromEnv(OTHER).open(old)).toBeUndefined()
    const rotated = fromEnv(OTHER, SECRET)
    expect(rotated.open(old)).toEqual({ id: 'a' })
    expect(fromEnv(SECRET).open(rotated.seal({ id: 'b' }))).toBeUndefined()
    expect(fromEnv(OTHER).open(rotated.seal({ id: 'b' }))).toEqual({ id: 'b' })
  })

  it('need a secret that cannot be guessed, and no message quotes it', () => {
    expect(() => fromEnv('too short')).toThrow('VMCP_SESSION_HMAC_SECRET has fewer than 16 bytes')
    expect(() => fromEnv(SECRET, 'x')).toThrow('VMCP_SESSION_HMAC_SECRET_PREVIOUS has fewer than 16 bytes')
    expect(() => fromEnv('', SECRET)).toThrow('without VMCP_SESSION_HMAC_SECRET')
    expect(() => fromEnv('', SECRET)).not.toThrow(SECRET)
  })
})
