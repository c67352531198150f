import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type EnvVar, mergeEnv } from './container-env.ts'

const secret = (name: string): EnvVar => ({ name, valueFrom: { secretKeyRef: { name: 's', key: 'k' } } })

describe('mergeEnv', () => {
  it('has one entry per name: forced, then secrets, then env_vars, then the rest of the patch', () => {
    const merged = mergeEnv({
      forced: { A: 'forced' },
      vars: { A: 'var', B: 'var', C: 'var' },
      patch: [{ name: 'C', value: 'patch' }, { name: 'D', value: 'first' }, { name: 'D', value: 'last' }, secret('A'), secret('B')],
    })
    expect(merged).toEqual([{ name: 'A', value: 'forced' }, secret('B'), { name: 'C', value: 'var' }, { name: 'D', value: 'last' }])
  })

  it('puts a variable after those that it refers to, and bears circles', () => {
    const vars = { A: '$(Z)/$$(B)', B: '', Z: '$(Y)', Y: '1', LOOP1: '$(LOOP2)', LOOP2: '$(LOOP1)' }
    expect(mergeEnv({ forced: {}, vars, patch: [] }).map(({ name }) => name)).toEqual(['Y', 'Z', 'A', 'B', 'LOOP2', 'LOOP1'])
  })

  it('does not depend on the order of its input', () => {
    const entries = fc.uniqueArray(
      fc.record({ name: fc.constantFrom('A', 'B', 'C', 'D', 'E'), value: fc.constantFrom('', '$(A)', '$(E)', 'x') }),
      {
        selector: ({ name }) => name,
      },
    )
    fc.assert(
      fc.property(entries, (list) => {
        const vars = (items: typeof list) => Object.fromEntries(items.map(({ name, value }) => [name, value]))
        const merged = mergeEnv({ forced: {}, vars: vars(list), patch: [] })
        expect(merged).toEqual(mergeEnv({ forced: {}, vars: vars(list.toReversed()), patch: [] }))
        expect(merged).toHaveLength(list.length)
      }),
    )
  })
})
