import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { attributeRequest, declares, ownerOf, wantsOwnProcess } from './attribution.ts'

const session = (name: string, clientCapabilities: Record<string, object> = {}) => ({ name, party: name, clientCapabilities })
const others = (recent: string) => ({ answeredOther: (party: string) => party !== recent })

describe('ownerOf', () => {
  const a = session('a')
  const b = session('b')
  it.each([
    ['its own process, idle', { own: a, owners: new Map(), answered: undefined }, a],
    ['its own process, whatever is said about others', { own: a, owners: new Map([[b, 1]]), answered: undefined }, a],
    ['shared, no session at work', { own: undefined, owners: new Map(), answered: undefined }, undefined],
    ['shared, one at work', { own: undefined, owners: new Map([[a, 3]]), answered: undefined }, a],
    ['shared, one at work, another answered just now', { own: undefined, owners: new Map([[a, 3]]), answered: others('b') }, undefined],
    ['shared, one at work, its own call answered just now', { own: undefined, owners: new Map([[a, 3]]), answered: others('a') }, a],
    ['its own process, another answered just now', { own: a, owners: new Map([[a, 1]]), answered: others('b') }, a],
    [
      'shared, two at work',
      {
        own: undefined,
        owners: new Map([
          [a, 1],
          [b, 1],
        ]),
        answered: undefined,
      },
      undefined,
    ],
  ])('%s', (_, claims, expected) => {
    expect(ownerOf(claims)).toBe(expected)
  })
})

describe('declares', () => {
  it.each([
    ['sampling/createMessage', { sampling: {} }, {}, true],
    ['sampling/createMessage', {}, {}, false],
    ['sampling/createMessage', { sampling: true }, {}, false],
    ['roots/list', { roots: { listChanged: true } }, undefined, true],
    ['roots/list', { sampling: {} }, undefined, false],
    ['elicitation/create', { elicitation: {} }, {}, true],
    ['elicitation/create', { elicitation: {} }, { mode: 'form' }, true],
    ['elicitation/create', { elicitation: {} }, { mode: 'url' }, false],
    ['elicitation/create', { elicitation: { url: {} } }, { mode: 'url' }, true],
    ['elicitation/create', { elicitation: { url: {} } }, { mode: 'form' }, false],
    ['elicitation/create', { elicitation: { form: {}, url: {} } }, {}, true],
    ['elicitation/create', { sampling: {} }, {}, false],
    ['something/else', { sampling: {}, roots: {}, elicitation: {} }, {}, false],
  ])('%s of a client with %j, asked %j: %s', (method, capabilities, params, expected) => {
    expect(declares(capabilities, method, params)).toBe(expected)
  })
})

describe('attributeRequest', () => {
  const asked = session('asked', { sampling: {} })
  const mute = session('mute')

  it('puts the question to the owner of all calls, if it can be asked', () => {
    expect(attributeRequest({ own: undefined, owners: new Map([[asked, 2]]), answered: undefined }, 'sampling/createMessage', {})).toEqual({
      to: asked,
    })
    expect(attributeRequest({ own: undefined, owners: new Map([[mute, 2]]), answered: undefined }, 'sampling/createMessage', {})).toEqual({
      refusedBecause: 'capability',
    })
  })

  it('does not check requests of a process with one client', () => {
    expect(attributeRequest({ own: mute, owners: new Map(), answered: undefined }, 'vendor/question', {})).toEqual({ to: mute })
  })

  it('never names anybody but the only owner', () => {
    const sessions = ['a', 'b', 'c', 'd'].map((name) => session(name, { sampling: {}, roots: {} }))
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 6 }), (calls) => {
        const owners = new Map<(typeof sessions)[number], number>()
        for (const call of calls) {
          const owner = sessions[call]
          if (owner) owners.set(owner, (owners.get(owner) ?? 0) + 1)
        }
        const distinct = new Set(calls)
        const [only] = distinct
        const expected = distinct.size === 1 && only !== undefined ? { to: sessions[only] } : { refusedBecause: 'unattributed' }
        expect(attributeRequest({ own: undefined, owners, answered: undefined }, 'roots/list', undefined)).toEqual(expected)
      }),
    )
  })
})

describe('wantsOwnProcess', () => {
  it.each([
    [{}, false],
    [{ experimental: { x: {} } }, false],
    [{ tasks: {} }, false],
    [{ sampling: {} }, true],
    [{ elicitation: {} }, true],
    [{ roots: { listChanged: true } }, true],
    [{ roots: null }, false],
  ])('%j: %s', (capabilities, expected) => {
    expect(wantsOwnProcess(capabilities)).toBe(expected)
  })
})
