import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createStateSeal } from './state-seal.ts'

describe('the seal of a request state', () => {
  const seal = createStateSeal()

  it('gives back what was sealed', () => {
    fc.assert(
      fc.property(fc.string(), fc.dictionary(fc.string(), fc.record({ action: fc.string() })), (target, answers) => {
        expect(seal.open(seal.seal({ target, answers }), target).answers).toEqual(JSON.parse(JSON.stringify(answers)))
      }),
    )
  })

  it('opens nothing that was changed', () => {
    const sealed = seal.seal({ target: 'tools/call x', answers: { a: { action: 'accept' } } })
    fc.assert(
      fc.property(fc.nat(sealed.length - 1), fc.string({ minLength: 1, maxLength: 3 }), (at, text) => {
        const changed = sealed.slice(0, at) + text + sealed.slice(at + 1)
        fc.pre(changed !== sealed)
        expect(() => seal.open(changed, 'tools/call x')).toThrow(/not made by this server/)
      }),
    )
    expect(() => seal.open(`${sealed}-TAMPERED`, 'tools/call x')).toThrow()
    expect(() => createStateSeal().open(sealed, 'tools/call x')).toThrow()
    expect(() => seal.open(sealed, 'tools/call y')).toThrow(/another request/)
  })
})
