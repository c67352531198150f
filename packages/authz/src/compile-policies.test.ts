import { describe, expect, it } from 'vitest'
import { compilePolicies } from './compile-policies.ts'
import type { Env } from './evaluator/environment.ts'
import type { PolicySet } from './evaluator/policy-set.ts'
import { CedarRecord, EntityUid, type Value } from './evaluator/value.ts'

const setOf = (policies: readonly string[], entities: unknown = []): PolicySet => {
  const compiled = compilePolicies(policies, JSON.stringify(entities))
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.problems))
  return compiled.set
}
const problemsOf = (policies: readonly string[], entities = '[]') => {
  const compiled = compilePolicies(policies, entities)
  return compiled.ok ? [] : compiled.problems
}

interface Question {
  action?: string
  tool?: string
  context?: Record<string, Value>
  unknownPrefix?: string
}

function ask(set: PolicySet, { action = 'call_tool', tool = 'weather', context = {}, unknownPrefix }: Question): Env {
  return {
    principal: new EntityUid('Client', 'ann'),
    action: new EntityUid('Action', action),
    resource: new EntityUid('Tool', tool),
    context: new CedarRecord(new Map(Object.entries(context)), unknownPrefix),
    entities: set.entities,
  }
}

const named = (policies: readonly { id: string }[]) => policies.map(({ id }) => id)

describe('compilePolicies', () => {
  it('denies what nothing permits, and lets a forbid win', () => {
    const set = setOf([
      '@id("all") permit(principal, action == Action::"call_tool", resource);',
      '@id("no-delete") forbid(principal, action, resource == Tool::"delete");',
    ])
    const allowed = set.decide(ask(set, {}))
    expect([allowed.allowed, named(allowed.policies)]).toEqual([true, ['all']])
    const forbidden = set.decide(ask(set, { tool: 'delete' }))
    expect([forbidden.allowed, named(forbidden.policies)]).toEqual([false, ['no-delete']])
    expect(set.decide(ask(set, { action: 'get_prompt' }))).toEqual({ allowed: false, policies: [], failures: [] })
  })

  it('denies when a policy fails, although another one permits, and names it', () => {
    const set = setOf(['permit(principal, action, resource);', 'permit(principal, action, resource) when { context.missing == 1 };'])
    const decision = set.decide(ask(set, {}))
    expect(decision.allowed).toBe(false)
    expect(decision.failures.map(({ policy, message }) => [policy.id, message])).toEqual([['policy1', expect.stringContaining('missing')]])
  })

  it('finds policies for an action through the groups that entities put it in', () => {
    const entities = [{ uid: { type: 'Action', id: 'call_tool' }, attrs: {}, parents: [{ type: 'Action', id: 'write' }] }]
    const set = setOf(['permit(principal, action in [Action::"write"], resource);'], entities)
    expect(set.decide(ask(set, {})).allowed).toBe(true)
    expect(set.decide(ask(set, { action: 'get_prompt' })).allowed).toBe(false)
  })

  it('decides the same with a thousand other policies beside', () => {
    const others = Array.from({ length: 1_000 }, (_, at) => `permit(principal, action == Action::"call_tool", resource == Tool::"t${at}");`)
    const set = setOf([...others, 'permit(principal == Client::"ann", action, resource == Tool::"weather");'])
    expect(set.decide(ask(set, {})).allowed).toBe(true)
    expect(set.decide(ask(set, { tool: 't999' })).allowed).toBe(true)
    expect(set.decide(ask(set, { tool: 't1000' })).allowed).toBe(false)
  })

  it.each([
    ['permit(principal, action, resource) when { context has arg_city && context.arg_city == "Bern" };', true],
    ['permit(principal, action, resource) when { context.arg_city == "Bern" };', true],
    ['permit(principal, action, resource) when { context.arg_city == "Bern" && false };', false],
    ['permit(principal, action, resource) when { context.claim_role == "admin" && context.arg_city == "Bern" };', false],
    ['permit(principal, action, resource) unless { context has arg_city };', true],
    ['forbid(principal, action, resource);', false],
  ])('%s: with unknown arguments the tool is shown: %s', (policy, shown) => {
    const set = setOf([policy])
    expect(set.mayAllow(ask(set, { unknownPrefix: 'arg_', context: { claim_role: 'user' } }))).toBe(shown)
  })

  it('hides a tool that is surely forbidden, and shows one that is forbidden for some arguments only', () => {
    const some = setOf(['permit(principal, action, resource);', 'forbid(principal, action, resource) when { context.arg_city == "Bern" };'])
    expect(some.mayAllow(ask(some, { unknownPrefix: 'arg_' }))).toBe(true)
    const all = setOf(['permit(principal, action, resource);', 'forbid(principal, action, resource) when { resource == Tool::"weather" };'])
    expect(all.mayAllow(ask(all, { unknownPrefix: 'arg_' }))).toBe(false)
  })

  it('never permits a call whose arguments are left unknown', () => {
    const set = setOf(['permit(principal, action, resource) when { context.arg_city == "Bern" };'])
    expect(set.decide(ask(set, { unknownPrefix: 'arg_' }))).toMatchObject({ allowed: false, policies: [], failures: [] })
  })

  it('names every policy that it cannot take', () => {
    expect(problemsOf(['permit(principal, action, resource) when { 9007199254740993 > 1 };', 'permit(principal, action'])).toEqual([
      { path: 'policies[1]', message: expect.stringContaining('unexpected') },
    ])
    expect(problemsOf(['permit(principal, action, resource) when { 9007199254740993 > 1 };'])).toEqual([
      { path: 'policies[0]', message: expect.stringContaining('2^53') },
    ])
    expect(problemsOf(['@id("x") permit(principal, action, resource);', '@id("x") forbid(principal, action, resource);'])).toEqual([
      { path: 'policies[1]', message: 'has the id "x" of policies[0]: ids must differ' },
    ])
    expect(problemsOf(['permit(principal, action, resource);'], '{"a":1}')).toEqual([
      { path: 'entities_json', message: 'is not a JSON array' },
    ])
  })
})
