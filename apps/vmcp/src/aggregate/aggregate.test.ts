import type { JsonObject } from '@thv/mcp/json-rpc'
import type { AggregationConfig } from '@thv/vmcpconfig/vmcp-config'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { aggregate, type View } from './aggregate.ts'
import type { BackendLists } from './backend-lists.ts'
import { changedHands } from './changed-hands.ts'

type Lists = Record<string, readonly (string | JsonObject)[]>

type Change = Partial<Omit<AggregationConfig, 'conflictResolutionConfig' | 'tools'>> & {
  readonly settings?: Partial<AggregationConfig['conflictResolutionConfig']>
  readonly tools?: readonly (Partial<AggregationConfig['tools'][number]> & { readonly workload: string })[]
}

function configOf({ settings, tools = [], ...change }: Change = {}): AggregationConfig {
  return {
    conflictResolution: 'prefix',
    conflictResolutionConfig: { prefixFormat: '{workload}_', priorityOrder: [], winners: {}, selectorArgument: 'backend', ...settings },
    excludeAllTools: false,
    defaultToolVisibility: 'allow',
    tools: tools.map((entry) => ({ filter: [], exclude: [], excludeAll: false, overrides: {}, ...entry })),
    ...change,
  }
}

function listsOf(tools: Lists, rest: Partial<BackendLists> = {}): readonly BackendLists[] {
  return Object.entries(tools).map(([backend, items]) => ({
    backend,
    tools: items.map((item) => (typeof item === 'string' ? { name: item, inputSchema: { type: 'object' } } : item)),
    prompts: [],
    resources: [],
    resourceTemplates: [],
    ...rest,
  }))
}

const targets = (routes: View['tools']) =>
  Object.fromEntries([...routes].map(([key, { backend, original }]) => [key, `${backend}/${original}`]))
const reports = ({ conflicts }: View) =>
  conflicts.map(
    ({ outcome, backend, name, winner, as }) => `${outcome} ${backend}/${name}${winner ? ` to ${winner}` : ''}${as ? ` as ${as}` : ''}`,
  )

const LONG = 'x'.repeat(70)

interface Row {
  readonly title: string
  readonly config?: Change
  readonly tools: Lists
  readonly gives: Readonly<Record<string, string>>
  readonly hidden?: readonly string[]
  readonly reports?: readonly string[]
}

const ROWS: readonly Row[] = [
  {
    title: 'prefix renames every tool',
    tools: { a: ['x', 'y'], b: ['x'] },
    gives: { a_x: 'a/x', a_y: 'a/y', b_x: 'b/x' },
  },
  {
    title: 'prefix keeps the first of two equal results, by backend',
    tools: { a: ['b_c'], a_b: ['c'] },
    gives: { a_b_c: 'a/b_c' },
    reports: ['lost a_b/a_b_c to a'],
  },
  {
    title: 'a prefix without placeholder is constant',
    config: { settings: { prefixFormat: 'all-' } },
    tools: { a: ['x'], b: ['x', 'y'] },
    gives: { 'all-x': 'a/x', 'all-y': 'b/y' },
    reports: ['lost b/all-x to a'],
  },
  {
    title: 'a prefix takes no pattern of replacement out of a name',
    config: { settings: { prefixFormat: '{workload}-{workload}-' } },
    tools: { $: ['x'] },
    gives: { '_-_-x': '$/x' },
    reports: ['renamed $/x as _-_-x'],
  },
  {
    title: 'prefixOnConflict renames only names that clash',
    config: { conflictResolution: 'prefixOnConflict' },
    tools: { a: ['x', 'y'], b: ['x'] },
    gives: { a_x: 'a/x', b_x: 'b/x', y: 'a/y' },
    reports: ['renamed a/x as a_x', 'renamed b/x as b_x'],
  },
  {
    title: 'priority gives a name to the first of the order and drops the others',
    config: { conflictResolution: 'priority', settings: { priorityOrder: ['b', 'a'] } },
    tools: { a: ['x', 'y'], b: ['x'], c: ['x', 'z'] },
    gives: { x: 'b/x', y: 'a/y', z: 'c/z' },
    reports: ['lost a/x to b', 'lost c/x to b'],
  },
  {
    title: 'priority prefixes names that only unlisted backends have',
    config: { conflictResolution: 'priority', settings: { priorityOrder: ['a'] } },
    tools: { b: ['x'], c: ['x'] },
    gives: { b_x: 'b/x', c_x: 'c/x' },
    reports: ['renamed b/x as b_x', 'renamed c/x as c_x'],
  },
  {
    title: 'manual does not offer an unsettled name',
    config: { conflictResolution: 'manual', tools: [{ workload: 'a' }] },
    tools: { a: ['x', 'y'], b: ['x'] },
    gives: { y: 'a/y' },
    reports: ['unresolved a/x', 'unresolved b/x'],
  },
  {
    title: 'manual takes the named winner',
    config: { conflictResolution: 'manual', settings: { winners: { x: 'b' } } },
    tools: { a: ['x'], b: ['x'] },
    gives: { x: 'b/x' },
    reports: ['lost a/x to b'],
  },
  {
    title: 'manual does not take a winner that has no such tool',
    config: { conflictResolution: 'manual', settings: { winners: { x: 'c' } } },
    tools: { a: ['x'], b: ['x'] },
    gives: {},
    reports: ['unresolved a/x', 'unresolved b/x'],
  },
  {
    title: 'manual is settled by an override',
    config: { conflictResolution: 'manual', tools: [{ workload: 'a', overrides: { x: { name: 'ax' } } }] },
    tools: { a: ['x'], b: ['x'] },
    gives: { ax: 'a/x', x: 'b/x' },
  },
  {
    title: 'manual is settled by exclude',
    config: { conflictResolution: 'manual', tools: [{ workload: 'a', exclude: ['x'] }] },
    tools: { a: ['x'], b: ['x'] },
    gives: { x: 'b/x' },
    hidden: ['a_x'],
  },
  {
    title: 'manual is settled by a filter',
    config: { conflictResolution: 'manual', tools: [{ workload: 'a', filter: ['y'] }] },
    tools: { a: ['x', 'y'], b: ['x'] },
    gives: { x: 'b/x', y: 'a/y' },
    hidden: ['a_x'],
  },
  {
    title: 'filter and overrides of an entry apply by its name, the filter to names after overrides',
    config: { tools: [{ workload: 'a', filter: ['new'], overrides: { old: { name: 'new' } } }] },
    tools: { a: ['old', 'other'] },
    gives: { a_new: 'a/old' },
    hidden: ['a_other'],
  },
  {
    title: 'a filter does not match the name before its override',
    config: { tools: [{ workload: 'a', filter: ['old'], overrides: { old: { name: 'new' } } }] },
    tools: { a: ['old'] },
    gives: {},
    hidden: ['a_new'],
  },
  {
    title: 'an override onto another tool of the backend loses to the first by real name',
    config: { tools: [{ workload: 'a', overrides: { y: { name: 'x' } } }] },
    tools: { a: ['x', 'y'] },
    gives: { a_x: 'a/x' },
    reports: ['lost a/x to a'],
  },
  {
    title: 'deny hides the tools of backends without an entry',
    config: { defaultToolVisibility: 'deny', tools: [{ workload: 'a' }] },
    tools: { a: ['x'], b: ['y'] },
    gives: { a_x: 'a/x' },
    hidden: ['b_y'],
  },
  {
    title: 'excludeAll hides those of one backend',
    config: { tools: [{ workload: 'a', excludeAll: true }] },
    tools: { a: ['x'], b: ['y'] },
    gives: { b_y: 'b/y' },
    hidden: ['a_x'],
  },
  { title: 'excludeAllTools hides all', config: { excludeAllTools: true }, tools: { a: ['x'] }, gives: {}, hidden: ['a_x'] },
  {
    title: 'selector joins tools of equal schema',
    config: { conflictResolution: 'selector' },
    tools: { a: ['x', 'y'], b: ['x'] },
    gives: { x: 'a/x', y: 'a/y' },
  },
  {
    title: 'selector prefixes tools of unequal schema',
    config: { conflictResolution: 'selector' },
    tools: { a: ['x'], b: [{ name: 'x', inputSchema: { type: 'object', required: ['q'] } }] },
    gives: { a_x: 'a/x', b_x: 'b/x' },
    reports: ['renamed a/x as a_x', 'renamed b/x as b_x'],
  },
  {
    title: 'selector prefixes tools that have the argument already',
    config: { conflictResolution: 'selector', settings: { selectorArgument: 'q' } },
    tools: {
      a: [{ name: 'x', inputSchema: { type: 'object', properties: { q: {} } } }],
      b: [{ name: 'x', inputSchema: { type: 'object', properties: { q: {} } } }],
    },
    gives: { a_x: 'a/x', b_x: 'b/x' },
    reports: ['renamed a/x as a_x', 'renamed b/x as b_x'],
  },
  {
    title: 'illegal characters become underscores',
    config: { conflictResolution: 'prefixOnConflict' },
    tools: { a: ['get.it/now', 'größe'] },
    gives: { get_it_now: 'a/get.it/now', gr__e: 'a/größe' },
    reports: ['renamed a/get.it/now as get_it_now', 'renamed a/größe as gr__e'],
  },
  {
    title: 'a changed name does not take a name that is legal as it is',
    config: { conflictResolution: 'prefixOnConflict' },
    tools: { a: ['get.it'], b: ['get_it'] },
    gives: { get_it: 'b/get_it', get_it_6ed80c13: 'a/get.it' },
    reports: ['renamed a/get.it as get_it_6ed80c13'],
  },
  {
    title: 'a long name is cut and keeps a hash',
    config: { conflictResolution: 'prefixOnConflict' },
    tools: { a: [LONG] },
    gives: { [`${'x'.repeat(55)}_c71bd109`]: `a/${LONG}` },
    reports: [`renamed a/${LONG} as ${'x'.repeat(55)}_c71bd109`],
  },
  {
    title: 'items without a name and names that come twice are reported',
    tools: { a: ['x', 'x', { description: 'none' }, { name: '' }, { name: 7 }, null as unknown as JsonObject] },
    gives: { a_x: 'a/x' },
    reports: ['invalid a/', 'invalid a/', 'invalid a/', 'invalid a/', 'duplicate a/x'],
  },
  { title: 'no backend gives an empty view', tools: {}, gives: {} },
  {
    title: 'names of Object.prototype are names like others',
    config: { conflictResolution: 'manual', tools: [{ workload: 'a' }] },
    tools: { a: ['constructor', '__proto__'], b: ['toString'] },
    gives: { ['__proto__']: 'a/__proto__', constructor: 'a/constructor', toString: 'b/toString' },
  },
]

describe('aggregate', () => {
  it.each(ROWS)('$title', ({ config = {}, tools, gives, hidden = [], reports: expected = [] }) => {
    const view = aggregate(listsOf(tools), { config: configOf(config) })
    expect([...Object.entries(targets(view.tools))]).toEqual([...Object.entries(gives)])
    expect([...view.hiddenTools.keys()]).toEqual(hidden)
    expect(reports(view)).toEqual(expected)
    for (const [key, { item }] of view.tools) expect(item['name']).toBe(key)
  })

  it('changes description and annotations by override, and drops what is said of tasks', () => {
    const tool = {
      name: 'x',
      description: 'old',
      annotations: { title: 'T', readOnlyHint: true },
      execution: { taskSupport: 'required' },
      inputSchema: { type: 'object' },
      more: 1,
    }
    const overrides = { x: { description: 'new', annotations: { readOnlyHint: false } } }
    const view = aggregate(listsOf({ a: [tool] }), { config: configOf({ tools: [{ workload: 'a', overrides }] }) })
    expect(view.tools.get('a_x')?.item).toEqual({
      name: 'a_x',
      description: 'new',
      annotations: { title: 'T', readOnlyHint: false },
      inputSchema: { type: 'object' },
      more: 1,
    })
  })

  it('gives a joined tool a required argument with the names of its backends', () => {
    const item = { name: 'x', inputSchema: { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] } }
    const view = aggregate(listsOf({ b: [item], a: [item] }), { config: configOf({ conflictResolution: 'selector' }) })
    const route = view.tools.get('x')
    expect(route?.item['inputSchema']).toMatchObject({
      properties: { q: { type: 'string' }, backend: { type: 'string', enum: ['a', 'b'] } },
      required: ['backend', 'q'],
    })
    expect([...(route?.selector?.backends ?? [])]).toEqual([
      ['a', 'x'],
      ['b', 'x'],
    ])
  })

  it('keeps the name of a composite tool from the tools of backends', () => {
    const config = configOf({ conflictResolution: 'prefixOnConflict' })
    const view = aggregate(listsOf({ a: ['deploy', 'x'] }), { config, reservedNames: new Set(['deploy']) })
    expect(targets(view.tools)).toEqual({ x: 'a/x' })
    expect(reports(view)).toEqual(['lost a/deploy'])
  })

  it('names prompts like tools, and prefixes them on conflict where tools are settled by hand', () => {
    const lists = listsOf({ a: [], b: [] }, { prompts: [{ name: 'p' }] })
    const manual = configOf({ conflictResolution: 'manual', tools: [{ workload: 'a' }] })
    expect(targets(aggregate(lists, { config: manual }).prompts)).toEqual({ a_p: 'a/p', b_p: 'b/p' })
    const priority = configOf({ conflictResolution: 'priority', settings: { priorityOrder: ['b'] } })
    expect(targets(aggregate(lists, { config: priority }).prompts)).toEqual({ p: 'b/p' })
  })

  it('never changes URIs: the first backend by name has one, and the others are reported', () => {
    const lists = listsOf({ b: [], a: [] }, { resources: [{ uri: 'test://x' }], resourceTemplates: [{ uriTemplate: 'test://{id}' }] })
    const view = aggregate(lists, { config: configOf() })
    expect(targets(view.resources)).toEqual({ 'test://x': 'a/test://x' })
    expect(targets(view.resourceTemplates)).toEqual({ 'test://{id}': 'a/test://{id}' })
    expect(reports(view)).toEqual(['lost b/test://x to a', 'lost b/test://{id} to a'])
  })

  it('tells which names lead to another backend than before', () => {
    const config = configOf({ conflictResolution: 'priority', settings: { priorityOrder: ['a', 'b'] } })
    const before = aggregate(listsOf({ b: ['x', 'y'] }), { config })
    const after = aggregate(listsOf({ a: ['x'], b: ['x', 'y'] }), { config })
    expect(changedHands(before, after)).toEqual([{ kind: 'tool', name: 'x', from: 'b', to: 'a' }])
  })

  const backendName = fc.constantFrom('a', 'a_b', 'b', 'c.d', '\u{ff5e}', '\u{1f4e6}')
  const toolName = fc.constantFrom('x', 'b_x', 'get.it', 'get_it', LONG, `${LONG}y`, '\u{1f4e6}', 'constructor')
  const schema = fc.constantFrom({ type: 'object' }, { type: 'object', required: ['q'] })
  const tool = fc.record({ name: toolName, inputSchema: schema })
  const world = fc.uniqueArray(fc.record({ backend: backendName, tools: fc.uniqueArray(tool, { selector: ({ name }) => name }) }), {
    selector: ({ backend }) => backend,
  })
  const anyConfig = fc
    .record({
      conflictResolution: fc.constantFrom('prefix', 'priority', 'manual', 'prefixOnConflict', 'selector') as fc.Arbitrary<
        AggregationConfig['conflictResolution']
      >,
      settings: fc.record({ priorityOrder: fc.uniqueArray(backendName), winners: fc.dictionary(toolName, backendName) }),
      tools: fc.uniqueArray(
        fc.record({
          workload: backendName,
          exclude: fc.array(toolName),
          overrides: fc.dictionary(toolName, fc.record({ name: toolName })),
        }),
        { selector: ({ workload }) => workload },
      ),
    })
    .map(configOf)

  const full = (lists: readonly { backend: string; tools: readonly JsonObject[] }[]) =>
    lists.map((list) => ({ prompts: list.tools, resources: [], resourceTemplates: [], ...list }))
  const shown = (view: View) => ({ ...view, tools: [...view.tools], hiddenTools: [...view.hiddenTools], prompts: [...view.prompts] })

  it('does not depend on the order of backends and items', () => {
    const shuffled = world.chain((lists) =>
      fc.tuple(
        fc.constant(lists),
        fc
          .shuffledSubarray(lists, { minLength: lists.length })
          .chain((order) =>
            fc.tuple(
              ...order.map(({ backend, tools }) =>
                fc.shuffledSubarray(tools, { minLength: tools.length }).map((items) => ({ backend, tools: items })),
              ),
            ),
          ),
      ),
    )
    fc.assert(
      fc.property(shuffled, anyConfig, ([lists, other], config) => {
        expect(shown(aggregate(full(other), { config }))).toEqual(shown(aggregate(full(lists), { config })))
      }),
    )
  })

  it('reports the loss of a tool of several backends for each of them', () => {
    const tool = (name: string, required: readonly string[]) => ({ name, inputSchema: { type: 'object', required } })
    const lists = listsOf({ a: [tool('x', ['q'])], b: [tool('x', [])], y: [tool('b_x', ['q'])], z: [tool('b_x', ['q'])] })
    const config = configOf({ conflictResolution: 'selector' })
    const lost = aggregate(lists, { config }).conflicts.filter(({ outcome }) => outcome === 'lost')
    expect(lost.map(({ backend, original }) => `${backend}/${original}`)).toEqual(['y/b_x', 'z/b_x'])
  })

  it('gives the same for lists that it has seen under other settings and beside other lists', () => {
    fc.assert(
      fc.property(world, anyConfig, anyConfig, (lists, before, config) => {
        const given = full(lists)
        aggregate(given, { config: before })
        aggregate(given.slice(1), { config })
        expect(aggregate(given, { config })).toEqual(aggregate(structuredClone(given), { config: structuredClone(config) }))
      }),
    )
  })

  it('does not write tools again whose backend has not changed', () => {
    const config = configOf()
    const [a, b] = listsOf({ a: ['x'], b: ['y'] })
    const [changed] = listsOf({ b: ['y', 'z'] })
    if (a === undefined || b === undefined || changed === undefined) throw new Error('there are no lists')
    const first = aggregate([a, b], { config })
    const second = aggregate([a, changed], { config })
    expect(second.tools.get('a_x')).toBe(first.tools.get('a_x'))
    expect([...second.tools.keys()]).toEqual(['a_x', 'b_y', 'b_z'])
    const renamed = configOf({ tools: [{ workload: 'a', overrides: { x: { name: 'other' } } }] })
    expect([...aggregate([a, changed], { config: renamed }).tools.keys()]).toEqual(['a_other', 'b_y', 'b_z'])
  })

  it('gives legal, sorted names, and offers or reports every tool', () => {
    fc.assert(
      fc.property(world, anyConfig, (lists, config) => {
        const view = aggregate(full(lists), { config })
        const keys = [...view.tools.keys()]
        for (const key of keys) expect(key).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
        expect(keys).toEqual(keys.toSorted())
        const routes = [...view.tools.values()]
        const reached = new Set(
          routes.flatMap(({ backend, original, selector }) =>
            [...(selector?.backends ?? [[backend, original]])].map(([name, tool]) => `${name}/${tool}`),
          ),
        )
        for (const { backend, original } of view.hiddenTools.values()) reached.add(`${backend}/${original}`)
        for (const { kind, backend, original } of view.conflicts) if (kind === 'tool') reached.add(`${backend}/${original}`)
        for (const { backend, tools } of lists)
          for (const { name } of tools) if (!reached.has(`${backend}/${name}`)) expect(isHidden(config, backend)).toBe(true)
      }),
    )
  })

  /** Two hidden tools of one name: one of them is not even reachable by composite tools, and that is no report. */
  const isHidden = (config: AggregationConfig, backend: string) =>
    config.tools.some(({ workload, exclude }) => workload === backend && exclude.length > 0)
})
