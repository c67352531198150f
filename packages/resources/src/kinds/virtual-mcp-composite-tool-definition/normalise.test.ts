import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CanonicalCompositeStep, CanonicalCompositeTool, CanonicalOnError } from '../../shared/composite/composite-tool-normalise.ts'
import { fixturesOf } from '../../testing/fixtures.ts'
import { normaliseVirtualMcpCompositeToolDefinition as normalise } from './normalise.ts'
import type { VirtualMCPCompositeToolDefinition } from './schema.ts'

type Spec = VirtualMCPCompositeToolDefinition['spec']
type Step = Spec['steps'][number]

const tool = (changes: Partial<Spec> = {}): Spec => ({ name: 'a', description: 'A.', steps: [{ id: 'one', tool: 'echo' }], ...changes })
const stepsOf = (spec: Spec) => normalise({ spec }).spec.steps
const problemsOf = (spec: Spec) => normalise({ spec }).problems

describe('normaliseVirtualMcpCompositeToolDefinition', () => {
  it('fills in what the steps leave open', () => {
    expect(normalise({ spec: tool() })).toEqual({
      problems: [],
      spec: {
        name: 'a',
        description: 'A.',
        timeout: '30m',
        steps: [
          {
            id: 'one',
            type: 'tool',
            tool: 'echo',
            arguments: {},
            dependsOn: [],
            timeout: '5m',
            onError: { action: 'abort', retryCount: 0, retryDelay: '1s' },
          },
        ],
      },
    })
  })

  it('fills in what a question and a loop leave open', () => {
    const [question, loop] = stepsOf(
      tool({
        steps: [
          { id: 'ask', type: 'elicitation', message: 'Go on?' },
          { id: 'each', type: 'forEach', collection: '[]', maxParallel: 0, step: { tool: 'echo' } },
        ],
      }),
    )
    expect(question).toMatchObject({ onDecline: { action: 'abort' }, onCancel: { action: 'abort' }, message: 'Go on?' })
    expect(loop).toMatchObject({
      itemVar: 'item',
      maxParallel: 10,
      maxIterations: 100,
      step: { type: 'tool', tool: 'echo', arguments: {} },
    })
  })

  it.each<[string, Step['onError'], Partial<CanonicalOnError>]>([
    ['retryCount', { action: 'retry', retryCount: 3 }, { action: 'retry', retryCount: 3 }],
    ['maxRetries', { action: 'retry', maxRetries: 3, retryDelay: '5s' }, { action: 'retry', retryCount: 3, retryDelay: '5s' }],
    ['both, which agree', { retryCount: 3, maxRetries: 3 }, { retryCount: 3 }],
    ['retries before an abort', { action: 'abort', maxRetries: 2 }, { action: 'abort', retryCount: 2 }],
  ])('reads %s', (_title, onError, expected) => {
    const spec = tool({ steps: [{ id: 'one', tool: 'echo', ...(onError && { onError }) }] })
    expect(stepsOf(spec)[0]?.onError).toMatchObject(expected)
    expect(problemsOf(spec)).toEqual([])
  })

  it('reports two counts that differ, also in an inner step', () => {
    const onError = { retryCount: 1, maxRetries: 2 }
    const steps: Step[] = [{ id: 'a', type: 'forEach', collection: '[]', step: { tool: 'echo', onError } }]
    expect(problemsOf(tool({ steps }))).toEqual([
      expect.objectContaining({ field: 'spec.steps[0].step.onError.retryCount', code: 'conflicting_spellings' }),
    ])
  })

  it('honours failureMode as the default action of the steps, but not inside a loop', () => {
    const steps: Step[] = [
      { id: 'plain', tool: 'echo' },
      { id: 'counted', tool: 'echo', onError: { maxRetries: 1 } },
      { id: 'own', tool: 'echo', onError: { action: 'abort' } },
      { id: 'loop', type: 'forEach', collection: '[]', step: { tool: 'echo' } },
    ]
    const { spec } = normalise({ spec: tool({ failureMode: 'continue', steps }) })
    expect(spec.steps.map((step) => step.onError.action)).toEqual(['continue', 'continue', 'abort', 'continue'])
    expect(spec.steps[3]).toMatchObject({ step: { onError: { action: 'abort' } } })
    expect(spec).not.toHaveProperty('failureMode')
  })

  it.each<[string, Spec['parameters'], string[]]>([
    ['a schema of type object', { type: 'object', properties: {} }, []],
    ['nothing', {}, []],
    ['bare parameters', { name: { type: 'string' } }, ['spec.parameters']],
    ['a schema of another type', { type: 'string' }, ['spec.parameters']],
  ])('checks parameters: %s', (_title, parameters, fields) => {
    expect(problemsOf(tool({ ...(parameters && { parameters }) })).map((problem) => problem.field)).toEqual(fields)
  })

  it('reports a dependency on a step that does not exist', () => {
    const steps: Step[] = [{ id: 'a', tool: 'echo', dependsOn: ['b'] }]
    expect(problemsOf(tool({ steps }))).toEqual([
      { field: 'spec.steps[0].dependsOn', code: 'missing', message: 'spec.steps[0].dependsOn names b, but there is no such step' },
    ])
  })

  it('reports a cycle with its path', () => {
    const steps: Step[] = [
      { id: 'start', tool: 'echo' },
      { id: 'a', tool: 'echo', dependsOn: ['start', 'c'] },
      { id: 'b', tool: 'echo', dependsOn: ['a'] },
      { id: 'c', tool: 'echo', dependsOn: ['b'] },
    ]
    const [problem] = problemsOf(tool({ steps }))
    expect(problem).toMatchObject({ field: 'spec.steps[1].dependsOn', code: 'forbidden' })
    expect(problem?.message).toContain('a → c → b → a')
  })

  it.each<[string, Record<string, unknown>, string]>([
    ['no object', { inner: 3 }, 'wrong_type'],
    ['no type', { inner: { value: 'x' } }, 'wrong_type'],
    ['an unknown type', { inner: { type: 'date', value: 'x' } }, 'wrong_type'],
    ['a value that is no template', { inner: { type: 'string', value: 3 } }, 'wrong_type'],
    ['a description that is no text', { inner: { type: 'string', value: 'x', description: 3 } }, 'wrong_type'],
    ['members of a text', { inner: { type: 'string', properties: {} } }, 'wrong_type'],
    ['neither value nor members', { inner: { type: 'object' } }, 'missing'],
    ['both', { inner: { type: 'object', value: 'x', properties: {} } }, 'missing'],
    ['an unknown member', { inner: { type: 'string', value: 'x', format: 'date' } }, 'forbidden'],
  ])('reports a nested result with %s', (_title, properties, code) => {
    const output = { properties: { outer: { type: 'object' as const, properties } } }
    expect(problemsOf(tool({ output })).map((problem) => problem.code)).toEqual([code])
    expect(problemsOf(tool({ output }))[0]?.field).toContain('spec.output.properties.outer.properties.inner')
  })

  it('reports results that lie too deep, and keeps a name that is special in JavaScript', () => {
    const nested = (depth: number): Record<string, unknown> =>
      depth === 0 ? { type: 'string', value: 'x' } : { type: 'object', properties: { inner: nested(depth - 1) } }
    const output = (depth: number) => ({ properties: { outer: nested(depth) } }) as unknown as NonNullable<Spec['output']>
    expect(problemsOf(tool({ output: output(9) }))).toEqual([])
    expect(problemsOf(tool({ output: output(10) }))).toEqual([expect.objectContaining({ code: 'forbidden' })])
    const special = JSON.parse('{"properties": {"__proto__": {"type": "string", "value": "x"}}}')
    expect(Object.keys(normalise({ spec: tool({ output: special }) }).spec.output?.properties ?? {})).toEqual(['__proto__'])
  })

  it.each(fixturesOf('virtualmcpcompositetooldefinitions').map(({ manifest }) => [manifest.metadata.name, manifest.spec as Spec] as const))(
    'finds nothing wrong with the example %s',
    (_name, spec) => {
      const once = normalise({ spec })
      expect(once.problems).toEqual([])
      expect(normalise({ spec: once.spec as Spec })).toEqual(once)
    },
  )

  it('gives the same object for every accepted spelling, and leaves a canonical one alone', () => {
    fc.assert(
      fc.property(canonicalTool, fc.infiniteStream(fc.boolean()), (canonical, coins) => {
        expect(normalise({ spec: canonical as Spec })).toEqual({ spec: canonical, problems: [] })
        expect(normalise({ spec: respelled(canonical, coins) })).toEqual({ spec: canonical, problems: [] })
      }),
    )
  })

  it('finds every cycle, and none where there is none', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 12 }).chain(dagOf), fc.nat(), fc.nat(), (steps, x, y) => {
        expect(problemsOf(tool({ steps }))).toEqual([])
        const [from, to] = [x % steps.length, y % steps.length].toSorted((a, b) => a - b) as [number, number]
        const closed = steps.map((step, index) => {
          // A way from the later one to the earlier one, and back.
          if (index === to && from !== to) return { ...step, dependsOn: [...new Set([...(step.dependsOn ?? []), `s${from}`])] }
          return index === from ? { ...step, dependsOn: [...(step.dependsOn ?? []), `s${to}`] } : step
        })
        expect(problemsOf(tool({ steps: closed }))).toEqual([expect.objectContaining({ code: 'forbidden' })])
      }),
    )
  })
})

function dagOf(size: number): fc.Arbitrary<Step[]> {
  const edges = fc.array(fc.boolean(), { minLength: size * size, maxLength: size * size })
  return edges.map((bits) =>
    Array.from({ length: size }, (_, index) => ({
      id: `s${index}`,
      tool: 'echo',
      dependsOn: Array.from({ length: index }, (__, other) => other)
        .filter((other) => bits[index * size + other])
        .map((other) => `s${other}`),
    })),
  )
}

/** Writes a canonical tool with randomly chosen spellings, leaving out what is the default anyway. */
function respelled(canonical: CanonicalCompositeTool, coins: fc.Stream<boolean>): Spec {
  const coin = () => coins.next().value as boolean
  const failureMode = coin() ? ('continue' as const) : ('abort' as const)
  const { timeout, steps, output, ...rest } = structuredClone(canonical)
  return {
    ...rest,
    ...unless(timeout === '30m' && coin(), { timeout }),
    ...unless(failureMode === 'abort' && coin(), { failureMode }),
    steps: steps.map((step) => respelledStep(step)),
    ...(output && {
      output: { properties: output.properties, ...unless(output.required.length === 0 && coin(), { required: output.required }) },
    }),
  } as Spec

  function respelledStep(step: CanonicalCompositeStep): Step {
    const { onError, dependsOn, timeout: limit, ...others } = step
    return {
      ...withoutDefaults(others),
      ...unless(dependsOn.length === 0 && coin(), { dependsOn }),
      ...unless(limit === '5m' && coin(), { timeout: limit }),
      onError: respelledOnError(onError, failureMode),
      ...(step.type === 'forEach' && {
        step: { ...withoutDefaults(step.step), onError: respelledOnError(step.step.onError, 'abort') },
      }),
    } as Step
  }

  function respelledOnError({ action, retryCount, retryDelay }: CanonicalOnError, usual: string): Step['onError'] {
    const both = coin()
    return {
      ...unless(action === usual && coin(), { action }),
      ...(both || coin() ? { retryCount, ...(both && { maxRetries: retryCount }) } : { maxRetries: retryCount }),
      ...unless(retryDelay === '1s' && coin(), { retryDelay }),
    }
  }

  function withoutDefaults(step: object): object {
    return Object.fromEntries(
      Object.entries(step).filter(
        ([key, value]) => key === 'message' || JSON.stringify(DEFAULTS[key]) !== JSON.stringify(value) || !coin(),
      ),
    )
  }
}

const DEFAULTS: Record<string, unknown> = {
  type: 'tool',
  arguments: {},
  onDecline: { action: 'abort' },
  onCancel: { action: 'abort' },
  itemVar: 'item',
  maxParallel: 10,
  maxIterations: 100,
  timeout: '5m',
}

const unless = <T extends object>(leftOut: boolean, fields: T): Partial<T> => (leftOut ? {} : fields)

const word = fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/)
const time = fc.constantFrom('30m', '5m', '1s', '250ms')
const retries = fc.integer({ min: 1, max: 10 })
const anyOnError: fc.Arbitrary<CanonicalOnError> = fc.oneof(
  fc.record({
    action: fc.constantFrom('abort' as const, 'continue' as const),
    retryCount: fc.integer({ min: 0, max: 10 }),
    retryDelay: time,
  }),
  fc.record({ action: fc.constant('retry' as const), retryCount: retries, retryDelay: time }),
)
const anyArguments = fc.dictionary(word, fc.oneof(word, fc.integer(), fc.constant({ deep: [1, null] })), {
  maxKeys: 2,
  noNullPrototype: true,
})
const common = { timeout: time, onError: anyOnError }
const answer = fc.record({ action: fc.constantFrom('abort' as const, 'continue' as const, 'skip_remaining' as const) })
const anyToolStep = fc.record(
  { type: fc.constant('tool' as const), tool: word, arguments: anyArguments, condition: word, defaultResults: anyArguments, ...common },
  { requiredKeys: ['type', 'tool', 'arguments', 'timeout', 'onError'] },
)
const anyStep = fc.oneof(
  anyToolStep,
  fc.record(
    { type: fc.constant('elicitation' as const), message: word, schema: anyArguments, onDecline: answer, onCancel: answer, ...common },
    { requiredKeys: ['type', 'message', 'onDecline', 'onCancel', 'timeout', 'onError'] },
  ),
  fc.record({
    type: fc.constant('forEach' as const),
    collection: word,
    itemVar: fc.constantFrom('item', 'file'),
    maxParallel: fc.integer({ min: 1, max: 50 }),
    maxIterations: fc.integer({ min: 1, max: 1000 }),
    step: anyToolStep,
    ...common,
  }),
)
const canonicalTool = fc
  .record(
    {
      name: word,
      description: word,
      parameters: fc.constant({ type: 'object', properties: { a: { type: 'string' } } }),
      annotations: fc.record({ readOnlyHint: fc.boolean() }),
      timeout: time,
      steps: fc.array(anyStep, { minLength: 1, maxLength: 4 }),
      output: fc.record({
        properties: fc.dictionary(word, fc.record({ type: fc.constant('string' as const), value: word }), {
          maxKeys: 2,
          noNullPrototype: true,
        }),
        required: fc.constant<string[]>([]),
      }),
    },
    { requiredKeys: ['name', 'description', 'timeout', 'steps'] },
  )
  .map(
    (canonical): CanonicalCompositeTool => ({
      ...canonical,
      steps: canonical.steps.map((step, index) => ({ ...step, id: `s${index}`, dependsOn: index % 2 ? [`s${index - 1}`] : [] })),
    }),
  )
