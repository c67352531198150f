import type { EntityJson, PolicyJson } from '@cedar-policy/cedar-wasm/nodejs'
import { runAtOnce } from '@thv/kernel/steps'
import { soakRounds } from '@thv/testkit/run/run-environment'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cedarEngine } from '../cedar-engine.ts'
import { compilePolicy, type PolicyJson as Policy } from './compile-policy.ts'
import { readEntities } from './entities.ts'
import { valueOfJson } from './json-value.ts'
import { PolicySet } from './policy-set.ts'
import { expression, policyArbitrary } from './testing/policy-arbitrary.ts'
import { CedarRecord, EntityUid, Failure, type Members, type Value } from './value.ts'

const ENTITIES: EntityJson[] = [
  {
    uid: { type: 'User', id: 'a' },
    attrs: { age: 5, name: 'ann', tags: ['x', 1], home: { __entity: { type: 'Group', id: 'g' } }, deep: { inner: { leaf: true } } },
    parents: [{ type: 'Group', id: 'g' }],
    tags: { color: 'red', size: 3 },
  },
  { uid: { type: 'Group', id: 'g' }, attrs: {}, parents: [{ type: 'Group', id: 'top' }] },
  { uid: { type: 'Group', id: 'top' }, attrs: { level: 1 }, parents: [] },
  { uid: { type: 'Action', id: 'call' }, attrs: { operation: 'call' }, parents: [{ type: 'Action', id: 'all' }] },
  { uid: { type: 'Tool', id: 't' }, attrs: { name: 't', readOnly: true }, parents: [{ type: 'Group', id: 'g' }] },
]
const CONTEXT = {
  n: 3,
  s: 'hello',
  b: true,
  set: [1, 2, 'x'],
  rec: { a: 1, b: 'two' },
  ip: { __extn: { fn: 'ip', arg: '10.1.2.3' } },
  dec: { __extn: { fn: 'decimal', arg: '1.5' } },
  time: { __extn: { fn: 'datetime', arg: '2024-10-15T11:35:00Z' } },
  span: { __extn: { fn: 'duration', arg: '1h30m' } },
}
const principal = { type: 'User', id: 'a' }
const action = { type: 'Action', id: 'call' }
const resource = { type: 'Tool', id: 't' }
const store = runAtOnce(readEntities([ENTITIES]))
const uid = ({ type, id }: { type: string; id: string }) => new EntityUid(type, id)
const env = (context = valueOfJson(CONTEXT) as CedarRecord) => ({
  principal: uid(principal),
  action: uid(action),
  resource: uid(resource),
  context,
  entities: store,
})

/** Together more than 10,000 policies in CI: sets of one to four, single conditions, and conditions with unknown arguments. */
const SETS = 900 * soakRounds()
const CONDITIONS = 2_500 * soakRounds()
const UNKNOWNS = 900 * soakRounds()

// Thousands of questions to the engine take a while on a busy machine.
describe('the evaluator decides as the Cedar engine', { timeout: 300_000 }, () => {
  it('for generated policies: the same permits and forbids apply, and the same policies fail', () => {
    fc.assert(
      fc.property(fc.array(policyArbitrary, { minLength: 1, maxLength: 4 }), (policies) => {
        const expected = ask(policies)
        expect(outcomes(policies)).toEqual(expected)
        const failed = Object.values(expected).includes('failure')
        const decision = runAtOnce(PolicySet.of(policies.map(compiled), store)).decide(env())
        const applies = (effect: string) => policies.some((policy, at) => policy.effect === effect && expected[`p${at}`] === 'applies')
        expect(decision.allowed).toBe(!failed && applies('permit') && !applies('forbid'))
      }),
      { numRuns: SETS },
    )
  })

  it('for generated expressions as the only condition', () => {
    fc.assert(
      fc.property(expression, (body) => {
        const policy: PolicyJson = { ...PERMIT_ALL, conditions: [{ kind: 'when', body }] as PolicyJson['conditions'] }
        expect(outcomes([policy])).toEqual(ask([policy]))
      }),
      { numRuns: CONDITIONS },
    )
  })

  it('for unknown arguments: what the engine settles without them is settled in the same way', () => {
    const unknown = { __extn: { fn: 'unknown', arg: 'arg_x' } }
    fc.assert(
      fc.property(policyArbitrary, (policy) => {
        const answer = cedarEngine().isAuthorizedPartial({
          principal,
          action,
          resource,
          context: { ...CONTEXT, arg_x: unknown } as never,
          policies: { staticPolicies: { p0: policy } },
          entities: ENTITIES,
        })
        if (answer.type === 'failure') throw new Error(JSON.stringify(answer.errors))
        const { members } = valueOfJson(CONTEXT) as CedarRecord
        const outcome = compiled(policy, 0).evaluate(env(new CedarRecord(members, 'arg_')))
        const { satisfied, errored, nontrivialResiduals } = answer.response
        if (satisfied.includes('p0')) expect(outcome).toBe(true)
        else if (errored.includes('p0')) expect(outcome).toMatchObject({ message: expect.any(String) })
        else if (nontrivialResiduals.length === 0) expect(outcome).toBe(false)
        // Where the engine leaves a rest, ours may see more: then no argument may change the outcome.
        for (const known of settled(members)) {
          const now = compiled(policy, 0).evaluate(env(known))
          if (outcome === true) expect(now).toBe(true)
          if (outcome === false) expect(now).not.toBe(true)
          if (outcome instanceof Failure) expect(now).toBeInstanceOf(Failure)
        }
      }),
      { numRuns: UNKNOWNS },
    )
  })

  it.each(FIXED_CASES())('%s', (body) => {
    const answer = cedarEngine().policyToJson(`permit(principal, action, resource) when { ${body} };`)
    if (answer.type === 'failure') throw new Error(`${body}: ${answer.errors.map(({ message }) => message).join()}`)
    expect(outcomes([answer.json])).toEqual(ask([answer.json]))
  })
})

const PERMIT_ALL: PolicyJson = {
  effect: 'permit',
  principal: { op: 'All' },
  action: { op: 'All' },
  resource: { op: 'All' },
  conditions: [],
}

function compiled(policy: PolicyJson, at: number) {
  return compilePolicy(`p${at}`, policy as Policy)
}

/** The context with some values that the unknown argument may turn out to have, and without it. */
function settled(members: Members): CedarRecord[] {
  const values: Value[] = [true, false, 1n, 'hello', new EntityUid('User', 'a')]
  return [new CedarRecord(members), ...values.map((value) => new CedarRecord(new Map([...members, ['arg_x', value]])))]
}

type Applied = 'applies' | 'failure' | 'no'

function outcomes(policies: readonly PolicyJson[]): Record<string, Applied> {
  return Object.fromEntries(
    policies.map((policy, at) => {
      const outcome = compiled(policy, at).evaluate(env())
      return [`p${at}`, outcome === true ? 'applies' : outcome === false ? 'no' : 'failure']
    }),
  )
}

/** One policy at a time: beside a forbid the engine does not name the permits that apply. */
function ask(policies: readonly PolicyJson[]): Record<string, Applied> {
  return Object.fromEntries(
    policies.map((policy, at) => {
      const answer = cedarEngine().isAuthorized({
        principal,
        action,
        resource,
        context: CONTEXT as never,
        policies: { staticPolicies: { p: policy } },
        entities: ENTITIES,
      })
      if (answer.type === 'failure') throw new Error(JSON.stringify(answer.errors))
      const { reason, errors } = answer.response.diagnostics
      return [`p${at}`, errors.length > 0 ? 'failure' : reason.length > 0 ? 'applies' : 'no']
    }),
  )
}

function FIXED_CASES(): string[] {
  return [
    'ip("10.0.0.1").isInRange(ip("10.0.0.0/8"))',
    'ip("10.0.0.0/7").isInRange(ip("10.0.0.0/8"))',
    'ip("::1").isLoopback() && ip("127.0.0.1/8").isLoopback() && !ip("127.0.0.1/7").isLoopback()',
    'ip("ff02::1").isMulticast() && ip("224.0.0.1").isMulticast() && !ip("224.0.0.0/3").isMulticast()',
    'ip("::ffff:1.2.3.4").isIpv6()',
    'ip("1.2.3.04").isIpv4()',
    'ip("1.2.3.4/033").isIpv4()',
    'ip("1:2:3:4:5:6:7::") == ip("1:2:3:4:5:6:7:0")',
    'ip("1:2:3:4:5:6:7:8::") == ip("::")',
    'decimal("1.0").lessThan(decimal("1.0001"))',
    'decimal("922337203685477.5807").greaterThan(decimal("-922337203685477.5808"))',
    'decimal("922337203685477.5808") == decimal("1.0")',
    'decimal("1") == decimal("1.0")',
    'decimal(".5") == decimal("0.5")',
    'decimal("-0.0") == decimal("0.0")',
    'datetime("2024-02-30") == datetime("2024-03-01")',
    'datetime("2024-02-29T23:59:59.999+0100") < datetime("2024-03-01")',
    'datetime("2024-01-01T24:00:00Z") == datetime("2024-01-02")',
    'datetime("2024-01-01T00:00:00+2400") == datetime("2024-01-02")',
    'datetime("0000-01-01") < datetime("1970-01-01")',
    'datetime("1969-12-31T23:00:00Z").toDate() == datetime("1969-12-31")',
    'datetime("1969-12-31T23:00:00Z").toTime() == duration("23h")',
    'datetime("2024-01-01").offset(duration("-1d")) == datetime("2023-12-31")',
    'datetime("2024-01-02").durationSince(datetime("2024-01-01")).toHours() == 24',
    'duration("-1d2h3m4s5ms").toSeconds() == -93784',
    'duration("1h1d") == duration("25h")',
    'duration("") == duration("0s")',
    'duration("-") == duration("0s")',
    'duration("1ms") < duration("1m")',
    'duration("106751991167d") > duration("0d")',
    'duration("106751991168d") > duration("0d")',
    '"a*b" like "a\\*b" && "axb" like "a*b" && "ab" like "a*b" && !("abc" like "a*b")',
    '"" like "*" && "aaa" like "a*a*a" && !("aa" like "a*a*a")',
    'context has rec.a && !(context has rec.z) && !(context has nope.a)',
    'context has n.a',
    'principal has deep.inner.leaf && principal.deep.inner.leaf',
    'principal has home.level',
    'principal.getTag("color") == "red" && principal.hasTag("size") && !principal.hasTag("none")',
    'principal.getTag("none") == 1',
    'User::"nobody".hasTag("x")',
    'User::"nobody".getTag("x") == 1',
    'User::"nobody" in Group::"g"',
    'principal in [Group::"none", Group::"top"]',
    'principal in [Group::"top", 1]',
    'principal is User in Group::"top"',
    'principal is User in [Group::"none", Group::"g"]',
    'principal is Tool',
    '1 is Tool',
    '{a: 1, b: 2} == {b: 2, a: 1} && {a: 1} != {a: 1, b: 2}',
    '[1, 2, 2] == [2, 1] && [[1], [2]].contains([2]) && ![1].contains("1")',
    '[].isEmpty() && [].containsAll([]) && ![].containsAny([])',
    '1.isEmpty()',
    '9007199254740991 * 1024 > 0',
    '9007199254740991 * 1025 > 0',
    '-context.n == -3 && context.n - 5 < 0',
    'if context.b then context.n == 3 else 1',
    'if context.s then true else true',
    'context.s < "z"',
    'context.time < context.span',
    'context.time > datetime("2024-01-01") && context.span <= duration("90m")',
    'context.dec == decimal("1.5000") && context.dec.lessThanOrEqual(decimal("1.5"))',
    'context.dec < decimal("2.0")',
    'context.missing == 1 || true',
    'true || context.missing == 1',
    'false && context.missing == 1',
    '!context.n',
  ]
}
