import { describe, expect, it } from 'vitest'
import { aggregate } from '../aggregate/aggregate.ts'
import { testConfig } from '../testing/test-vmcp.ts'
import { compileWorkflows, offerComposites } from './composite-offers.ts'

const tool = (name: string, annotations: object = {}) => ({ name, inputSchema: { type: 'object' }, annotations })
const NO_LISTS = { prompts: [], resources: [], resourceTemplates: [] }
const backend = (name: string, ...tools: ReturnType<typeof tool>[]) => ({ backend: name, tools, ...NO_LISTS })
const composite = (name: string, reference: string, more: object = {}) => ({
  ...{ name, description: 'D.', steps: [{ id: 'only', tool: reference }] },
  ...more,
})

function offersOf(lists: ReturnType<typeof backend>[], tools: ReturnType<typeof composite>[], aggregation: object) {
  const config = testConfig({ backends: { a: 'http://h/a' }, config: { aggregation, compositeTools: tools } })
  const workflows = compileWorkflows(config.compositeTools)
  const view = aggregate(lists, { config: config.aggregation, reservedNames: new Set(workflows.map(({ name }) => name)) })
  return offerComposites(view, workflows)
}

const targetOf = (offers: ReturnType<typeof offersOf>, name: string) => {
  const [route] = offers.offered.get(name)?.targets.values() ?? []
  return route && [route.backend, route.original, route.selector === undefined]
}

describe('the offer of composite tools', () => {
  const lists = [backend('a', tool('search'), tool('own')), backend('b.c', tool('search'))]

  it.each<[string, string, unknown]>([
    ['prefix', 'a_search', ['a', 'search', true]],
    ['prefix', 'a.search', ['a', 'search', true]],
    ['prefix', 'b.c.search', ['b.c', 'search', true]],
    ['prefix', 'own', undefined],
    ['prefixOnConflict', 'own', ['a', 'own', true]],
    ['prefixOnConflict', 'search', undefined],
    ['selector', 'search', ['a', 'search', false]],
    ['selector', 'b.c.search', ['b.c', 'search', true]],
  ])('with %s a step that names %s means %j', (conflictResolution, reference, expected) => {
    const offers = offersOf(lists, [composite('it', reference)], { conflictResolution })
    expect(targetOf(offers, 'it')).toEqual(expected)
    expect(offers.leftOut).toEqual(expected === undefined ? [{ name: 'it', reason: `no backend offers ${reference}` }] : [])
  })

  it('has legal names, and takes back hints that promise too much', () => {
    const annotations = { readOnlyHint: true }
    const retried = { steps: [{ id: 'only', tool: 'a.own', onError: { action: 'retry', retryCount: 1 } }], annotations }
    const risky = [backend('a', tool('own', { destructiveHint: true, readOnlyHint: 'yes' }))]
    const { offered, warnings } = offersOf(risky, [composite('my.tool', '', retried)], { conflictResolution: 'prefix' })
    expect([...offered.keys()]).toEqual(['my_tool'])
    expect(offered.get('my_tool')?.item).toMatchObject({ name: 'my_tool', annotations: { readOnlyHint: false } })
    expect(warnings).toEqual([
      'my_tool: annotations.readOnlyHint: true promises more than the tools of the steps; clients see false',
      'my_tool: compositeTools[0].steps[0].onError (step only): repeats a tool that is destructive and not idempotent',
      'my.tool: is offered as my_tool',
    ])
  })
})
