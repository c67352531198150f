import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Json, JsonObject } from '../kind-schema.ts'
import { ODD_ROOT } from '../parity/odd-crds.ts'
import type { SchemaNode } from '../schema-node.ts'
import { structuralSchema } from './structural-schema.ts'

const object = (spec: Json): JsonObject => ({ apiVersion: 'v1', kind: 'X', metadata: { name: 'x' }, spec })
const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>

describe('any object', () => {
  const schema = structuralSchema(ODD_ROOT)
  // items of list maps without their keys are never recognised again, embedded resources are always judged, and rules fail on
  // values of another type than their schema says
  const fields = Object.keys(ODD_ROOT.properties?.['spec']?.properties ?? {}).filter(
    (name) => !['grows', 'keyed', 'embedded', 'fixed', 'ruled', 'optionalOld'].includes(name),
  )
  const spec = fc.dictionary(fc.constantFrom(...fields, 'unknown', '__proto__', 'constructor'), json, { maxKeys: 4 })

  it('is pruned and defaulted once: doing so again changes nothing, and the input stays as it was', () => {
    fc.assert(
      fc.property(spec, (value) => {
        const given = object(value as Json)
        const before = JSON.stringify(given)
        const pruned = schema.prune(given).object
        expect(schema.prune(pruned)).toEqual({ object: pruned, unknown: [] })
        const defaulted = schema.applyDefaults(pruned)
        expect(schema.applyDefaults(defaulted)).toEqual(defaulted)
        expect(JSON.stringify(given)).toBe(before)
      }),
      { numRuns: 200 },
    )
  })

  it('is judged without a throw, and an update that changes nothing is never refused by what stands in spec', () => {
    fc.assert(
      fc.property(spec, (value) => {
        const stored = schema.applyDefaults(schema.prune(object(value as Json)).object)
        schema.validate(stored)
        const again = schema.validate(stored, stored)
        // the root has fields that no schema names, so only what lies below is known to be unchanged
        expect(again.filter(({ field }) => field.startsWith('spec.'))).toEqual([])
      }),
      { numRuns: 200 },
    )
  })
})

describe('hostile schemas', () => {
  const limitMs = 100

  it('a pattern that backtracks without end refuses the object in bounded time', () => {
    const schema = structuralSchema(withField({ type: 'string', pattern: '^(a+)+$' }), { limitMs })
    expect(schema.validate(object({ field: `${'a'.repeat(60)}b` })).map(({ message }) => message)).toEqual([
      'Invalid value: "": validation failed due to running out of cost budget, no further validation rules will be run',
    ])
  })

  it('so does a rule with such a pattern, or with loops in loops', () => {
    const rules = [
      "self.all(x, x.matches('^(a|aa)+$'))",
      'self.all(a, self.all(b, self.all(c, self.all(d, a != b || b != c || c != d || true))))',
    ]
    for (const rule of rules) {
      const schema = structuralSchema(withField({ type: 'array', items: { type: 'string' }, 'x-kubernetes-validations': [{ rule }] }), {
        limitMs,
      })
      const list = Array.from({ length: 300 }, (_, index) => `${'a'.repeat(60)}${index}`)
      expect(schema.validate(object({ field: list }))).toHaveLength(1)
    }
  })

  it('small objects are no way around the limit', () => {
    const pattern = structuralSchema(withField({ type: 'string', pattern: '^.*a.*b.*c.*d$' }), { limitMs })
    expect(pattern.validate(object({ field: 'abc'.repeat(600) }))).toHaveLength(1)
    const rule = 'self.all(a, self.all(b, self.all(c, a + b + c != "x")))'
    const rules = structuralSchema(withField({ type: 'array', items: { type: 'string' }, 'x-kubernetes-validations': [{ rule }] }), {
      limitMs,
    })
    expect(rules.validate(object({ field: Array.from({ length: 400 }, () => 'a') }))).toHaveLength(1)
  })

  function withField(field: SchemaNode): SchemaNode {
    return { type: 'object', properties: { spec: { type: 'object', properties: { field } } } }
  }
})

it('fields may be called as members of every object are', () => {
  const schema = structuralSchema({
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        properties: { constructor: { type: 'string' }, toString: { type: 'integer' } },
        'x-kubernetes-validations': [{ rule: '!has(self.constructor) || self.constructor == "x"' }],
      },
    },
  })
  expect(schema.validate(object({ constructor: 'x', toString: 3 }))).toEqual([])
  expect(schema.validate(object({ constructor: 'y' }))).toHaveLength(1)
  expect(schema.validate(object({}))).toEqual([])
  expect(schema.prune(object(JSON.parse('{"__proto__": {"a": 1}, "valueOf": 1}') as Json)).unknown).toEqual([
    'spec.__proto__',
    'spec.valueOf',
  ])
})
