import type { JsonObject } from '../kind-schema.ts'
import type { SchemaNode } from '../schema-node.ts'

/** A schema that the real server refuses, or not: the answer is recorded. */
export const ODD_SCHEMAS: Readonly<Record<string, SchemaNode>> = {
  'no type at the root': { properties: { spec: { type: 'object' } } },
  'not an object': { type: 'string' },
  'a field without type': field({}),
  'an array without items': field({ type: 'array' }),
  'items without type': field({ type: 'array', items: {} }),
  'an unknown type': field({ type: 'text' }),
  'type null': field({ type: 'null' }),
  'nullable at the root': { type: 'object', nullable: true },
  'type inside anyOf': field({ type: 'string', anyOf: [{ type: 'string' }, { minLength: 2 }] }),
  'int or string by anyOf': field({ 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] }),
  'int or string by allOf': field({
    'x-kubernetes-int-or-string': true,
    allOf: [{ anyOf: [{ type: 'integer' }, { type: 'string' }] }, { pattern: '^x' }],
  }),
  'description inside oneOf': field({
    type: 'object',
    properties: { a: { type: 'string' } },
    oneOf: [{ required: ['a'], description: 'x' }],
  }),
  'a property only inside allOf': field({ type: 'object', properties: {}, allOf: [{ properties: { a: { minLength: 1 } } }] }),
  'default inside not': field({ type: 'string', not: { default: 'x' } }),
  uniqueItems: field({ type: 'array', items: { type: 'string' }, uniqueItems: true }),
  'properties and additionalProperties': field({
    type: 'object',
    properties: { a: { type: 'string' } },
    additionalProperties: { type: 'string' },
  }),
  'additionalProperties at the root': { type: 'object', additionalProperties: { type: 'string' } },
  'preserve unknown fields false': field({ type: 'object', 'x-kubernetes-preserve-unknown-fields': false }),
  'int or string that keeps unknown fields': field({ 'x-kubernetes-int-or-string': true, 'x-kubernetes-preserve-unknown-fields': true }),
  'metadata with labels': { type: 'object', properties: { metadata: { type: 'object', properties: { labels: { type: 'object' } } } } },
  'metadata with a name': {
    type: 'object',
    properties: { metadata: { type: 'object', properties: { name: { type: 'string', maxLength: 5 } } } },
  },
  'kind that is no string': { type: 'object', properties: { kind: { type: 'integer' } } },
  'an embedded resource without type': field({ 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true }),
  'an embedded resource without properties': field({ type: 'object', 'x-kubernetes-embedded-resource': true }),
  'a bad pattern': field({ type: 'string', pattern: '(' }),
  'look-ahead': field({ type: 'string', pattern: '^(?!x).*$' }),
  'a back reference': field({ type: 'string', pattern: '(a)\\1' }),
  'a pattern with flags and classes': field({ type: 'string', pattern: '(?i)^[[:alpha:]]+\\.\\d{1,3}$' }),
  'a list map without keys': field({ type: 'array', items: { type: 'object' }, 'x-kubernetes-list-type': 'map' }),
  'a list map with an optional key': field({
    type: 'array',
    items: { type: 'object', properties: { k: { type: 'string' } } },
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['k'],
  }),
  'a list map with an unknown key': field({
    type: 'array',
    items: { type: 'object', required: ['k'], properties: { k: { type: 'string' } } },
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['nope'],
  }),
  'keys of a set': field({
    type: 'array',
    items: { type: 'string' },
    'x-kubernetes-list-type': 'set',
    'x-kubernetes-list-map-keys': ['k'],
  }),
  'a set of granular objects': field({ type: 'array', items: { type: 'object', properties: {} }, 'x-kubernetes-list-type': 'set' }),
  'a list type on a string': field({ type: 'string', 'x-kubernetes-list-type': 'set' }),
  'an unknown list type': field({ type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'bag' }),
  'an unknown map type': field({ type: 'object', 'x-kubernetes-map-type': 'loose' }),
  'a default of the wrong type': field({ type: 'string', default: 3 }),
  'a default below the minimum': field({ type: 'integer', minimum: 5, default: 1 }),
  'a default not in the enum': field({ type: 'string', enum: ['a', 'b'], default: 'c' }),
  'a default with unknown fields': field({ type: 'object', properties: { a: { type: 'string' } }, default: { b: 'x' } }),
  'a default that lacks a required field': field({ type: 'object', required: ['a'], properties: { a: { type: 'string' } }, default: {} }),
  'a default in additionalProperties': field({ type: 'object', additionalProperties: { type: 'string', default: 'x' } }),
  'a default against a rule': field({
    type: 'object',
    properties: { n: { type: 'integer' } },
    default: { n: 1 },
    'x-kubernetes-validations': [{ rule: 'self.n > 3' }],
  }),
  'a rule with a syntax error': ruled({ type: 'string' }, 'self ==='),
  'a rule with an unknown field': ruled({ type: 'object', properties: { a: { type: 'string' } } }, 'self.b == "x"'),
  'has of an unknown field': ruled({ type: 'object', properties: { a: { type: 'string' } } }, 'has(self.b)'),
  'a rule that is no bool': ruled({ type: 'string' }, 'self'),
  'a rule that compares apples and pears': ruled({ type: 'integer' }, 'self == "x"'),
  'a rule with an unknown function': ruled({ type: 'string' }, 'self.frobnicate()'),
  'a rule with a bad pattern': ruled({ type: 'string' }, 'self.matches("(")'),
  'an empty rule': ruled({ type: 'string' }, ' '),
  'a rule on an untyped node': ruled({ 'x-kubernetes-preserve-unknown-fields': true }, 'true'),
  'a message with a line break': field({ type: 'string', 'x-kubernetes-validations': [{ rule: 'true', message: 'a\nb' }] }),
  'a message expression that is no string': field({
    type: 'string',
    'x-kubernetes-validations': [{ rule: 'true', messageExpression: '1' }],
  }),
  'an unknown reason': field({ type: 'string', 'x-kubernetes-validations': [{ rule: 'true', reason: 'Because' }] }),
  'a field path to nowhere': field({
    type: 'object',
    properties: { a: { type: 'string' } },
    'x-kubernetes-validations': [{ rule: 'true', fieldPath: '.b' }],
  }),
  'oldSelf in an atomic list': field({
    type: 'array',
    maxItems: 5,
    items: { type: 'string', maxLength: 5, 'x-kubernetes-validations': [{ rule: 'self == oldSelf' }] },
  }),
  'optionalOldSelf without oldSelf': field({ type: 'string', 'x-kubernetes-validations': [{ rule: 'true', optionalOldSelf: true }] }),
  'functions of Kubernetes': field({
    type: 'string',
    maxLength: 20,
    'x-kubernetes-validations': [
      { rule: 'isURL(self) || isQuantity(self) || isIP(self) || isCIDR(self) || self.lowerAscii() == self' },
      { rule: "self.find('[0-9]+') == '' || self.findAll('[a-z]').size() >= 0" },
      { rule: "quantity('1Gi').isGreaterThan(quantity('1M')) && quantity('1').add(quantity('2')).compareTo(quantity('3')) == 0" },
      { rule: "ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.1.1') && url('https://a:1/b').getPort() == '1'" },
      { rule: "self.contains('x') || self.substring(0, 0) == '' || self.replace('a', 'b').trim().size() >= 0" },
    ],
  }),
}

/** One CRD whose fields exercise everything; objects of it follow. */
const ODD_FIELDS: Readonly<Record<string, SchemaNode>> = {
  text: { type: 'string', minLength: 2, maxLength: 4, pattern: '^[a-z]+$' },
  int: { type: 'integer', minimum: 1, maximum: 10, multipleOf: 2 },
  exclusive: { type: 'number', minimum: 0, exclusiveMinimum: true, maximum: 1, exclusiveMaximum: true },
  flag: { type: 'boolean' },
  choice: { type: 'string', enum: ['one', 'two'] },
  numberChoice: { type: 'integer', enum: [1, 2] },
  either: { 'x-kubernetes-int-or-string': true },
  list: { type: 'array', minItems: 1, maxItems: 2, items: { type: 'string', minLength: 1 } },
  set: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
  keyed: {
    type: 'array',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['name'],
    items: { type: 'object', required: ['name'], properties: { name: { type: 'string' }, value: { type: 'integer', maximum: 5 } } },
  },
  map: { type: 'object', minProperties: 1, maxProperties: 2, additionalProperties: { type: 'integer', minimum: 0 } },
  needy: {
    type: 'object',
    required: ['a', 'b'],
    properties: { a: { type: 'string' }, b: { type: 'object', required: ['c'], properties: { c: { type: 'string' } } } },
  },
  nullable: { type: 'string', nullable: true },
  nullableEnum: { type: 'string', nullable: true, enum: ['x'] },
  defaulted: {
    type: 'object',
    default: {},
    properties: { a: { type: 'string', default: 'x' }, b: { type: 'integer', nullable: true, default: 3 } },
  },
  free: {
    type: 'object',
    'x-kubernetes-preserve-unknown-fields': true,
    properties: { known: { type: 'object', properties: { a: { type: 'string' } } } },
  },
  anyKind: { 'x-kubernetes-preserve-unknown-fields': true },
  embedded: { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
  any: { type: 'object', properties: { a: { type: 'string' }, b: { type: 'string' } }, anyOf: [{ required: ['a'] }, { required: ['b'] }] },
  one: { type: 'object', properties: { a: { type: 'string' }, b: { type: 'string' } }, oneOf: [{ required: ['a'] }, { required: ['b'] }] },
  all: { type: 'string', allOf: [{ minLength: 3 }, { pattern: '^a' }] },
  not: { type: 'string', not: { enum: ['bad'] } },
  uri: { type: 'string', format: 'uri' },
  time: { type: 'string', format: 'date-time' },
  duration: { type: 'string', format: 'duration' },
  ipv4: { type: 'string', format: 'ipv4' },
  bytes: { type: 'string', format: 'byte' },
  int32: { type: 'integer', format: 'int32' },
  ruled: {
    type: 'object',
    properties: {
      min: { type: 'integer' },
      max: { type: 'integer' },
      name: { type: 'string', maxLength: 20 },
      index: { type: 'array', maxItems: 3, items: { type: 'integer' } },
    },
    'x-kubernetes-validations': [
      { rule: '!has(self.min) || !has(self.max) || self.min <= self.max', message: 'min must not exceed max', fieldPath: '.min' },
      {
        rule: '!has(self.name) || self.name != "bad"',
        messageExpression: '"the name " + self.name + " is bad"',
        reason: 'FieldValueForbidden',
      },
      { rule: '!has(self.index) || self.index[1] > 0' },
    ],
  },
  fixed: { type: 'string', maxLength: 20, 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'is immutable' }] },
  grows: {
    type: 'array',
    maxItems: 5,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['name'],
    items: {
      type: 'object',
      required: ['name'],
      properties: { name: { type: 'string', maxLength: 10 }, size: { type: 'integer' } },
      'x-kubernetes-validations': [{ rule: 'self.size >= oldSelf.size', message: 'must not shrink', fieldPath: '.size' }],
    },
  },
  optionalOld: {
    type: 'string',
    maxLength: 20,
    'x-kubernetes-validations': [{ rule: 'oldSelf.hasValue() || self != "late"', optionalOldSelf: true, message: 'late only later' }],
  },
}

/** Specs that are created; the answer is recorded. */
export const ODD_SPECS: readonly JsonObject[] = [
  {},
  ...['a', 'abcde', 'AB', 3, null, true, ['x'], {}].map((text) => ({ text }) as JsonObject),
  ...[0, 11, 3, 2.5, '2', 4].map((int) => ({ int }) as JsonObject),
  { exclusive: 0 },
  { exclusive: 1 },
  { exclusive: 0.5 },
  { flag: 'yes' },
  { choice: 'three' },
  { numberChoice: 3 },
  { either: 3 },
  { either: 'x' },
  { either: true },
  { either: 1.5 },
  { list: [] },
  { list: ['a', '', 'c'] },
  { list: 'x' },
  { set: ['a', 'b', 'a', 'a'] },
  { keyed: [{ name: 'a' }, { name: 'a', value: 9 }] },
  { keyed: [{ value: 1 }] },
  { map: {} },
  { map: { a: 1, b: -1, c: 'x' } },
  { needy: {} },
  { needy: { a: 'x', b: {} } },
  { nullable: null },
  { nullableEnum: null },
  { defaulted: null },
  { defaulted: { a: null, b: null } },
  { free: { x: { y: 1 }, known: { a: 'x', b: 'y' } } },
  { anyKind: [1, { a: null }] },
  { embedded: { apiVersion: 'v1' } },
  { embedded: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' }, spec: {} } },
  { any: {} },
  { one: { a: 'x', b: 'y' } },
  { one: {} },
  { all: 'b' },
  { not: 'bad' },
  { uri: 'not a uri' },
  { uri: 'https://example.com/x?y' },
  { time: 'yesterday' },
  { time: '2026-01-01T00:00:00Z' },
  { duration: 'soon' },
  { duration: '1h30m' },
  { ipv4: '1.2.3.256' },
  { bytes: '***' },
  { int32: 4294967296 },
  { ruled: { min: 3, max: 2, name: 'bad' } },
  { ruled: { index: [1] } },
  { ruled: { index: [1, 0] } },
  { unknown: 1, list: ['x'] },
  { optionalOld: 'late' },
  { text: 'AB', ruled: { min: 3, max: 2 } },
  { choice: 'three', ruled: { min: 3, max: 2 } },
]

/** From one spec to another; the first is stored without complaint. */
export const ODD_UPDATES: readonly (readonly [JsonObject, JsonObject])[] = [
  [{ fixed: 'a' }, { fixed: 'b' }],
  [{ fixed: 'a' }, { fixed: 'a', flag: true }],
  [{ fixed: 'a' }, {}],
  [{}, { fixed: 'a' }],
  [
    {
      grows: [
        { name: 'a', size: 2 },
        { name: 'b', size: 2 },
      ],
    },
    {
      grows: [
        { name: 'c', size: 1 },
        { name: 'b', size: 1 },
        { name: 'a', size: 3 },
      ],
    },
  ],
  [{ optionalOld: 'x' }, { optionalOld: 'late' }],
  [{ keyed: [{ name: 'a', value: 1 }] }, { keyed: [{ name: 'a', value: 9 }] }],
]

export function oddCrd(plural: string, root: SchemaNode): JsonObject {
  const kind = `${plural.charAt(0).toUpperCase()}${plural.slice(1)}`
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.odd.example.com` },
    spec: {
      group: 'odd.example.com',
      scope: 'Namespaced',
      names: { plural, singular: `${plural}x`, kind, listKind: `${kind}List` },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: root as unknown as JsonObject } }],
    },
  }
}

export const ODD_ROOT: SchemaNode = { type: 'object', properties: { spec: { type: 'object', properties: ODD_FIELDS } } }

function field(node: SchemaNode): SchemaNode {
  return { type: 'object', properties: { spec: { type: 'object', properties: { field: node } } } }
}

function ruled(node: SchemaNode, rule: string): SchemaNode {
  return field({ ...(node.type === 'string' && { maxLength: 20 }), ...node, 'x-kubernetes-validations': [{ rule }] })
}
