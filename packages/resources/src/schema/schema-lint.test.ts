import { expect, it } from 'vitest'
import { list, map, obj, opt, str } from './nodes.ts'
import { lintSchema } from './schema-lint.ts'
import type { SchemaNode } from './schema-walk.ts'

const lint = (schema: unknown) => lintSchema(schema as SchemaNode, 'spec')
const rules = [{ rule: 'true', message: 'm' }]

it('finds nothing wrong with a good schema', () => {
  expect(lint(obj('d', { a: opt(str('d')), b: list('d', str('d', { rules }), { maxItems: 3 }) }, { rules }))).toEqual([])
})

it.each([
  [
    'a node without a description',
    { type: 'object', description: 'd', properties: { a: { type: 'string' } } },
    'spec.a: has no description',
  ],
  ['a keyword that is not structural', { type: 'string', description: 'd', const: 'a' }, 'spec: uses const, which is not structural'],
  ['a type below anyOf', { type: 'object', description: 'd', anyOf: [{ type: 'string' }] }, 'spec: anyOf may only require fields'],
  [
    'a type deep below anyOf',
    { type: 'object', description: 'd', anyOf: [{ properties: { a: { type: 'string' } } }] },
    'spec: anyOf may only require fields',
  ],
  ['a required field with a default', obj('d', { a: str('d', { default: 'x' }) }), 'spec.a: is required and has a default'],
  [
    'a rule below an unbounded list',
    obj('d', { a: list('d', str('d', { rules })) }),
    'spec.a[]: has a rule below a list or map without maxItems or maxProperties: its cost cannot be estimated',
  ],
  [
    'a rule below an unbounded map',
    obj('d', { a: map('d', str('d', { rules })) }),
    'spec.a.<key>: has a rule below a list or map without maxItems or maxProperties: its cost cannot be estimated',
  ],
  ['a rule on a node without a type', { description: 'd', 'x-kubernetes-validations': rules }, 'spec: has a rule but no type'],
])('finds %s', (_title, schema, finding) => expect(lint(schema)).toEqual([finding]))
