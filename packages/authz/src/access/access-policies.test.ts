import { describe, expect, it } from 'vitest'
import { accessPolicies } from '../testing/access-policies.ts'
import type { AccessOptions } from './access-policies.ts'
import type { Arguments, Operation } from './operation.ts'
import type { Subject } from './principal.ts'

const ANN: Subject = {
  subject: 'ann',
  claims: {
    ...{ sub: 'ann', iss: 'https://idp', age: 40, ratio: 1.5, tiny: 0.00001, admin: true, nothing: null },
    ...{ groups: ['dev', 'ops'], roles: ['auditor'], scope: 'read write', address: { city: 'Bern', geo: [1, 2] } },
    ...{ realm_access: { roles: ['deep'] }, 'org.unit': ['exact'], team: 'dev', list: ['a', null, 'b'] },
  },
}
const CALL: Operation = { action: 'call_tool', name: 'echo', visibleName: 'say', args: { n: 3, text: 'hi' }, hints: { readOnlyHint: true } }

interface Case {
  readonly when?: string
  readonly scope?: string
  readonly subject?: Subject | undefined
  readonly operation?: Operation
  readonly options?: Partial<AccessOptions>
  readonly entities?: unknown
}

function allows({ when, scope = 'principal, action, resource', operation = CALL, options, entities, ...rest }: Case): boolean {
  const subject = 'subject' in rest ? rest.subject : ANN
  const policies = accessPolicies([`permit(${scope})${when === undefined ? '' : ` when { ${when} }`};`], entities, options)
  const { allowed, failures } = policies.decide(subject, operation)
  expect(failures).toEqual([])
  return allowed
}

describe('the caller', () => {
  it('is a Client with the subject of its token, or Client::"anonymous" without claims', () => {
    expect(allows({ scope: 'principal == Client::"ann", action, resource' })).toBe(true)
    expect(allows({ scope: 'principal == Client::"bob", action, resource' })).toBe(false)
    expect(allows({ scope: 'principal == Client::"anonymous", action, resource', subject: undefined })).toBe(true)
    expect(allows({ when: 'principal has claim_sub || context has claim_sub', subject: undefined })).toBe(false)
  })

  it.each([
    'principal.claim_sub == "ann" && context.claim_sub == "ann"',
    'principal.claim_age == 40 && context.claim_age > 39',
    'principal.claim_ratio == decimal("1.5")',
    '!(principal has claim_tiny) && !(principal has claim_nothing)',
    'principal.claim_admin',
    'principal.claim_address.city == "Bern" && context.claim_address.geo.contains(2)',
    'principal.claim_groups.contains("ops")',
    'principal.claim_list == ["a", "b"]',
    'principal.claim_scope == "read write"',
    'context.claimset_scope.containsAll(["read", "write"])',
  ])('has its claims as attributes and in the context: %s', (when) => {
    expect(allows({ when })).toBe(true)
  })

  it('is in the groups of its token', () => {
    const inGroup = (group: string, options?: Partial<AccessOptions>) =>
      allows({ scope: `principal in ${options?.groupEntityType ?? 'THVGroup'}::"${group}", action, resource`, ...(options && { options }) })
    expect(['dev', 'ops', 'auditor'].map((group) => inGroup(group))).toEqual([true, true, false])
    expect(inGroup('auditor', { groupClaimName: 'roles' })).toBe(true)
    expect(inGroup('dev', { groupClaimName: 'roles' })).toBe(false)
    expect(inGroup('deep', { roleClaimName: 'realm_access.roles' })).toBe(true)
    expect(inGroup('exact', { groupClaimName: 'org.unit' })).toBe(true)
    expect(inGroup('dev', { groupClaimName: 'team' })).toBe(false)
    expect(inGroup('dev', { groupEntityType: 'Team' })).toBe(true)
  })

  it('is in the groups above its groups, as entities put them', () => {
    const entities = [{ uid: { type: 'THVGroup', id: 'dev' }, attrs: {}, parents: [{ type: 'THVGroup', id: 'staff' }] }]
    expect(allows({ scope: 'principal in THVGroup::"staff", action, resource', entities })).toBe(true)
    expect(allows({ scope: 'principal in THVGroup::"staff", action, resource', entities, subject: undefined })).toBe(false)
  })

  it('has further attributes that entities give it; those of the token win', () => {
    const entities = [{ uid: { type: 'Client', id: 'ann' }, attrs: { team: 'red', claim_age: 1 }, parents: [{ type: 'Team', id: 'red' }] }]
    expect(allows({ when: 'principal.team == "red" && principal in Team::"red" && principal.claim_age == 40', entities })).toBe(true)
    expect(allows({ when: 'principal in THVGroup::"dev"', entities })).toBe(true)
  })

  it.each([
    ['a text', { scope: 'a  b' }],
    ['a list', { scope: ['a', 'b'] }],
    ['scp as a list', { scp: ['a', 'b'] }],
    ['scp as a text', { scp: 'a b' }],
    ['both', { scope: 'a', scp: ['b'] }],
  ])('has the set claimset_scope of %s', (_form, claims) => {
    expect(allows({ when: 'context.claimset_scope == ["a", "b"]', subject: { subject: 'x', claims } })).toBe(true)
  })

  it('has multi-valued claims as text and as a set', () => {
    const options = { multiValuedClaims: ['roles', 'team'] }
    expect(allows({ when: 'context.claim_roles == "auditor" && context.claimset_roles == ["auditor"]', options })).toBe(true)
    expect(allows({ when: 'context.claim_team == "dev" && context.claimset_team.contains("dev")', options })).toBe(true)
  })

  it('keeps claims up to ten levels deep', () => {
    const nested = (levels: number): unknown => (levels === 0 ? true : { a: nested(levels - 1) })
    const at = (levels: number) => `context.claim_deep${'.a'.repeat(levels)}`
    const subject = { subject: 'x', claims: { deep: nested(12) } }
    expect(allows({ when: `context has claim_deep${'.a'.repeat(9)} && !(${at(9)} has a)`, subject })).toBe(true)
  })
})

describe('the operation', () => {
  it.each<[string, Operation, string]>([
    [
      'a call',
      CALL,
      'action == Action::"call_tool" && resource == Tool::"echo" && resource.feature == "tool" && resource.operation == "call"',
    ],
    [
      'a prompt',
      { action: 'get_prompt', name: 'p', args: undefined },
      'action == Action::"get_prompt" && resource == Prompt::"p" && resource.name == "p"',
    ],
    [
      'a resource',
      { action: 'read_resource', uri: 'x://y' },
      'action == Action::"read_resource" && resource == Resource::"x://y" && resource.uri == "x://y"',
    ],
    [
      'a list',
      { action: 'list_tools' },
      'action == Action::"list_tools" && resource == FeatureType::"tool" && resource.type == "tool" && resource.operation == "list"',
    ],
    ['any other method', { action: 'request', method: 'tasks/get' }, 'action == Action::"request" && resource == Method::"tasks/get"'],
  ])('%s has its entity', (_name, operation, when) => {
    expect(allows({ operation, when: `${when} && resource in MCP::"test" && action.operation like "*"` })).toBe(true)
  })

  it('has the real name of a tool, the one that clients see, and its hints', () => {
    expect(allows({ when: 'resource.name == "echo" && resource.visible_name == "say"' })).toBe(true)
    expect(allows({ when: 'resource.readOnlyHint && !(resource has destructiveHint)' })).toBe(true)
  })

  it.each([
    ['a whole number', { x: 5 }, 'context.arg_x == 5 && resource.arg_x < 6'],
    ['another number', { x: 2.25 }, 'context.arg_x.lessThan(decimal("2.26"))'],
    ['a number with more than four digits', { x: 2.123456 }, 'context.arg_x_present && !(context has arg_x)'],
    ['a number beyond 2^53', { x: 2 ** 60 }, 'context.arg_x_present && !(context has arg_x)'],
    ['a text', { x: 'a' }, 'context.arg_x == "a" && resource.arg_x == "a"'],
    ['a boolean', { x: false }, 'context.arg_x == false'],
    ['null', { x: null }, 'context.arg_x_present && !(context has arg_x)'],
    ['a list', { x: [] }, 'context.arg_x_present && resource.arg_x_present'],
    ['an object beside an argument that wants to hide it', { x: {}, x_present: false }, 'context.arg_x_present'],
    ['no argument', {}, '!(context has arg_x) && !(context has arg_x_present)'],
  ])('has %s as an argument', (_name, args, when) => {
    expect(allows({ operation: { ...CALL, args } as Operation, when })).toBe(true)
  })

  it('is shown where some arguments could be permitted', () => {
    const policies = accessPolicies([
      'permit(principal, action, resource == Tool::"echo") when { context.arg_n < 3 && resource.arg_n > 0 };',
    ])
    const listed: Operation = { action: 'call_tool', name: 'echo', visibleName: 'echo', args: 'unknown', hints: undefined }
    expect(policies.mayAllow(ANN, listed)).toBe(true)
    expect(policies.mayAllow(ANN, { ...listed, name: 'other' })).toBe(false)
    expect(policies.decide(ANN, CALL).allowed).toBe(false)
  })

  it('gets facts that entities give its resource and its server', () => {
    const entities = [
      { uid: { type: 'Tool', id: 'echo' }, attrs: { owner: 'red' }, parents: [{ type: 'Kit', id: 'k' }] },
      { uid: { type: 'MCP', id: 'test' }, attrs: {}, parents: [{ type: 'Zone', id: 'inner' }] },
    ]
    expect(
      allows({ when: 'resource.owner == "red" && resource in Kit::"k" && resource in MCP::"test" && resource in Zone::"inner"', entities }),
    ).toBe(true)
  })
})

describe('a permit with @scope', () => {
  const policies = accessPolicies([
    'permit(principal, action, resource == Tool::"echo");',
    '@scope("files:write files:admin") permit(principal, action == Action::"call_tool", resource == Tool::"write") when { context.arg_n < 3 };',
    '@scope("files:write") permit(principal, action, resource == Tool::"never") when { false };',
    '@scope("read") permit(principal, action, resource == Tool::"checked") when { context.claimset_scope.contains("read") };',
  ])
  const tool = (name: string, args: Arguments = {}): Operation => ({
    ...{ action: 'call_tool', name, visibleName: name, args, hints: undefined },
  })
  const withScope = (scope: string): Subject => ({ subject: 'ann', claims: { scope } })

  it('applies only to callers that have all of its scopes', () => {
    expect(policies.decide(withScope('files:admin files:write'), tool('write', { n: 1 })).allowed).toBe(true)
    expect(policies.decide(withScope('files:write'), tool('write', { n: 1 })).allowed).toBe(false)
    expect(policies.decide(undefined, tool('write', { n: 1 })).allowed).toBe(false)
  })

  it('names its scopes where they would open the call, and only there', () => {
    expect(policies.scopesFor(withScope('other'), tool('write', { n: 1 }))).toEqual(['files:write', 'files:admin'])
    expect(policies.scopesFor(withScope('other'), tool('write', { n: 5 }))).toBeUndefined()
    expect(policies.scopesFor(withScope('other'), tool('never'))).toBeUndefined()
    expect(policies.scopesFor(withScope('other'), tool('no-such-tool'))).toBeUndefined()
    expect(policies.scopesFor(withScope('other'), tool('checked'))).toEqual(['read'])
    expect(policies.scopesFor(undefined, tool('write', { n: 1 }))).toBeUndefined()
  })

  it('keeps a tool in lists that its scopes would open', () => {
    expect(['echo', 'write', 'never', 'checked', 'other'].filter((name) => policies.isShown(withScope(''), tool(name, 'unknown')))).toEqual(
      ['echo', 'write', 'checked'],
    )
    expect(policies.isShown(undefined, tool('write', 'unknown'))).toBe(false)
  })

  it.each([
    '@scope("a") forbid(principal, action, resource);',
    '@scope("") permit(principal, action, resource);',
    '@scope("a\\"b") permit(principal, action, resource);',
  ])('is refused where it cannot work: %s', (policy) => {
    expect(() => accessPolicies([policy])).toThrow(/@scope/)
  })
})

it('facts about a caller are made once', () => {
  const policies = accessPolicies(['permit(principal, action, resource);'])
  expect(policies.principal(ANN)).toBe(policies.principal(ANN))
  expect(policies.principal({ ...ANN })).not.toBe(policies.principal(ANN))
})
