import { TestClock } from '@thv/kernel/clock'
import type { Json, JsonObject } from '@thv/kernel/json'
import type { CompositeTool } from '@thv/resources/shared/composite/composite-tool'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkWorkflow } from '../check/check-workflow.ts'
import { type RunOptions, runWorkflow } from './run-workflow.ts'
import type { Answer, ToolCall, ToolResult, WorkflowEvent, WorkflowHost } from './workflow-host.ts'

type Step = CompositeTool['steps'][number]
type Answering = (call: ToolCall, signal: AbortSignal) => Promise<ToolResult> | ToolResult

const text = (value: string): ToolResult => ({ content: [{ type: 'text', text: value }] })
const data = (value: JsonObject): ToolResult => ({ content: [], structuredContent: value })
const broken = (value: string): ToolResult => ({ content: [{ type: 'text', text: value }], isError: true })
const step = (id: string, rest: Partial<Step> = {}): Step => ({ id, tool: id, ...rest })

function workflowOf(changes: Partial<CompositeTool>) {
  const { workflow, problems } = checkWorkflow({ name: 't', description: 'T.', steps: [step('one')], ...changes })
  if (!workflow) throw new Error(problems.map(({ message }) => message).join('\n'))
  return workflow
}

function harness(answer: Answering, extra: Partial<WorkflowHost> = {}) {
  const clock = new TestClock()
  const calls: ToolCall[] = []
  const host: WorkflowHost = {
    clock,
    random: () => 0,
    callTool: async (call, signal) => {
      calls.push(call)
      return await answer(call, signal)
    },
    ...extra,
  }
  const run = async (changes: Partial<CompositeTool>, options: Partial<RunOptions> = {}) => {
    const signal = new AbortController().signal
    const outcome = runWorkflow(workflowOf(changes), { host, params: {}, signal, ...options })
    let isDone = false
    const watched = outcome.finally(() => {
      isDone = true
    })
    watched.catch(() => undefined)
    for (let turns = 0; !isDone && turns < 1_000; turns++) await clock.advance(1_000)
    return await outcome
  }
  return { clock, calls, host, run, names: () => calls.map(({ tool }) => tool) }
}

const waits = (clock: TestClock, ms: number, result: ToolResult) => (_call: ToolCall, signal: AbortSignal) =>
  clock.sleep(ms, signal).then(() => result)

describe('arguments', () => {
  const parameters = { type: 'object', properties: { n: { type: 'integer', default: 7 }, s: { type: 'string' }, list: { type: 'array' } } }

  it('keep their types, are converted to the schema of the tool, and are left out where there is nothing', async () => {
    const { run, calls } = harness(() => text('ok'), {
      inputSchema: () => ({
        type: 'object',
        properties: { text: { type: 'string' }, count: { type: 'integer' }, tags: { type: 'array', items: { type: 'string' } } },
      }),
    })
    const args = {
      raw: '{{.params.n}}',
      text: '{{.params.n}}',
      count: '{{print .params.n}}',
      inside: 'n={{.params.n}}',
      tags: '{{json .params.list}}',
      gone: '{{.params.s}}',
      deep: { list: ['{{.params.n}}', 1, null] },
    }
    expect(await run({ parameters, steps: [step('one', { arguments: args })] }, { params: { list: [1, 'b'] } })).toMatchObject({
      kind: 'completed',
    })
    expect(calls[0]?.arguments).toEqual({ raw: 7, text: '7', count: 7, inside: 'n=7', tags: ['1', 'b'], deep: { list: [7, 1, null] } })
  })

  it.each<[string, Record<string, unknown>, JsonObject | undefined, string]>([
    [
      'cannot be converted',
      { count: 'many' },
      { type: 'object', properties: { count: { type: 'integer' } } },
      'the arguments do not fit the tool: count must be integer',
    ],
    ['have nothing inside text', { a: 'x {{.params.s}}' }, undefined, 'arguments.a, column 3: .params.s has no value'],
    [
      'are too large',
      { a: '{{range 100}}{{range 1000}}{{end}}{{end}}' },
      undefined,
      'arguments.a, column 14: the template exceeds a limit: more than 100,000 evaluation steps',
    ],
  ])('that %s fail the step before the call, without a retry', async (_title, args, schema, message) => {
    const { run, calls } = harness(() => text('ok'), { inputSchema: () => schema })
    const outcome = await run({ parameters, steps: [step('one', { arguments: args, onError: { action: 'retry', retryCount: 3 } })] })
    expect(outcome).toMatchObject({ kind: 'failed', step: 'one', message: `step 1 of 1: ${message}` })
    expect(calls).toEqual([])
  })

  it('are built from results of earlier steps: structured, or by name out of the content', async () => {
    const { run, calls } = harness(({ tool }) =>
      tool === 'one'
        ? data({ list: [{ id: 3 }] })
        : {
            content: [
              { type: 'text', text: 'first' },
              { type: 'text', text: 'second' },
              { type: 'image', data: 'AA==' },
              { type: 'resource', resource: { uri: 'x:y', text: 'body' } },
            ],
          },
    )
    const last = step('three', {
      dependsOn: ['one', 'two'],
      arguments: {
        id: '{{(index .steps.one.output.list 0).id}}',
        text: '{{.steps.two.output.text}}/{{.steps.two.output.text_1}}/{{.steps.two.output.image_0}}/{{.steps.two.output.resource}}',
        state: '{{.steps.one.status}}',
        blocks: '{{len .steps.two.content}}',
      },
    })
    await run({ steps: [step('one'), step('two'), last] })
    expect(calls.at(-1)?.arguments).toEqual({ id: 3, text: 'first/second/AA==/body', state: 'completed', blocks: 4 })
  })

  it.each<[string, JsonObject, string]>([
    ['of the wrong type', { n: 'x' }, 'n must be integer'],
    ['that are missing', {}, "must have required property 'n'"],
    ['with a pattern that takes too long', { n: 1, p: `${'a'.repeat(40)}b` }, 'the schema takes too long to check on this value'],
  ])('parameters %s start nothing', async (_title, params, problem) => {
    const { run, calls } = harness(() => text('ok'))
    // Only the one that needs it: values under a pattern are checked against the clock.
    const p = { type: 'string', ...('p' in params && { pattern: '^(a+)+$' }) }
    const schema = { type: 'object', properties: { n: { type: 'integer' }, p }, required: ['n'] }
    expect(await run({ parameters: schema }, { params })).toEqual({ kind: 'invalid_params', problems: [problem] })
    expect(calls).toEqual([])
  })

  it('a tool without parameters takes none', async () => {
    expect(await harness(() => text('ok')).run({}, { params: { x: 1 } })).toMatchObject({ kind: 'invalid_params' })
  })
})

describe('order', () => {
  it('dependent steps run in sequence, others in parallel, each as soon as it can', async () => {
    const log: string[] = []
    const h = harness(async ({ tool }, signal) => {
      log.push(`+${tool}`)
      await h.clock.sleep(tool === 'slow' ? 50_000 : 1_000, signal)
      log.push(`-${tool}`)
      return text(tool)
    })
    await h.run({ steps: [step('slow'), step('a'), step('b', { dependsOn: ['a'] }), step('end', { dependsOn: ['slow', 'b'] })] })
    // b does not wait for slow, which began at the same time as a.
    expect(log).toEqual(['+slow', '+a', '-a', '+b', '-b', '-slow', '+end', '-end'])
  })

  it('any graph: every step once, none before what it depends on, never more than allowed at once', async () => {
    const graph = fc.integer({ min: 1, max: 12 }).chain((size) =>
      fc.record({
        size: fc.constant(size),
        edges: fc.array(fc.boolean(), { minLength: size * size, maxLength: size * size }),
        times: fc.array(fc.integer({ min: 0, max: 5_000 }), { minLength: size, maxLength: size }),
        bound: fc.integer({ min: 1, max: 4 }),
      }),
    )
    await fc.assert(
      fc.asyncProperty(graph, async ({ size, edges, times, bound }) => {
        const dependsOn = Array.from({ length: size }, (_, at) =>
          Array.from({ length: at }, (__, before) => before).filter((before) => edges[at * size + before]),
        )
        const done = new Set<number>()
        let running = 0
        let most = 0
        const h = harness(async ({ tool }, signal) => {
          const index = Number(tool.slice(1))
          most = Math.max(most, ++running)
          expect((dependsOn[index] ?? []).every((before) => done.has(before))).toBe(true)
          await h.clock.sleep(times[index] ?? 0, signal)
          running--
          done.add(index)
          return text(tool)
        })
        const steps = dependsOn.map((before, index) => step(`s${index}`, { dependsOn: before.map((each) => `s${each}`) }))
        expect(await h.run({ steps }, { maxParallelSteps: bound })).toMatchObject({ kind: 'completed' })
        expect(h.names().toSorted()).toEqual(steps.map(({ id }) => id).toSorted())
        expect(most).toBeLessThanOrEqual(bound)
      }),
      { numRuns: 40 },
    )
  })
})

describe('conditions', () => {
  it.each<[string, boolean]>([
    ['{{eq .params.env "prod"}}', true],
    ['{{eq .params.env "test"}}', false],
    ['{{if .params.env}}true{{else}}false{{end}}', true],
    ['{{.params.missing}}', false],
    ['TRUE', true],
    ['False', false],
  ])('%s: runs is %s, and dependents go on', async (condition, runs) => {
    const { run, names, calls } = harness(({ tool }) => data({ state: tool }))
    const parameters = { type: 'object', properties: { env: { type: 'string' }, missing: {} } }
    const steps = [
      step('one', { condition, defaultResults: { state: 'skipped' } }),
      step('two', { dependsOn: ['one'], arguments: { state: '{{.steps.one.output.state}}', status: '{{.steps.one.status}}' } }),
    ]
    await run({ parameters, steps }, { params: { env: 'prod' } })
    expect(names()).toEqual(runs ? ['one', 'two'] : ['two'])
    expect(calls.at(-1)?.arguments).toEqual(runs ? { state: 'one', status: 'completed' } : { state: 'skipped', status: 'skipped' })
  })

  it('a condition that gives no truth value fails the step', async () => {
    const { run } = harness(() => text('x'))
    expect(await run({ steps: [step('one', { condition: '{{print "maybe"}}' })] })).toMatchObject({
      kind: 'failed',
      message: 'step 1 of 1: condition: must give true or false',
    })
  })
})

describe('failures', () => {
  it('abort cancels what runs and starts nothing more', async () => {
    let canceled = false
    const h = harness((call, signal) => {
      if (call.tool === 'bad') return h.clock.sleep(1_000, signal).then(() => broken('no such order'))
      signal.addEventListener('abort', () => {
        canceled = true
      })
      return h.clock.sleep(60_000, signal).then(() => text('late'))
    })
    const outcome = await h.run({ steps: [step('bad'), step('slow'), step('after', { dependsOn: ['bad'] })] })
    expect(outcome).toEqual({
      kind: 'failed',
      step: 'bad',
      message: 'step 1 of 3: no such order',
      result: { content: [{ type: 'text', text: 'Workflow execution failed: step 1 of 3: no such order' }], isError: true },
    })
    expect([canceled, h.names()]).toEqual([true, ['bad', 'slow']])
  })

  it('continue records the failure, gives the defaults and goes on', async () => {
    const { run, calls } = harness(({ tool }) => (tool === 'bad' ? broken('down') : text('x')))
    const steps = [
      step('bad', { onError: { action: 'continue' }, defaultResults: { n: 0 } }),
      step('two', {
        dependsOn: ['bad'],
        arguments: { n: '{{.steps.bad.output.n}}', why: '{{.steps.bad.error}}', state: '{{.steps.bad.status}}' },
      }),
    ]
    expect(await run({ steps })).toMatchObject({ kind: 'completed' })
    expect(calls.at(-1)?.arguments).toEqual({ n: 0, why: 'down', state: 'failed' })
  })

  it('retry tries again with growing delays, then aborts', async () => {
    const times: number[] = []
    const h = harness(() => {
      times.push(h.clock.monotonic())
      throw new Error('connection reset')
    })
    const outcome = await h.run({ steps: [step('one', { onError: { action: 'retry', retryCount: 3, retryDelay: '2s' } })] })
    expect(outcome).toMatchObject({ kind: 'failed', message: 'step 1 of 1: connection reset' })
    expect(times).toEqual([0, 2_000, 6_000, 14_000])
    expect(h.calls.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4])
  })

  it('retries take jitter and stop growing at 60 times the first delay', async () => {
    const times: number[] = []
    const h = harness(
      () => {
        times.push(h.clock.monotonic())
        throw new Error('x')
      },
      { random: () => 0.5 },
    )
    await h.run({ timeout: '10h', steps: [step('one', { timeout: '9h', onError: { action: 'retry', retryCount: 9, retryDelay: '1s' } })] })
    const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0))
    expect(gaps).toEqual([750, 1_500, 3_000, 6_000, 12_000, 24_000, 45_000, 45_000, 45_000])
  })

  it('a retry that succeeds counts as success', async () => {
    const { run } = harness(({ attempt }) => (attempt === 1 ? broken('busy') : data({ done: true })))
    expect(await run({ steps: [step('one', { onError: { action: 'continue', retryCount: 1 } })] })).toMatchObject({
      kind: 'completed',
      result: { structuredContent: { done: true } },
    })
  })

  it('a step ends at its timeout, all tries together', async () => {
    const h = harness(() => h.clock.sleep(4_000).then(() => broken('busy')))
    const outcome = await h.run({ steps: [step('one', { timeout: '10s', onError: { action: 'retry', retryCount: 10 } })] })
    expect(outcome).toMatchObject({ kind: 'failed', message: 'step 1 of 1: took longer than 10000 ms' })
    expect(h.calls.length).toBeLessThanOrEqual(3)
  })

  it('a workflow ends at its timeout', async () => {
    const h = harness((call, signal) => waits(h.clock, 60_000, text('late'))(call, signal))
    expect(await h.run({ timeout: '5s' })).toMatchObject({ kind: 'failed', message: 'took longer than 5s' })
  })

  it('the caller can end it, and no step is left running', async () => {
    const caller = new AbortController()
    const h = harness((call, signal) => {
      caller.abort(new Error('the client left'))
      return waits(h.clock, 60_000, text('late'))(call, signal)
    })
    await expect(h.run({}, { signal: caller.signal })).rejects.toThrow()
    expect(h.clock.pending).toBe(0)
  })

  it('results over 16 MiB in all end it', async () => {
    const { run } = harness(() => text('x'.repeat(6 * 1024 * 1024)))
    expect(await run({ steps: [step('a', { onError: { action: 'continue' } }), step('b', { dependsOn: ['a'] })] })).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('larger than 16 MiB'),
    })
  })
})

describe('questions', () => {
  const ask = (rest: Partial<Step> = {}): Step => ({
    id: 'ask',
    type: 'elicitation',
    message: 'Deploy {{.steps.one.output.n}}?',
    dependsOn: ['one'],
    schema: { type: 'object', properties: { env: { type: 'string', enum: ['a', 'b'] } } },
    ...rest,
  })
  const after = step('after', {
    dependsOn: ['ask'],
    arguments: { action: '{{.steps.ask.output.action}}', env: '{{.steps.ask.output.content.env}}' },
  })
  const asking = (answer: Answer) => harness(() => data({ n: 3 }), { elicit: async () => answer })

  it('an accepted one gives its content', async () => {
    const { run, calls } = asking({ action: 'accept', content: { env: 'a' } })
    await run({ steps: [step('one'), ask(), after] })
    expect(calls.at(-1)?.arguments).toEqual({ action: 'accept', env: 'a' })
  })

  it.each<[string, Partial<Step>, Answer, string]>([
    ['declined', {}, { action: 'decline' }, 'the user declined'],
    ['canceled', {}, { action: 'cancel' }, 'the user did not answer'],
    [
      'answered wrongly',
      {},
      { action: 'accept', content: { env: 'z' } },
      'the answer does not fit the schema: env must be equal to one of the allowed values',
    ],
    [
      'answered at too great length',
      { schema: { type: 'object' } },
      { action: 'accept', content: { x: 'x'.repeat(2 ** 20) } },
      'the answer is larger than 1 MiB',
    ],
  ])('one that is %s aborts', async (_title, rest, answer, message) => {
    expect(await asking(answer).run({ steps: [step('one'), ask(rest), after] })).toMatchObject({
      kind: 'failed',
      message: `step 2 of 3: ${message}`,
    })
  })

  it('continue goes on without content', async () => {
    const { run, calls } = asking({ action: 'decline' })
    await run({ steps: [step('one'), ask({ onDecline: { action: 'continue' } }), after] })
    expect(calls.at(-1)?.arguments).toEqual({ action: 'decline' })
  })

  it('skip_remaining: what runs ends, nothing more starts, and the output is mapped from defaults', async () => {
    const h = harness(
      ({ tool }, signal) => (tool === 'slow' ? waits(h.clock, 30_000, data({ n: 9 }))({} as ToolCall, signal) : data({ n: 3 })),
      {
        elicit: async () => ({ action: 'decline' }),
      },
    )
    const steps = [
      step('one'),
      step('slow'),
      ask({ onDecline: { action: 'skip_remaining' } }),
      step('last', { dependsOn: ['ask'], defaultResults: { n: -1 } }),
      step('tail', { dependsOn: ['slow'] }),
    ]
    const output = {
      properties: {
        slow: { type: 'integer' as const, value: '{{.steps.slow.output.n}}' },
        last: { type: 'integer' as const, value: '{{.steps.last.output.n}}' },
        state: { type: 'string' as const, value: '{{.steps.last.status}}' },
      },
    }
    expect(await h.run({ steps, output })).toMatchObject({
      kind: 'completed',
      result: { structuredContent: { slow: 9, last: -1, state: 'skipped' } },
    })
    expect(h.names()).toEqual(['one', 'slow'])
  })

  it('no answer in time counts as canceled', async () => {
    const h = harness(() => data({ n: 3 }), {
      elicit: (_question, signal) => h.clock.sleep(3_600_000, signal).then(() => ({ action: 'accept' as const })),
    })
    await h.run({ steps: [step('one'), ask({ timeout: '1m', onCancel: { action: 'continue' } }), after] })
    expect(h.calls.at(-1)?.arguments).toEqual({ action: 'cancel' })
  })

  it('a client that cannot be asked fails the step, and onError decides', async () => {
    const { run } = harness(() => data({ n: 3 }))
    expect(await run({ steps: [step('one'), ask()] })).toMatchObject({ kind: 'failed', message: 'step 2 of 2: the client cannot be asked' })
    expect(await run({ steps: [step('one'), ask({ onError: { action: 'continue' } })] })).toMatchObject({ kind: 'completed' })
  })

  it('a run that suspends lets steps end, asks, and goes on in another process without repeating anything', async () => {
    const first = harness(({ tool }, signal) =>
      tool === 'slow' ? waits(first.clock, 5_000, data({ n: 1 }))({} as ToolCall, signal) : data({ n: 3 }),
    )
    const definition = { steps: [step('one'), step('slow'), ask(), step('later', { dependsOn: ['slow'] }), after] }
    const asked = await first.run(definition, { asks: 'suspend', id: 'run-1' })
    if (asked.kind !== 'suspended') throw new Error(asked.kind)
    expect(asked.questions).toEqual([{ step: 'ask', message: 'Deploy 3?', schema: ask().schema }])
    expect(first.names()).toEqual(['one', 'slow'])
    const state = JSON.parse(JSON.stringify(asked.state)) as typeof asked.state
    const second = harness(() => text('done'))
    const outcome = await second.run(definition, {
      asks: 'suspend',
      resume: { state, answers: { ask: { action: 'accept', content: { env: 'b' } } } },
    })
    expect(outcome).toMatchObject({ kind: 'completed' })
    expect(second.names().toSorted()).toEqual(['after', 'later'])
    expect(second.calls.find(({ tool }) => tool === 'after')?.arguments).toEqual({ action: 'accept', env: 'b' })
  })

  it('an answer that comes too late, or none, counts as canceled', async () => {
    const first = harness(() => data({ n: 3 }))
    const definition = { steps: [step('one'), ask({ timeout: '1m' }), after] }
    const asked = await first.run(definition, { asks: 'suspend' })
    if (asked.kind !== 'suspended') throw new Error(asked.kind)
    const { state } = asked
    const late = harness(() => text('x'))
    await late.clock.advance(state.askedAt - late.clock.now() + 61_000)
    const resumed = { asks: 'suspend' as const, resume: { state, answers: { ask: { action: 'accept' as const, content: {} } } } }
    expect(await late.run(definition, resumed)).toMatchObject({ kind: 'failed', message: 'step 2 of 3: the user did not answer' })
    expect(await harness(() => text('x')).run(definition, { ...resumed, resume: { state, answers: {} } })).toMatchObject({ kind: 'failed' })
  })

  it('results over 1 MiB cannot wait for an answer', async () => {
    const { run } = harness(() => data({ n: 3, big: 'x'.repeat(2 ** 20) }))
    expect(await run({ steps: [step('one'), ask()] }, { asks: 'suspend' })).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('larger than 1 MiB'),
    })
  })
})

describe('loops', () => {
  const loop = (rest: Partial<Step> = {}, inner: Partial<NonNullable<Step['step']>> = {}): Step => ({
    id: 'each',
    type: 'forEach',
    collection: '{{.params.items}}',
    step: { tool: 'post', arguments: { to: '{{.forEach.item.id}}', n: '{{.forEach.index}}' }, ...inner },
    ...rest,
  })
  const parameters = { type: 'object', properties: { items: {} } }
  const output = { properties: { each: { type: 'object' as const, value: '{{.steps.each.output}}' } } }
  const items = [{ id: 'a' }, { id: 'b' }, { id: 'c' }]
  const summary = (outcome: Awaited<ReturnType<typeof runWorkflow>>) =>
    outcome.kind === 'completed' ? (outcome.result.structuredContent?.['each'] as Record<string, Json>) : outcome

  it.each<[string, Json, string]>([
    ['a list', items, '{{.params.items}}'],
    ['JSON text', JSON.stringify(items), '{{.params.items}}'],
    ['json', items, '{{json .params.items}}'],
  ])('call once per item of %s', async (_title, given, collection) => {
    const { run, calls } = harness(({ iteration }) => data({ was: iteration ?? -1 }))
    const outcome = await run({ parameters, output, steps: [loop({ collection })] }, { params: { items: given } })
    expect(calls.map(({ arguments: args }) => args)).toEqual([
      { to: 'a', n: 0 },
      { to: 'b', n: 1 },
      { to: 'c', n: 2 },
    ])
    expect(summary(outcome)).toEqual({
      iterations: items.map((item, index) => ({ index, item, status: 'completed', output: { was: index } })),
      count: 3,
      completed: 3,
      failed: 0,
    })
  })

  it('never run more than maxParallel at once', async () => {
    let running = 0
    let most = 0
    const h = harness(async (_call, signal) => {
      most = Math.max(most, ++running)
      await h.clock.sleep(1_000, signal)
      running--
      return text('x')
    })
    await h.run({ parameters, steps: [loop({ maxParallel: 2, step: { tool: 'post' } })] }, { params: { items: [1, 2, 3, 4, 5] } })
    expect([most, h.calls.length]).toEqual([2, 5])
  })

  it('skip items by condition and retry each on its own', async () => {
    const { run, calls } = harness(({ iteration, attempt }) => (iteration === 2 && attempt === 1 ? broken('busy') : text('x')))
    const inner = { condition: '{{ne .forEach.item.id "b"}}', defaultResults: { text: 'none' }, onError: { retryCount: 1 } }
    const outcome = await run({ parameters, output, steps: [loop({}, inner)] }, { params: { items } })
    expect(summary(outcome)).toMatchObject({
      iterations: [{ status: 'completed' }, { status: 'skipped', output: { text: 'none' } }, { status: 'completed' }],
      failed: 0,
    })
    expect(calls.filter(({ iteration }) => iteration === 2)).toHaveLength(2)
  })

  it.each<[string, Step]>([
    ['of the loop', loop({ onError: { action: 'continue' } })],
    ['of its step', loop({}, { onError: { action: 'continue' } })],
  ])('continue %s records failed items', async (_title, each) => {
    const { run } = harness(({ iteration }) => (iteration === 1 ? broken('no') : text('x')))
    expect(summary(await run({ parameters, output, steps: [each] }, { params: { items } }))).toMatchObject({
      iterations: [{}, { status: 'failed', error: 'no' }, {}],
      completed: 2,
      failed: 1,
    })
  })

  it('abort ends the others', async () => {
    const h = harness(({ iteration }, signal) =>
      iteration === 1 ? broken('no') : waits(h.clock, 60_000, text('x'))({} as ToolCall, signal),
    )
    expect(await h.run({ parameters, steps: [loop()] }, { params: { items } })).toMatchObject({
      kind: 'failed',
      message: 'step 1 of 1: item 1: no',
    })
    expect(h.clock.pending).toBe(0)
  })

  it.each<[string, Partial<Step>, Json, string]>([
    ['too many items', { maxIterations: 2 }, items, 'collection: has 3 items, more than maxIterations (2)'],
    ['no list', {}, 'x', 'collection: must give a list'],
    ['an object', {}, { a: 1 }, 'collection: must give a list'],
  ])('%s fail the step', async (_title, rest, given, message) => {
    const { run, calls } = harness(() => text('x'))
    expect(await run({ parameters, steps: [loop(rest)] }, { params: { items: given } })).toMatchObject({
      kind: 'failed',
      message: `step 1 of 1: ${message}`,
    })
    expect(calls).toEqual([])
  })

  it('end when the results of the items are larger than 16 MiB, and call for no further item', async () => {
    const large = 'x'.repeat(4 * 1024 * 1024)
    const { run, calls } = harness(() => ({ content: [], structuredContent: { large } }))
    const many = Array.from({ length: 100 }, () => ({ id: 'a' }))
    expect(await run({ parameters, steps: [loop({ maxParallel: 1 })] }, { params: { items: many } })).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('larger than 16 MiB'),
    })
    expect(calls).toHaveLength(4)
  })

  it('end at the timeout of the step', async () => {
    const h = harness((call, signal) => waits(h.clock, 60_000, text('x'))(call, signal))
    expect(await h.run({ parameters, steps: [loop({ timeout: '5s' })] }, { params: { items } })).toMatchObject({
      kind: 'failed',
      message: 'step 1 of 1: took longer than 5000 ms',
    })
  })
})

describe('output', () => {
  const property = (type: 'string' | 'integer' | 'object' | 'array' | 'boolean', value: string, rest: object = {}) => ({
    type,
    value,
    ...rest,
  })

  it('is mapped, converted and structured', async () => {
    const { run } = harness(() => data({ n: '42', ok: 'true', list: '[1]' }))
    const output = {
      properties: {
        n: property('integer', '{{.steps.one.output.n}}'),
        text: property('string', 'n is {{.steps.one.output.n}}'),
        ok: property('boolean', '{{.steps.one.output.ok}}'),
        list: property('array', '{{.steps.one.output.list}}'),
        nested: { type: 'object' as const, properties: { n: property('integer', '{{.steps.one.output.n}}') } },
        missing: property('string', '{{.steps.one.output.missing}}'),
        substitute: property('string', '{{.steps.one.output.missing}}', { default: 'none' }),
        failing: property('string', '{{len 3}}', { default: 'failed' }),
      },
      required: ['n'],
    }
    const expected = { n: 42, text: 'n is 42', ok: true, list: [1], nested: { n: 42 }, substitute: 'none', failing: 'failed' }
    const outcome = await run({ output })
    expect(outcome).toEqual({
      kind: 'completed',
      result: { structuredContent: expected, content: [{ type: 'text', text: expect.any(String) }] },
    })
    expect(outcome.kind === 'completed' && JSON.parse(String(outcome.result.content[0]?.['text']))).toEqual(expected)
    expect(workflowOf({ output }).outputSchema).toMatchObject({
      type: 'object',
      required: ['n'],
      properties: { nested: { type: 'object', properties: { n: { type: 'integer' } } } },
    })
  })

  it.each<[string, object, string]>([
    [
      'is missing',
      { properties: { a: property('string', '{{.steps.one.output.b}}') }, required: ['a'] },
      "the output does not fit its schema: must have required property 'a'",
    ],
    ['has the wrong type', { properties: { a: property('integer', '{{.steps.one.output.n}}') } }, 'output.properties.a: must be integer'],
    [
      'cannot be rendered',
      { properties: { a: property('string', 'x {{.steps.one.output.b}}') } },
      'output.properties.a, column 3: .steps.one.output.b has no value',
    ],
  ])('a result that %s fails the workflow', async (_title, output, message) => {
    const { run } = harness(() => data({ n: 'x' }))
    const outcome = await run({ output: output as NonNullable<CompositeTool['output']> })
    expect(outcome).toMatchObject({ kind: 'failed', result: { isError: true } })
    expect(outcome.kind === 'failed' && outcome.message).toContain(message)
  })

  it('without output it is what the last step returned, and structured content is not invented', async () => {
    const { run } = harness(({ tool }) => text(tool))
    expect(await run({ steps: [step('one'), step('two', { dependsOn: ['one'] })] })).toEqual({
      kind: 'completed',
      result: { content: [{ type: 'text', text: 'two' }] },
    })
  })

  it('progress counts steps and names none', async () => {
    const told: number[][] = []
    const { run } = harness(() => text('x'), { progress: (done, total) => told.push([done, total]) })
    await run({ steps: [step('one'), step('two', { dependsOn: ['one'] }), step('three', { dependsOn: ['two'], condition: 'false' })] })
    expect(told).toEqual([
      [1, 3],
      [2, 3],
      [3, 3],
    ])
  })
})

describe('events of a run', () => {
  const observed = (answer: Answering) => {
    const events: WorkflowEvent[] = []
    return { events, ...harness(answer, { observe: (event) => void events.push(event) }) }
  }
  const told = (events: readonly WorkflowEvent[]) => events.map(({ type, step: of }) => [type, of].filter(Boolean).join(' '))

  it('tell its start and end, and those of each step', async () => {
    const { run, events } = observed(({ tool }) => (tool === 'two' ? broken('no') : text('ok')))
    const steps = [
      step('one'),
      step('two', { dependsOn: ['one'], onError: { action: 'continue' } }),
      step('three', { dependsOn: ['two'], condition: 'false' }),
    ]
    await run({ steps }, { id: 'run-1' })
    expect(told(events)).toEqual([
      'workflow_started',
      ...['workflow_step_started one', 'workflow_step_completed one', 'workflow_step_started two', 'workflow_step_failed two'],
      ...['workflow_step_skipped three', 'workflow_completed'],
    ])
    expect(new Set(events.map(({ id }) => id))).toEqual(new Set(['run-1']))
    expect(events.find(({ type }) => type === 'workflow_step_failed')?.error).toContain('no')
  })

  it('tell a failure and a timeout apart', async () => {
    const failing = observed(() => broken('no'))
    await failing.run({})
    expect(told(failing.events)).toEqual(['workflow_started', 'workflow_step_started one', 'workflow_step_failed one', 'workflow_failed'])

    const late = observed((_, signal) => late.clock.sleep(600_000, signal).then(() => text('late')))
    await late.run({ timeout: '5s', steps: [step('one', { timeout: '1m' })] })
    expect(new Set(told(late.events))).toEqual(
      new Set(['workflow_started', 'workflow_step_started one', 'workflow_step_failed one', 'workflow_timed_out']),
    )
    expect(late.events.find(({ type }) => type === 'workflow_timed_out')?.durationMs).toBeGreaterThanOrEqual(5_000)
  })

  it('tell a run that waits for an answer as one', async () => {
    const question: Step = { id: 'ask', type: 'elicitation', message: 'Sure?', schema: { type: 'object', properties: {} } }
    const definition = { steps: [question, step('after', { dependsOn: ['ask'] })] }
    const { run, events } = observed(() => text('ok'))
    const asked = await run(definition, { asks: 'suspend', id: 'run-1' })
    if (asked.kind !== 'suspended') throw new Error(asked.kind)
    expect(told(events)).toEqual(['workflow_started', 'workflow_step_started ask'])
    await run(definition, { asks: 'suspend', resume: { state: asked.state, answers: { ask: { action: 'accept', content: {} } } } })
    expect(told(events).slice(2)).toEqual([
      ...['workflow_step_completed ask', 'workflow_step_started after', 'workflow_step_completed after', 'workflow_completed'],
    ])
    expect(new Set(events.map(({ id }) => id))).toEqual(new Set(['run-1']))
  })
})
