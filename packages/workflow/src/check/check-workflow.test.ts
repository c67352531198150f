import type { CompositeTool } from '@thv/resources/shared/composite/composite-tool'
import { fixturesOf } from '@thv/resources/testing/fixtures'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ancestorsOf } from './ancestors.ts'
import { checkWorkflow } from './check-workflow.ts'

type Step = CompositeTool['steps'][number]

const echo = (id: string, args: Record<string, unknown> = {}, rest: Partial<Step> = {}): Step => ({
  id,
  tool: 'echo',
  arguments: args,
  ...rest,
})
const tool = (changes: Partial<CompositeTool> = {}): CompositeTool => ({
  name: 'a',
  description: 'A.',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
  steps: [echo('one')],
  ...changes,
})
const messages = (changes: Partial<CompositeTool>) => checkWorkflow(tool(changes)).problems.map(({ message }) => message)

describe('checkWorkflow', () => {
  it.each(fixturesOf('virtualmcpcompositetooldefinitions').map(({ manifest }) => [manifest.metadata.name, manifest.spec as CompositeTool]))(
    'accepts the example %s',
    (_name, spec) => {
      expect(checkWorkflow(spec)).toMatchObject({ problems: [], workflow: { tool: { name: spec.name } } })
    },
  )

  it.each<[string, Partial<CompositeTool>, string]>([
    [
      'a syntax error',
      { steps: [echo('one', { a: 'x {{.params.city' })] },
      'spec.steps[0].arguments.a (step one): column 3: the action is not closed: }} is missing',
    ],
    [
      'an error deep in the arguments',
      { steps: [echo('one', { a: [{ b: '{{foo}}' }] })] },
      'spec.steps[0].arguments.a[0].b (step one): column 3: there is no function "foo"',
    ],
    [
      'an unknown parameter',
      { steps: [echo('one', { a: '{{.params.town}}' })] },
      'spec.steps[0].arguments.a (step one): column 3: the tool has no parameter "town"',
    ],
    [
      'an unknown step',
      { steps: [echo('one', { a: '{{.steps.zero.output}}' })] },
      'spec.steps[0].arguments.a (step one): column 3: there is no step "zero"',
    ],
    [
      'a step that is no ancestor',
      { steps: [echo('one'), echo('two', { a: 'x{{.steps.one.output.b}}' })] },
      'spec.steps[1].arguments.a (step two): column 4: step one may not be done yet: add it to dependsOn',
    ],
    [
      'its own result',
      { steps: [echo('one', { a: '{{.steps.one.output}}' })] },
      'spec.steps[0].arguments.a (step one): column 3: step one cannot use its own result',
    ],
    [
      'an unknown member of a step',
      { steps: [echo('one'), echo('two', { a: '{{.steps.one.result}}' }, { dependsOn: ['one'] })] },
      'spec.steps[1].arguments.a (step two): column 3: step one has no "result", only status, output, content, error',
    ],
    [
      '.vars',
      { steps: [echo('one', { a: '{{.vars.x}}' })] },
      'spec.steps[0].arguments.a (step one): column 3: there is no .vars: templates know .params, .steps and .workflow, and in a loop .forEach',
    ],
    [
      '.forEach outside of a loop',
      { steps: [echo('one', { a: '{{.forEach.item}}' })] },
      'spec.steps[0].arguments.a (step one): column 3: .forEach is only known inside a loop',
    ],
    [
      'the wrong item',
      {
        steps: [
          { id: 'one', type: 'forEach', collection: '[1]', itemVar: 'file', step: { tool: 'echo', arguments: { a: '{{.forEach.item}}' } } },
        ],
      },
      'spec.steps[0].step.arguments.a (step one): column 3: .forEach has no "item", only file, index',
    ],
    [
      'a name through with, a variable and index',
      { steps: [echo('one', { a: '{{with $s := .steps}}{{(index $s "zero").output}}{{end}}' })] },
      'spec.steps[0].arguments.a (step one): column 31: there is no step "zero"',
    ],
    [
      'a result that a skipped step does not have',
      {
        steps: [
          echo('one', {}, { condition: '{{eq .params.city "x"}}' }),
          echo('two', { a: '{{.steps.one.output.b}}' }, { dependsOn: ['one'] }),
        ],
      },
      'spec.steps[1].arguments.a (step two): column 3: step one may be skipped or fail, and then has no b: add b to its defaultResults',
    ],
    [
      'a result that a failed step does not have, in the output',
      {
        steps: [echo('one', {}, { onError: { action: 'continue' } })],
        output: { properties: { b: { type: 'string', value: '{{.steps.one.output.b}}' } } },
      },
      'spec.output.properties.b.value: column 3: step one may be skipped or fail, and then has no b: add b to its defaultResults',
    ],
    [
      'an unknown result of a question',
      {
        steps: [
          { id: 'ask', type: 'elicitation', message: 'Go?' },
          echo('two', { a: '{{.steps.ask.output.answer}}' }, { dependsOn: ['ask'] }),
        ],
      },
      'spec.steps[1].arguments.a (step two): column 3: the output of step ask has no "answer", only action, content',
    ],
    [
      'an unknown dependency',
      { steps: [echo('one', {}, { dependsOn: ['zero'] })] },
      'spec.steps[0].dependsOn names zero, but there is no such step',
    ],
    [
      'a cycle',
      { steps: [echo('one', {}, { dependsOn: ['two'] }), echo('two', {}, { dependsOn: ['one'] })] },
      'the steps wait for each other (one → two → one): remove one of these dependsOn entries',
    ],
    ['two steps of one id', { steps: [echo('one'), echo('one')] }, 'spec.steps[1].id (step one): another step has the same id'],
    [
      'a condition that is none',
      { steps: [echo('one', {}, { condition: 'maybe' })] },
      'spec.steps[0].condition (step one): must give true or false',
    ],
    [
      'no schema',
      { parameters: { type: 'object', properties: { a: { type: 'text' } } } },
      'spec.parameters: is not a JSON Schema: schema is invalid: data/properties/a/type must be equal to one of the allowed values, data/properties/a/type must be array, data/properties/a/type must match a schema in anyOf',
    ],
    [
      'a schema that refers elsewhere',
      { parameters: { type: 'object', $ref: 'https://example.com/x' } },
      "spec.parameters: is not a JSON Schema: can't resolve reference https://example.com/x from id #",
    ],
    [
      'a bad pattern',
      { parameters: { type: 'object', properties: { a: { pattern: '(' } } } },
      'spec.parameters: is not a JSON Schema: Invalid regular expression: /(/u: Unterminated group',
    ],
    [
      'a default of the wrong type',
      { parameters: { type: 'object', properties: { a: { type: 'integer', default: 'x' } } } },
      'spec.parameters.properties.a.default: must be integer',
    ],
    [
      'a default of the output of the wrong type',
      { output: { properties: { a: { type: 'integer', value: '{{.params.city}}', default: 'x' } } } },
      'spec.output.properties.a.default: must be of type integer',
    ],
    [
      'a list that is none',
      { steps: [{ id: 'one', type: 'forEach', collection: '{}', step: { tool: 'echo' } }] },
      'spec.steps[0].collection (step one): must give a list, as a template or as JSON',
    ],
    [
      'a loop that is repeated',
      { steps: [{ id: 'one', type: 'forEach', collection: '[]', step: { tool: 'echo' }, onError: { retryCount: 1 } }] },
      'spec.steps[0].onError.retryCount (step one): a loop is not repeated as a whole: set onError on its step',
    ],
    [
      'a question that is open too long',
      { steps: [{ id: 'one', type: 'elicitation', message: 'x', timeout: '11m' }] },
      'spec.steps[0].timeout (step one): a question can be open for 10m at most',
    ],
    [
      'a question with a nested form',
      { steps: [{ id: 'one', type: 'elicitation', message: 'x', schema: { type: 'object', properties: { a: { type: 'object' } } } }] },
      'spec.steps[0].schema (step one): a is of type "object", but clients ask for plain values only',
    ],
    [
      'a wide printf',
      { steps: [echo('one', { a: '{{printf "%999999999d" 1}}' })] },
      'spec.steps[0].arguments.a (step one): column 10: the template exceeds a limit: a width or precision of printf over 1,000',
    ],
    ['no time', { timeout: '0s' }, 'spec.timeout: must be a duration over zero, such as 30s'],
  ])('reports %s', (_title, changes, message) => {
    expect(messages(changes)).toEqual([message])
  })

  it('gives a cycle, templates and schemas codes of their own', () => {
    const codes = (changes: Partial<CompositeTool>) => checkWorkflow(tool(changes)).problems.map(({ code, step }) => [code, step])
    expect(codes({ steps: [echo('one', {}, { dependsOn: ['one'] })] })).toEqual([['cycle', 'one']])
    expect(codes({ steps: [echo('one', { a: '{{' })] })).toEqual([['template', 'one']])
    expect(codes({ parameters: { city: { type: 'string' } } })).toEqual([['schema', undefined]])
    expect(codes({ parameters: { type: 'object', properties: { a: { type: 'text' } } } })).toEqual([['schema', undefined]])
  })

  it('does not ask for defaults where nothing is expected', () => {
    const steps = [
      echo('one', {}, { condition: '{{eq .params.city "x"}}' }),
      echo(
        'two',
        { a: '{{if .steps.one.output.b}}yes{{end}}', b: '{{or .steps.one.output.b "none"}}', c: '{{.steps.one.status}}' },
        { dependsOn: ['one'] },
      ),
    ]
    const output = { properties: { b: { type: 'string' as const, value: '{{.steps.one.output.b}}', default: 'none' } } }
    expect(messages({ steps, output })).toEqual([])
  })

  it('lets every name be a parameter of a schema that refers to others', () => {
    expect(
      messages({ parameters: { type: 'object', allOf: [{ properties: { x: {} } }] }, steps: [echo('one', { a: '{{.params.x}}' })] }),
    ).toEqual([])
  })

  it.each<[string, string, unknown, string[]]>([
    ['a definition, with a default that fits', '#/$defs/n', 3, []],
    ['a definition, with a default that does not', '#/$defs/n', 'x', ['spec.parameters.properties.a.default: must be integer']],
    [
      'another property, with a default that does not fit',
      '#/properties/b',
      'x',
      ['spec.parameters.properties.a.default: must be integer'],
    ],
    ['a part that only the whole schema has', '#/allOf/0', 'x', []],
  ])('a parameter may refer to %s', (_title, $ref, value, expected) => {
    const properties = { a: { $ref, default: value }, b: { type: 'integer' } }
    const parameters = { type: 'object', $defs: { n: { type: 'integer' } }, allOf: [{ type: ['object', 'integer'] }], properties }
    expect(messages({ parameters })).toEqual(expected)
  })

  it('names the member of a default that does not fit', () => {
    const inner = { type: 'object', properties: { 'c.d': { type: 'integer' } } }
    const properties = { 'a/b~': { ...inner, default: { 'c.d': 'x' } }, a: { ...inner, default: { 'c.d': 1 } } }
    expect(messages({ parameters: { type: 'object', properties } })).toEqual([
      'spec.parameters.properties.a/b~.default: c.d must be integer',
    ])
  })

  describe('a hostile definition does not hold up its reader:', () => {
    const named = (count: number, value: unknown) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, value]))

    it('1,000 defaults that take as long as they may', () => {
      const properties = named(1_000, { pattern: '^(a+)+$', default: `${'a'.repeat(40)}b` })
      expect(messages({ parameters: { type: 'object', properties } })).toEqual([
        'spec.parameters.properties.p0.default: the schema takes too long to check on this value',
      ])
    })

    it.each([
      ['references to a definition of as many members', {}],
      ['defaults of such references', { default: null }],
    ])('1,000 %s', (_title, more) => {
      const large = { type: ['object', 'null'], properties: named(1_000, { type: 'string', minLength: 1 }) }
      const properties = named(1_000, { $ref: '#/$defs/large', ...more })
      expect(messages({ parameters: { type: 'object', $defs: { large }, properties } })).toEqual([])
    })

    it('messages that quote a long text', () => {
      const [message = ''] = messages({ parameters: { type: 'object', properties: { a: { pattern: `(${'x'.repeat(50_000)}` } } } })
      expect(message.length).toBeLessThan(1_100)
      expect(message).toMatch(/^spec\.parameters: is not a JSON Schema: Invalid regular expression: .*…$/)
    })
  })

  it('names the path of an inline tool', () => {
    const [problem] = checkWorkflow(tool({ steps: [echo('one', { a: '{{' })] }), 'spec.config.compositeTools[3]').problems
    expect(problem?.field).toBe('spec.config.compositeTools[3].steps[0].arguments.a')
  })

  it('reports at most fifty problems', () => {
    const args = Object.fromEntries(Array.from({ length: 80 }, (_, index) => [`a${index}`, '{{']))
    expect(messages({ steps: [echo('one', args)] })).toHaveLength(50)
  })

  it('never throws, whatever the strings hold', () => {
    const piece = fc.constantFrom(
      '{{',
      '}}',
      '.',
      'params',
      'steps',
      '$x',
      ' ',
      '|',
      '(',
      ')',
      'if',
      'end',
      'range',
      '"',
      '`',
      ':=',
      '-',
      '%d',
      'printf',
      'é',
      '\n',
      '0x',
      '1e9',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), fc.string(), (pieces, text) => {
        const steps = [echo('one', { a: pieces.join(''), b: text }, { condition: `{{${pieces.join(' ')}}}` })]
        expect(Array.isArray(messages({ steps }))).toBe(true)
      }),
      { numRuns: 500 },
    )
  })
})

describe('ancestorsOf', () => {
  it('is the transitive closure, also of a cycle', () => {
    const ancestors = ancestorsOf([
      { id: 'a', dependsOn: [] },
      { id: 'b', dependsOn: ['a', 'missing'] },
      { id: 'c', dependsOn: ['b'] },
      { id: 'd', dependsOn: ['e'] },
      { id: 'e', dependsOn: ['d'] },
    ])
    expect([...(ancestors.get('c') ?? [])].toSorted()).toEqual(['a', 'b'])
    expect([...(ancestors.get('d') ?? [])].toSorted()).toEqual(['d', 'e'])
  })
})
