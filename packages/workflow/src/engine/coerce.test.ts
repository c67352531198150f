import type { Json } from '@thv/kernel/json'
import { expect, it } from 'vitest'
import { coerced } from './coerce.ts'

it.each<[Json, string | readonly string[], Json | undefined]>([
  ['42', 'integer', 42],
  ['4.5', 'integer', undefined],
  ['4.5', 'number', 4.5],
  [' 42 ', 'integer', 42],
  ['x', 'number', undefined],
  ['true', 'boolean', true],
  ['FALSE', 'boolean', false],
  ['yes', 'boolean', undefined],
  ['[1]', 'array', [1]],
  ['{"a":1}', 'object', { a: 1 }],
  ['[1]', 'object', undefined],
  [42, 'string', '42'],
  [true, 'string', 'true'],
  [{ a: 1 }, 'string', '{"a":1}'],
  [null, 'string', undefined],
  [1, 'boolean', undefined],
  ['null', ['integer', 'null'], null],
  ['7', ['integer', 'string'], '7'],
  [null, ['string', 'null'], null],
])('%j as %j is %j', (value, type, expected) => {
  const result = coerced(value, { type })
  expect('value' in result ? result.value : undefined).toEqual(expected)
})

it('names the member that does not fit', () => {
  const schema = { type: 'object', properties: { a: { type: 'array', items: { type: 'integer' } } } }
  expect(coerced({ a: '[1, "x"]' }, schema)).toEqual({ problem: 'a [1] must be integer' })
})
