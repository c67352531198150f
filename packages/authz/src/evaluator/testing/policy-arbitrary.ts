import type { PolicyJson } from '@cedar-policy/cedar-wasm/nodejs'
import fc from 'fast-check'

/* Cedar policies in their JSON form: every operator and extension function, on values that sometimes fit and sometimes do not. */

type Json = Readonly<Record<string, unknown>>

const entity = fc.constantFrom(
  { type: 'User', id: 'a' },
  { type: 'User', id: 'nobody' },
  { type: 'Group', id: 'g' },
  { type: 'Group', id: 'top' },
  { type: 'Action', id: 'call' },
  { type: 'Action', id: 'all' },
  { type: 'Tool', id: 't' },
)
const member = fc.constantFrom(
  'n',
  's',
  'b',
  'set',
  'rec',
  'ip',
  'dec',
  'time',
  'span',
  'arg_x',
  'a',
  'age',
  'name',
  'tags',
  'home',
  'level',
)
const text = fc.constantFrom(
  '',
  'hello',
  'ann',
  'x',
  'a*b',
  '10.0.0.0/8',
  '::1',
  '1.5',
  '-0.0001',
  '2024-10-15',
  '2024-10-15T11:35:00Z',
  '1h',
  '90m',
  'red',
  'color',
)

const literal: fc.Arbitrary<Json> = fc.oneof(
  fc.boolean().map((value) => ({ Value: value })),
  fc.constantFrom(0, 1, 3, -5, 9_007_199_254_740_991).map((value) => ({ Value: value })),
  text.map((value) => ({ Value: value })),
  entity.map((value) => ({ Value: { __entity: value } })),
  fc.constantFrom('principal', 'action', 'resource', 'context').map((name) => ({ Var: name })),
  member.map((attr) => ({ '.': { left: { Var: 'context' }, attr } })),
  member.map((attr) => ({ '.': { left: { Var: 'principal' }, attr } })),
)

const UNARY = ['!', 'neg', 'isEmpty']
const BINARY = [
  '==',
  '!=',
  'in',
  '<',
  '<=',
  '>',
  '>=',
  '&&',
  '||',
  '+',
  '-',
  '*',
  'contains',
  'containsAll',
  'containsAny',
  'hasTag',
  'getTag',
]
const CONSTRUCTORS = ['ip', 'decimal', 'datetime', 'duration']
const METHODS = [
  'isIpv4',
  'isIpv6',
  'isLoopback',
  'isMulticast',
  'toDate',
  'toTime',
  'toMilliseconds',
  'toSeconds',
  'toMinutes',
  'toHours',
  'toDays',
]
const PAIRS = ['lessThan', 'lessThanOrEqual', 'greaterThan', 'greaterThanOrEqual', 'isInRange', 'offset', 'durationSince']
const pattern = fc.array(
  fc.oneof(
    fc.constant('Wildcard'),
    fc.constantFrom('a', 'l', 'he').map((Literal) => ({ Literal })),
  ),
  { maxLength: 4 },
)

const { node } = fc.letrec<{ node: Json }>((tie) => ({
  node: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    literal,
    fc.tuple(fc.constantFrom(...UNARY), tie('node')).map(([op, arg]) => ({ [op]: { arg } })),
    fc.tuple(fc.constantFrom(...BINARY), tie('node'), tie('node')).map(([op, left, right]) => ({ [op]: { left, right } })),
    fc.tuple(fc.constantFrom(...CONSTRUCTORS), text).map(([fn, value]) => ({ [fn]: [{ Value: value }] })),
    fc.tuple(fc.constantFrom(...METHODS), tie('node')).map(([fn, it]) => ({ [fn]: [it] })),
    fc.tuple(fc.constantFrom(...PAIRS), tie('node'), tie('node')).map(([fn, a, b]) => ({ [fn]: [a, b] })),
    // biome-ignore lint/suspicious/noThenProperty: the name of the member in Cedar's JSON form
    fc.tuple(tie('node'), tie('node'), tie('node')).map(([test, yes, no]) => ({ 'if-then-else': { if: test, then: yes, else: no } })),
    fc.tuple(tie('node'), member).map(([left, attr]) => ({ '.': { left, attr } })),
    fc.tuple(tie('node'), member).map(([left, attr]) => ({ has: { left, attr } })),
    fc.tuple(tie('node'), pattern).map(([left, elements]) => ({ like: { left, pattern: elements } })),
    fc.tuple(tie('node'), fc.constantFrom('User', 'Tool', 'Group')).map(([left, type]) => ({ is: { left, entity_type: type } })),
    fc.tuple(tie('node'), entity).map(([left, above]) => ({ is: { left, entity_type: 'User', in: { Value: { __entity: above } } } })),
    fc.array(tie('node'), { maxLength: 3 }).map((items) => ({ Set: items })),
    fc.dictionary(fc.constantFrom('a', 'b', 'n'), tie('node'), { maxKeys: 2 }).map((members) => ({ Record: members })),
  ),
}))

export const expression: fc.Arbitrary<Json> = node

const scope = fc.oneof(
  fc.constant({ op: 'All' }),
  entity.map((one) => ({ op: '==', entity: one })),
  entity.map((one) => ({ op: 'in', entity: one })),
  fc.constantFrom('User', 'Tool').map((type) => ({ op: 'is', entity_type: type })),
  fc.tuple(fc.constantFrom('User', 'Tool'), entity).map(([type, one]) => ({ op: 'is', entity_type: type, in: { entity: one } })),
)
const action = fc.constantFrom({ type: 'Action', id: 'call' }, { type: 'Action', id: 'all' }, { type: 'Action', id: 'other' })
const actionScope = fc.oneof(
  fc.constant({ op: 'All' }),
  action.map((one) => ({ op: '==', entity: one })),
  action.map((one) => ({ op: 'in', entity: one })),
  fc.array(action, { maxLength: 3 }).map((entities) => ({ op: 'in', entities })),
)

export const policyArbitrary = fc.record({
  effect: fc.constantFrom('permit', 'forbid'),
  principal: scope,
  action: actionScope,
  resource: scope,
  conditions: fc.array(fc.record({ kind: fc.constantFrom('when', 'unless'), body: expression }), { maxLength: 2 }),
}) as unknown as fc.Arbitrary<PolicyJson>
