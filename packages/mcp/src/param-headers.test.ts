import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkParamHeaders, collectAnnotations, type ParamAnnotation, paramHeaders } from './param-headers.ts'
import { errorObjectOf } from './wire-errors.ts'

const schema = (properties: object, rest: object = {}) => ({ type: 'object', properties, ...rest })
const annotated = (name: unknown, type: unknown = 'string') => ({ type, 'x-mcp-header': name })

function annotationsOf(inputSchema: unknown): readonly ParamAnnotation[] {
  const result = collectAnnotations(inputSchema)
  if ('problem' in result) throw new Error(result.problem)
  return result.annotations
}

describe('collectAnnotations', () => {
  it('finds them through properties at any depth', () => {
    const found = annotationsOf(
      schema({
        region: annotated('Region'),
        count: annotated('Count', 'integer'),
        dry: annotated('Dry', 'boolean'),
        plain: { type: 'string' },
        nested: schema({ deeper: schema({ id: annotated("a!#$%&'*+-.^_`|~9") }) }),
      }),
    )
    expect(found).toEqual([
      { name: 'Region', path: ['region'] },
      { name: 'Count', path: ['count'] },
      { name: 'Dry', path: ['dry'] },
      { name: "a!#$%&'*+-.^_`|~9", path: ['nested', 'deeper', 'id'] },
    ])
  })

  it.each([undefined, null, true, {}, [], 'x', schema({}), { properties: [] }, schema({ a: true })])('finds none in %j', (inputSchema) => {
    expect(collectAnnotations(inputSchema)).toEqual({ annotations: [] })
  })

  it('knows a property of that name, and data that looks like a schema, from an annotation', () => {
    const data = { 'x-mcp-header': 'A B', properties: { a: annotated('') } }
    expect(
      annotationsOf(
        schema(
          { 'x-mcp-header': { type: 'string' }, items: annotated('Items') },
          { default: data, examples: [data], const: data, enum: [data] },
        ),
      ),
    ).toEqual([{ name: 'Items', path: ['items'] }])
  })

  it.each<[string, unknown]>([
    ['an empty name', schema({ a: annotated('') })],
    ['a name with a space', schema({ a: annotated('A B') })],
    ['a name with a colon', schema({ a: annotated('A:') })],
    ['a name with a line end', schema({ a: annotated('A\r\nB') })],
    ['a name that is not ASCII', schema({ a: annotated('É') })],
    ['a name that is no string', schema({ a: annotated(1) })],
    ['null', schema({ a: annotated(null) })],
    ['type number', schema({ a: annotated('A', 'number') })],
    ['type object', schema({ a: annotated('A', 'object') })],
    ['type array', schema({ a: annotated('A', 'array') })],
    ['a list of types', schema({ a: annotated('A', ['string']) })],
    ['no type', schema({ a: { 'x-mcp-header': 'A' } })],
    ['the same name twice', schema({ a: annotated('A'), b: annotated('A') })],
    ['the same name in other letters', schema({ a: annotated('Region'), b: schema({ c: annotated('rEGION') }) })],
    ['the root', { type: 'string', 'x-mcp-header': 'A' }],
    ...['items', 'contains', 'additionalProperties', 'not', 'if', 'then', 'else', 'propertyNames'].map((keyword): [string, unknown] => [
      keyword,
      schema({ a: { type: 'array', [keyword]: annotated('A') } }),
    ]),
    ...['allOf', 'anyOf', 'oneOf', 'prefixItems', 'items'].map((keyword): [string, unknown] => [
      keyword,
      { [keyword]: [{}, schema({ a: annotated('A') })] },
    ]),
    ...['$defs', 'definitions', 'patternProperties', 'dependentSchemas'].map((keyword): [string, unknown] => [
      keyword,
      { [keyword]: { x: annotated('A') } },
    ]),
    ['properties below items', schema({ a: { type: 'array', items: schema({ b: annotated('A') }) } })],
  ])('refuses the tool for %s', (_, inputSchema) => {
    expect(collectAnnotations(inputSchema)).toEqual({ problem: expect.stringMatching(/.+: /) })
  })

  it('survives any schema, also a bottomless one', () => {
    const deep: { properties?: object } = {}
    let at = deep
    for (let i = 0; i < 100_000; i++) {
      const next = {}
      at.properties = { a: next }
      at = next
    }
    expect(collectAnnotations(deep)).toEqual({ problem: expect.stringContaining('nested deeper') })
    fc.assert(fc.property(fc.jsonValue(), (value) => typeof collectAnnotations(value) === 'object'))
  })
})

const annotations = annotationsOf(
  schema({
    text: annotated('Text'),
    count: annotated('Count', 'integer'),
    dry: annotated('Dry', 'boolean'),
    in: schema({ ner: annotated('Inner') }),
  }),
)

describe('paramHeaders', () => {
  it.each<[unknown, object]>([
    [
      { text: 'a', count: 7, dry: false, in: { ner: 'é' } },
      { 'mcp-param-text': 'a', 'mcp-param-count': '7', 'mcp-param-dry': 'false', 'mcp-param-inner': '=?base64?w6k=?=' },
    ],
    [{ text: null, in: null }, {}],
    [{}, {}],
    [undefined, {}],
    [{ text: '' }, { 'mcp-param-text': '=?base64??=' }],
    [{ count: 1.5, text: {}, dry: [] }, {}],
    [{ count: 2 ** 53 }, {}],
    [{ in: 'not an object' }, {}],
  ])('of %j are %j', (args, headers) => {
    expect(paramHeaders(annotations, args)).toEqual(headers)
  })

  it('reads no argument from a prototype', () => {
    const odd = annotationsOf(schema({ constructor: schema({ name: annotated('A') }), ['__proto__']: schema({ x: annotated('B') }) }))
    expect(paramHeaders(odd, {})).toEqual({})
  })
})

describe('checkParamHeaders', () => {
  const check = (args: unknown, headers: Record<string, string>) => {
    const rejection = checkParamHeaders(annotations, args, headers)
    return rejection === undefined ? 'ok' : errorObjectOf(rejection).message.replace('Header mismatch: ', '')
  }

  it.each<[unknown, Record<string, string>, string]>([
    [{ text: 'a' }, { 'mcp-param-text': ' a ' }, 'ok'],
    [{ text: 'a' }, { 'mcp-param-text': '=?base64?YQ==?=' }, 'ok'],
    [{ text: '=?base64?YQ==' }, { 'mcp-param-text': '=?base64?YQ==' }, 'ok'],
    [{ text: 'a' }, {}, 'Mcp-Param-Text is missing'],
    [{ text: 'a' }, { 'mcp-param-text': 'A' }, 'Mcp-Param-Text differs from the body'],
    [{ text: 'a' }, { 'mcp-param-text': '=?base64?YQ=?=' }, 'Mcp-Param-Text is malformed'],
    [{ text: 'a' }, { 'mcp-param-text': '=?base64?Y$==?=' }, 'Mcp-Param-Text is malformed'],
    [{ text: null }, { 'mcp-param-text': 'null' }, 'Mcp-Param-Text has no such value in the body'],
    [{}, { 'mcp-param-text': '' }, 'Mcp-Param-Text has no such value in the body'],
    [undefined, { 'mcp-param-dry': 'true' }, 'Mcp-Param-Dry has no such value in the body'],
    [{ count: 42 }, { 'mcp-param-count': '42' }, 'ok'],
    [{ count: 42 }, { 'mcp-param-count': '0042' }, 'ok'],
    [{ count: -3 }, { 'mcp-param-count': '-3' }, 'ok'],
    [{ count: 42 }, { 'mcp-param-count': '42.0' }, 'Mcp-Param-Count differs from the body'],
    [{ count: 42 }, { 'mcp-param-count': '0x2a' }, 'Mcp-Param-Count differs from the body'],
    [{ count: 42 }, { 'mcp-param-count': '43' }, 'Mcp-Param-Count differs from the body'],
    [{ count: 0 }, { 'mcp-param-count': '' }, 'Mcp-Param-Count differs from the body'],
    [{ count: 2 ** 53 }, { 'mcp-param-count': '9007199254740993' }, 'Mcp-Param-Count has no such value in the body'],
    [{ dry: true }, { 'mcp-param-dry': 'true' }, 'ok'],
    [{ dry: true }, { 'mcp-param-dry': 'TRUE' }, 'Mcp-Param-Dry differs from the body'],
    [{ in: { ner: 'x' } }, { 'mcp-param-inner': 'x' }, 'ok'],
    [{ in: { ner: 'x' } }, {}, 'Mcp-Param-Inner is missing'],
    [{}, { 'mcp-param-unknown': 'x' }, 'ok'],
  ])('%j with %j: %s', (args, headers, outcome) => {
    expect(check(args, headers)).toBe(outcome)
  })

  it('takes what paramHeaders made, for any arguments', () => {
    const value = fc.oneof(
      fc.string({ unit: 'binary' }).map((s) => s.toWellFormed()),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.double(),
      fc.jsonValue(),
    )
    fc.assert(
      fc.property(fc.record({ text: value, count: value, dry: value, in: fc.record({ ner: value }) }, { requiredKeys: [] }), (args) => {
        const clean = JSON.parse(JSON.stringify(args))
        expect(check(clean, paramHeaders(annotations, clean))).toBe('ok')
      }),
    )
  })
})
