import type { Json, JsonObject } from '@thv/kernel/json'
import { describe, expect, it } from 'vitest'
import { compileSchema } from './json-schema.ts'

const TREE: JsonObject = { $ref: '#/$defs/tree', $defs: { tree: { type: 'object', properties: { a: { $ref: '#/$defs/tree' } } } } }

function nested(levels: number): Json {
  let value: Json = {}
  for (let level = 0; level < levels; level++) value = { a: value }
  return value
}

describe('a value that is costly to check', () => {
  it.each<[string, JsonObject, () => Json, string]>([
    ['many items that must differ', { uniqueItems: true }, () => Array.from({ length: 150_000 }, (_, at) => [at]), 'takes too long'],
    ['a tree of 100,000 levels', TREE, () => nested(100_000), 'nested too deep'],
    ['a value of 100,000 levels', {}, () => nested(100_000), 'nested too deep'],
  ])('%s is refused', (_title, schema, value, problem) => {
    expect(compileSchema(schema).check(value()).problems).toEqual([expect.stringContaining(problem)])
  })

  it('ends the checks of those after it, which have no time of their own', () => {
    const values = ['aa', `${'a'.repeat(40)}b`, 'aa']
    expect(compileSchema({ pattern: '^(a+)+$' }).checkAll(values)).toEqual([
      { value: 'aa', problems: [] },
      { value: values[1], problems: ['the schema takes too long to check on this value'] },
    ])
  })

  it('is not one during whose check the machine stood still', () => {
    let reads = 0
    const value = {
      get a() {
        if (++reads === 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_500)
        return 'aa'
      },
    }
    const schema = compileSchema({ properties: { a: { pattern: '^(a+)+$' } } })
    expect(schema.checkAll(['x', value, 'y']).map(({ problems }) => problems)).toEqual([[], [], []])
    expect(reads).toBe(2)
  })

  it('leaves the schema in order', () => {
    const schema = compileSchema(TREE)
    schema.check(nested(100_000))
    expect([schema.check(nested(3)).problems, schema.check({ a: 1 }).problems]).toEqual([[], ['a must be object']])
  })
})

describe('schemas do not know each other', () => {
  const reference = { $ref: 'https://example.com/inner' }

  it.each<[string, JsonObject]>([
    ['is compiled', { properties: { a: { $id: 'https://example.com/inner', type: 'integer' } } }],
    ['is none', { properties: { a: { $id: 'https://example.com/inner', type: 'integer' }, b: { type: 'text' } } }],
  ])('by a name inside of one that %s', (_title, schema) => {
    try {
      compileSchema(schema)
    } catch {
      // whether it compiles is not asked here
    }
    expect(() => compileSchema(reference)).toThrow("can't resolve reference")
    expect(compileSchema({ properties: { b: { $id: 'https://example.com/inner', type: 'string' } } }).check({ b: 'x' }).problems).toEqual(
      [],
    )
  })
})
