import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MERGE_BASE, MERGE_CASES } from '../testing/merge-cases.ts'
import { strategicMerge } from './strategic-merge.ts'

type Value = Record<string, unknown>

const merge = (base: Value, patch: Value) => strategicMerge(base, patch, 'PodTemplateSpec')

/** Small pod templates without directives. */
const name = fc.constantFrom('a', 'b', 'c', 'd')
const unique = (item: fc.Arbitrary<Value>, key: string) => fc.uniqueArray(item, { selector: (value) => value[key], maxLength: 4 })
const optional = (fields: Record<string, fc.Arbitrary<unknown>>, required: string[] = []) =>
  fc.record(fields, { requiredKeys: required }) as fc.Arbitrary<Value>
const env = optional({ name, value: fc.constantFrom('1', '2') }, ['name'])
const container = optional(
  { name, image: fc.constantFrom('i', 'j'), env: unique(env, 'name'), args: fc.array(fc.constantFrom('x', 'y'), { maxLength: 3 }) },
  ['name'],
)
const template = optional({
  metadata: optional({ labels: fc.dictionary(name, fc.constantFrom('1', '2'), { maxKeys: 4 }) }),
  spec: optional({
    containers: unique(container, 'name'),
    tolerations: fc.array(optional({ key: name, operator: fc.constant('Exists') }), { maxLength: 2 }),
    nodeSelector: fc.dictionary(name, fc.constantFrom('1', '2'), { maxKeys: 3 }),
  }),
})

describe('strategicMerge', () => {
  it('changes nothing when there is nothing to change', () => {
    fc.assert(fc.property(template, (base) => void expect(merge(base, {})).toEqual(base)))
  })

  it('takes over a patch as it is when there was nothing', () => {
    fc.assert(fc.property(template, (patch) => void expect(merge({}, patch)).toEqual(patch)))
  })

  it('does nothing the second time', () => {
    fc.assert(
      fc.property(template, template, (base, patch) => {
        const once = merge(base, patch)
        expect(merge(once, patch)).toEqual(once)
      }),
    )
  })

  it('holds whatever the patch says, and every item that it does not speak of', () => {
    fc.assert(
      fc.property(template, template, (base, patch) => {
        const merged = containersOf(merge(base, patch))
        const [before, wanted] = [containersOf(base), containersOf(patch)]
        for (const { env, ...item } of wanted) {
          const found = merged.find((candidate) => candidate['name'] === item['name'])
          expect(found).toMatchObject(item)
          for (const variable of (env ?? []) as Value[]) expect(found?.['env']).toContainEqual(expect.objectContaining(variable))
        }
        for (const item of before) if (!wanted.some(({ name }) => name === item['name'])) expect(merged).toContainEqual(item)
        expect(new Set(merged.map(({ name }) => name)).size).toBe(merged.length)
      }),
    )
  })

  it('touches neither of the two', () => {
    for (const { patch } of MERGE_CASES) {
      const [base, change] = [structuredClone(MERGE_BASE), structuredClone(patch)]
      merge(base, change)
      expect([base, change]).toEqual([MERGE_BASE, patch])
    }
  })

  it('leaves no directive and no null behind', () => {
    for (const { patch } of MERGE_CASES) expect(JSON.stringify(merge({ ...MERGE_BASE }, { ...patch }))).not.toMatch(/"\$|null/)
    for (const { patch } of MERGE_CASES) expect(JSON.stringify(merge({}, { ...patch }))).not.toMatch(/"\$|null/)
  })

  it('tells ports of different protocols apart', () => {
    const ports = (list: Value[]) => ({ spec: { containers: [{ name: 'a', ports: list }] } })
    const merged = merge(ports([{ containerPort: 53, name: 'tcp' }]), ports([{ containerPort: 53, protocol: 'UDP', name: 'udp' }]))
    expect(containersOf(merged)[0]?.['ports']).toEqual([
      { containerPort: 53, protocol: 'UDP', name: 'udp' },
      { containerPort: 53, name: 'tcp' },
    ])
  })
})

function containersOf(value: Value): Value[] {
  return ((value['spec'] as Value | undefined)?.['containers'] ?? []) as Value[]
}
