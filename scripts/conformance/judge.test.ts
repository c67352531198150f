import { describe, expect, it } from 'vitest'
import { judge } from './judge.ts'
import { LEFT_OUT } from './left-out.ts'

const spec = (name: string, status: string) =>
  `<testcase name="[It] [sig-api-machinery] ${name} [Conformance]" status="${status}" time="1"></testcase>`
const report = (...cases: string[]) => `<testsuites><testsuite>${cases.join('')}</testsuite></testsuites>`

describe('the judgement of a report', () => {
  it('counts what has passed and what is left out', () => {
    const outcome = judge(report(spec('Watchers should a', 'passed'), spec('Quota should b', 'skipped')), { 'Quota should': 'no quotas' })
    expect([outcome.passed.length, outcome.failed.length, outcome.leftOut.length, outcome.problems]).toEqual([1, 0, 1, []])
  })

  it.each(['failed', 'skipped', 'panicked', 'timedout', ''])('takes "%s" for a problem', (status) => {
    const { problems } = judge(report(spec('Watchers should a', 'passed'), spec('Watchers should &#34;b&#34;', status)), {})
    expect(problems).toEqual([`${status || 'not run'}: [It] [sig-api-machinery] Watchers should "b" [Conformance]`])
  })

  it('does not pass without a spec that has passed, or with a name that no spec has', () => {
    expect(judge('', {}).problems).toEqual(['no spec has passed'])
    expect(judge(report(spec('a', 'passed')), { Gone: 'x' }).problems).toEqual(['left out, but no spec is called so: Gone'])
  })

  it('looks at the focus only', () => {
    const both = report(spec('a', 'passed'), spec('b', 'skipped'))
    expect(judge(both, {}, /\] a/).problems).toEqual([])
    expect(judge(both, {}, /\] b/).problems).not.toEqual([])
  })

  it('ignores specs of others', () => {
    const other =
      '<testcase name="[It] [sig-node] x [Conformance]" status="skipped"></testcase><testcase name="[It] [sig-api-machinery] y" status="failed">'
    expect(judge(report(other, spec('a', 'passed')), {}).problems).toEqual([])
  })
})

it('every spec that is left out has a reason', () => {
  for (const reason of Object.values(LEFT_OUT)) expect(reason.length).toBeGreaterThan(20)
})
