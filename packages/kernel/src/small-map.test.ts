import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SmallMap } from './small-map.ts'

type Step = readonly ['set' | 'delete', number]

const step = fc.tuple(fc.constantFrom('set' as const, 'delete' as const), fc.nat({ max: 40 }))

describe('SmallMap', () => {
  it('does what a Map does, also when it grows and is emptied again', () => {
    const steps = fc.array(step, { maxLength: 200, size: 'max' })
    fc.assert(
      fc.property(steps, fc.boolean(), (all, isEmptied) => {
        const map = new Map<number, string>()
        const small = new SmallMap<number, string>()
        const rest: Step[] = isEmptied ? Array.from({ length: 41 }, (_, key) => ['delete', key] as const) : []
        for (const [at, [what, key]] of [...all, ...rest, ...all].entries()) {
          if (what === 'set') {
            map.set(key, `${at}`)
            small.set(key, `${at}`)
          } else expect(small.delete(key)).toBe(map.delete(key))
          expect([small.size, small.has(key), small.get(key)]).toEqual([map.size, map.has(key), map.get(key)])
          expect(small.entries()).toEqual([...map])
        }
      }),
    )
  })

  it('tells keys of different types apart', () => {
    const small = new SmallMap<string | number, string>()
    small.set(1, 'number')
    small.set('1', 'text')
    expect([small.get(1), small.get('1')]).toEqual(['number', 'text'])
  })
})
