import { createHook } from 'node:async_hooks'
import type { Identity } from '@thv/auth/incoming/authenticator'
import { reject } from '@thv/mcp/wire-errors'
import { describe, expect, it } from 'vitest'
import { compilePipeline } from '../pipeline/pipeline.ts'
import type { Caller, MessageContext } from '../pipeline/request-context.ts'
import { authorizeDeps, type TestPolicies } from '../testing/policy-holder.ts'
import { testContext } from '../testing/test-context.ts'
import { createToolFilter } from '../tool-filter/tool-filter.ts'
import { createAuthorize } from './authorize.ts'

const identity: Identity = { subject: 'ann', issuer: 'https://idp', provider: 'idp', claims: { sub: 'ann', groups: ['dev'] } }
const ANN: Caller = { principal: 'p', identity }

function judge(policies: string | TestPolicies, message: object, caller: Caller = ANN) {
  const wanted = typeof policies === 'string' ? { policies: [policies] } : policies
  const context = testContext({ id: 1, ...message }, { caller })
  const rejection = compilePipeline([createAuthorize(authorizeDeps(wanted))]).message(context)
  if (rejection instanceof Promise) throw new TypeError('must be synchronous')
  return { rejection, authz: context.authz }
}

const PERMIT_ALL = 'permit(principal, action, resource);'
const FORBID_ALL = 'forbid(principal, action, resource);'
const call = (name: unknown, args?: unknown) => ({ method: 'tools/call', params: { name, ...(args !== undefined && { arguments: args }) } })

describe('a message', () => {
  it.each<[string, object, string]>([
    ['tools/call', call('echo', { n: 1 }), 'action == Action::"call_tool", resource == Tool::"echo"'],
    ['prompts/get', { method: 'prompts/get', params: { name: 'p' } }, 'action == Action::"get_prompt", resource == Prompt::"p"'],
    [
      'resources/read',
      { method: 'resources/read', params: { uri: 'x://y' } },
      'action == Action::"read_resource", resource == Resource::"x://y"',
    ],
    [
      'resources/subscribe',
      { method: 'resources/subscribe', params: { uri: 'x://y' } },
      'action == Action::"read_resource", resource == Resource::"x://y"',
    ],
    [
      'resources/unsubscribe',
      { method: 'resources/unsubscribe', params: { uri: 'x://y' } },
      'action == Action::"read_resource", resource == Resource::"x://y"',
    ],
    [
      'completion/complete of a prompt',
      { method: 'completion/complete', params: { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: 'b' } } },
      'action == Action::"get_prompt", resource == Prompt::"p"',
    ],
    [
      'completion/complete of a template',
      { method: 'completion/complete', params: { ref: { type: 'ref/resource', uri: 'x://{id}' }, argument: { name: 'id', value: '' } } },
      'action == Action::"read_resource", resource == Resource::"x://{id}"',
    ],
    ['tasks/get', { method: 'tasks/get', params: { taskId: 't' } }, 'action == Action::"request", resource == Method::"tasks/get"'],
    ['an unknown method', { method: 'x/y' }, 'action == Action::"request", resource == Method::"x/y"'],
    [
      'subscriptions/listen that names resources',
      { method: 'subscriptions/listen', params: { notifications: { resourceSubscriptions: ['x://y'] } } },
      'action == Action::"read_resource", resource == Resource::"x://y"',
    ],
  ])('%s needs its permit', (_name, message, scope) => {
    expect(judge(`permit(principal == Client::"ann", ${scope});`, message)).toMatchObject({
      rejection: undefined,
      authz: { decision: 'allow' },
    })
    const denied = judge(`permit(principal == Client::"bob", ${scope});`, message)
    expect(denied.rejection).toEqual({ error: 'access_denied', httpStatus: 403 })
    expect(denied.authz).toEqual({ decision: 'deny', policies: [], errors: [], candidate: undefined })
  })

  it.each([
    { method: 'initialize', params: {} },
    { method: 'ping' },
    { method: 'server/discover' },
    { method: 'logging/setLevel', params: { level: 'info' } },
    { method: 'roots/list' },
    { method: 'subscriptions/listen', params: { notifications: { toolsListChanged: true } } },
    { id: undefined, method: 'notifications/initialized' },
    { id: undefined, method: 'notifications/cancelled', params: { requestId: 1 } },
    { result: { action: 'accept' } },
  ])('passes without a decision: $method', (message) => {
    expect(judge(FORBID_ALL, message)).toEqual({ rejection: undefined, authz: undefined })
  })

  it('that is an unknown notification is judged as any other method', () => {
    expect(judge(FORBID_ALL, { id: undefined, method: 'notifications/own' }).rejection).toMatchObject({ error: 'access_denied' })
  })

  it('reads as one rejection, whatever the reason', () => {
    const rejections = [
      judge(FORBID_ALL, call('echo')),
      judge('permit(principal, action, resource == Tool::"other");', call('echo')),
      judge('permit(principal, action, resource) when { context.arg_missing == 1 };', call('echo')),
      judge('permit(principal, action, resource == Tool::"other");', call('no-such-tool')),
    ].map(({ rejection }) => rejection)
    expect(new Set(rejections.map((rejection) => JSON.stringify(rejection))).size).toBe(1)
  })

  it('leaves the deciding policies and the failed ones for audit', () => {
    const policies = [
      '@id("devs") permit(principal in THVGroup::"dev", action, resource);',
      '@id("no-rm") forbid(principal, action, resource == Tool::"rm");',
    ]
    expect(judge({ policies }, call('echo')).authz).toEqual({ decision: 'allow', policies: ['devs'], errors: [], candidate: undefined })
    expect(judge({ policies }, call('rm')).authz).toMatchObject({ decision: 'deny', policies: ['no-rm'] })
    const failing = ['permit(principal, action, resource);', '@id("bad") permit(principal, action, resource) when { context.arg_x > 1 };']
    expect(judge({ policies: failing }, call('echo')).authz).toMatchObject({
      decision: 'deny',
      errors: [{ policy: 'bad', message: expect.stringContaining('arg_x') }],
    })
  })

  it('without a token is judged as Client::"anonymous"', () => {
    const policy = 'permit(principal == Client::"anonymous", action, resource);'
    expect(judge(policy, call('echo'), { principal: 'anonymous' }).rejection).toBeUndefined()
    expect(judge(policy, call('echo')).rejection).toBeDefined()
  })

  it.each([
    call(5),
    call(undefined),
    call('echo', []),
    call('echo', 'text'),
    { method: 'prompts/get', params: {} },
    { method: 'resources/read', params: { uri: 7 } },
    { method: 'resources/read' },
    { method: 'completion/complete', params: { ref: 'p' } },
    { method: 'subscriptions/listen', params: { notifications: { resourceSubscriptions: [1] } } },
    // Names that a server may take for others.
    call('echo', { path: '/data', PATH: '/etc' }),
    { method: 'prompts/get', params: { name: 'p', arguments: { a: '1', A: '2' } } },
    { method: 'completion/complete', params: { ref: { type: 'ref/prompt', name: 'p', Name: 'q' } } },
    { method: 'subscriptions/listen', params: { notifications: { ResourceSubscriptions: ['x://y'] } } },
  ])('that cannot be judged is rejected as malformed: %j', (message) => {
    expect(judge(PERMIT_ALL, message).rejection).toMatchObject({ error: 'invalid_params', inBand: true })
  })

  it('that names more resources than can be judged in passing is rejected, however often it names one', () => {
    const listen = (count: number) => ({
      method: 'subscriptions/listen',
      params: { notifications: { resourceSubscriptions: Array.from({ length: count }, () => 'x://y') } },
    })
    expect(judge(PERMIT_ALL, listen(1_000)).rejection).toBeUndefined()
    expect(judge(PERMIT_ALL, listen(1_001))).toMatchObject({ rejection: { error: 'invalid_params', inBand: true }, authz: undefined })
  })

  it('is judged by the name at the server, and policies see both names', () => {
    const overrides = { real: { name: 'shown' } }
    const run = (policy: string) => {
      const deps = authorizeDeps({ policies: [policy] })
      const context = testContext({ id: 1, ...call('shown') }, { caller: ANN })
      return compilePipeline([createToolFilter({ filter: [], overrides }, { warn: () => {} }), createAuthorize(deps)]).message(context)
    }
    expect(run('permit(principal, action, resource == Tool::"real") when { resource.visible_name == "shown" };')).toBeUndefined()
    expect(run('permit(principal, action, resource == Tool::"shown");')).toMatchObject({ error: 'access_denied' })
  })
})

it('names the scopes that would permit a denied call, and only these', () => {
  const policies = [
    '@scope("w") permit(principal, action, resource == Tool::"write");',
    '@scope("x") permit(principal, action, resource == Tool::"no") when { false };',
  ]
  const insufficientScope = (_context: unknown, scopes: readonly string[]) => reject('insufficient_scope', { detail: scopes.join(' ') })
  const pipeline = compilePipeline([createAuthorize(authorizeDeps({ policies }, { insufficientScope }))])
  const answer = (name: string, caller: Caller = ANN) => pipeline.message(testContext({ id: 1, ...call(name) }, { caller }))
  expect(answer('write')).toMatchObject({ error: 'insufficient_scope', detail: 'w' })
  expect(answer('no')).toEqual({ error: 'access_denied', httpStatus: 403 })
  expect(answer('unknown')).toEqual(answer('no'))
  expect(answer('write', { principal: 'anonymous' })).toEqual(answer('no'))
  expect(answer('write', { principal: 'p', identity: { ...identity, claims: { scope: 'w' } } })).toBeUndefined()
})

describe('candidate policies', () => {
  it('never decide, and are noted where they decide otherwise', () => {
    const denies = judge(
      { policies: [PERMIT_ALL], candidate: ['@id("new") forbid(principal, action, resource == Tool::"rm");'] },
      call('rm'),
    )
    expect(denies).toMatchObject({ rejection: undefined, authz: { decision: 'allow', candidate: { decision: 'deny', policies: ['new'] } } })
    const allows = judge({ policies: [FORBID_ALL], candidate: [PERMIT_ALL] }, call('rm'))
    expect(allows).toMatchObject({ rejection: { error: 'access_denied' }, authz: { candidate: { decision: 'allow' } } })
    expect(judge({ policies: [PERMIT_ALL], candidate: [PERMIT_ALL] }, call('rm')).authz?.candidate).toBeUndefined()
  })

  it('that differ are counted', () => {
    const seen: string[] = []
    const deps = authorizeDeps({ policies: [PERMIT_ALL], candidate: [FORBID_ALL] }, { onDifference: (candidate) => seen.push(candidate) })
    void compilePipeline([createAuthorize(deps)]).message(testContext({ id: 1, ...call('a') }))
    expect(seen).toEqual(['deny'])
  })
})

describe('a list', () => {
  const shown = (policies: string[], method: string, items: object[], more: Partial<MessageContext> = {}) => {
    const member = { 'tools/list': 'tools', 'prompts/list': 'prompts', 'resources/list': 'resources' }[method] ?? 'resourceTemplates'
    const context = testContext({ id: 1, method }, { caller: ANN, ...more })
    const pipeline = compilePipeline([createAuthorize(authorizeDeps({ policies }))])
    expect(pipeline.message(context)).toBeUndefined()
    const text = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { [member]: items, nextCursor: 'c', _meta: { a: 1 } } })
    const { result } = JSON.parse(pipeline.responseText(context, text))
    expect([result.nextCursor, result._meta]).toEqual(['c', { a: 1 }])
    return result[member]
  }

  it.each([
    ['tools/list', [{ name: 'a' }, { name: 'b' }, { title: 'nameless' }], 'action == Action::"call_tool", resource == Tool::"a"'],
    ['prompts/list', [{ name: 'a' }, { name: 'b' }], 'action == Action::"get_prompt", resource == Prompt::"a"'],
    ['resources/list', [{ uri: 'a' }, { uri: 'b', name: 'a' }], 'action == Action::"read_resource", resource == Resource::"a"'],
    [
      'resources/templates/list',
      [{ uriTemplate: 'a' }, { uriTemplate: 'b' }],
      'action == Action::"read_resource", resource == Resource::"a"',
    ],
  ])('%s shows what its caller may use', (method, items, scope) => {
    expect(shown([`permit(principal == Client::"ann", ${scope});`], method, items)).toEqual(items.slice(0, 1))
    expect(shown([PERMIT_ALL], method, items)).toEqual(items.filter((item) => !('title' in item)))
    expect(shown([`permit(principal == Client::"bob", ${scope});`], method, items)).toEqual([])
  })

  it('shows what some arguments could permit, and hides what none could', () => {
    const tools = [{ name: 'a' }, { name: 'b' }]
    const policies = [
      'permit(principal, action, resource == Tool::"a") when { context.arg_city == "Bern" };',
      'permit(principal, action, resource == Tool::"b") when { context.arg_city == "Bern" && false };',
    ]
    expect(shown(policies, 'tools/list', tools)).toEqual([{ name: 'a' }])
  })

  it('knows the hints of each tool', () => {
    const tools = [{ name: 'a', annotations: { readOnlyHint: true } }, { name: 'b', annotations: { readOnlyHint: 'yes' } }, { name: 'c' }]
    const policy = 'permit(principal, action, resource) when { resource has readOnlyHint && resource.readOnlyHint };'
    expect(shown([policy], 'tools/list', tools)).toEqual(tools.slice(0, 1))
  })

  it('is empty when its action is forbidden; a permit for it is not needed', () => {
    const tools = [{ name: 'a' }]
    const forbid = '@id("no-list") forbid(principal, action == Action::"list_tools", resource == FeatureType::"tool");'
    expect(shown([PERMIT_ALL, forbid], 'tools/list', tools)).toEqual([])
    expect(shown([PERMIT_ALL, forbid], 'prompts/list', tools)).toEqual(tools)
    expect(judge({ policies: [PERMIT_ALL, forbid] }, { method: 'tools/list' })).toMatchObject({
      rejection: undefined,
      authz: { decision: 'deny', policies: ['no-list'] },
    })
    expect(shown(['permit(principal, action == Action::"call_tool", resource);'], 'tools/list', tools)).toEqual(tools)
  })

  it('on a resumed stream is judged by its form', () => {
    const pipeline = compilePipeline([
      createAuthorize(
        authorizeDeps({
          policies: [
            'permit(principal, action == Action::"call_tool", resource == Tool::"a");',
            'permit(principal, action == Action::"get_prompt", resource);',
            'forbid(principal, action == Action::"list_prompts", resource);',
          ],
        }),
      ),
    ])
    const context = testContext({ id: 1, method: 'ping' }, { caller: ANN })
    const edited = (result: object) =>
      JSON.parse(pipeline.strayResponseText(context, JSON.stringify({ jsonrpc: '2.0', id: 9, result }))).result
    expect(edited({ tools: [{ name: 'a' }, { name: 'b' }] })).toEqual({ tools: [{ name: 'a' }] })
    expect(edited({ prompts: [{ name: 'a' }] })).toEqual({ prompts: [] })
  })
})

it('a warm decision makes no promise and no timer', () => {
  const policies = [
    'permit(principal in THVGroup::"dev", action == Action::"call_tool", resource == Tool::"echo") when { context.arg_n < 3 };',
  ]
  const pipeline = compilePipeline([createAuthorize(authorizeDeps({ policies, candidate: policies }))])
  const context = testContext({ id: 1, ...call('echo', { n: 2, text: 'a' }) }, { caller: ANN })
  const made: string[] = []
  const hook = createHook({ init: (_id, type) => void made.push(type) }).enable()
  for (let i = 0; i < 100; i++) if (pipeline.message(context) !== undefined) throw new Error('denied')
  hook.disable()
  expect(made).toEqual([])
})
