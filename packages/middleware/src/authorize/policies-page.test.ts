import { readFileSync } from 'node:fs'
import type { AccessPolicies } from '@thv/authz/access/access-policies'
import type { Arguments, Operation } from '@thv/authz/access/operation'
import type { Subject } from '@thv/authz/access/principal'
import { accessPolicies } from '@thv/authz/testing/access-policies'
import { describe, expect, it } from 'vitest'

/* Runs the examples of docs/how-to/policies.md: policies, and tables of callers, calls and decisions. */

const page = readFileSync(new URL('../../../../docs/how-to/policies.md', import.meta.url), 'utf8')
const examples = page
  .split(/^### /m)
  .slice(1)
  .map((text) => {
    const [title = ''] = text.split('\n', 1)
    const source = /```cedar\n(.*?)```/s.exec(text)?.[1] ?? ''
    const rows = [...text.matchAll(/^\| (anonymous|`.*?`) \| (.*?) \| (.*?) \|$/gm)].map(([, caller = '', call = '', decision = '']) => ({
      caller,
      call,
      decision,
    }))
    return { title, policies: source.split(/(?<=;)\n/).filter((policy) => policy.trim() !== ''), rows }
  })

function subjectOf(caller: string): Subject | undefined {
  if (caller === 'anonymous') return undefined
  const claims = JSON.parse(caller.slice(1, -1)) as Subject['claims']
  return { subject: String(claims['sub']), claims }
}

function operationOf(call: string): Operation {
  const [, method = '', target = '', args] = /^(\S+)(?: (\S+))?(?: `(.*)`)?$/.exec(call) ?? []
  const given: Arguments = args === undefined ? undefined : JSON.parse(args)
  if (method === 'tools/call') return { action: 'call_tool', name: target, visibleName: target, args: given, hints: undefined }
  if (method === 'list') return { action: 'call_tool', name: target, visibleName: target, args: 'unknown', hints: undefined }
  if (method === 'prompts/get') return { action: 'get_prompt', name: target, args: given }
  return method === 'resources/read' ? { action: 'read_resource', uri: target } : { action: 'request', method }
}

function decisionOf(policies: AccessPolicies, subject: Subject | undefined, call: string): string {
  const operation = operationOf(call)
  if (call.startsWith('list ')) return policies.isShown(subject, operation) ? 'shown' : 'hidden'
  if (policies.decide(subject, operation).allowed) return 'allowed'
  const scopes = policies.scopesFor(subject, operation)
  return scopes === undefined ? 'denied' : `needs ${scopes.join(' ')}`
}

it('the page has ten examples, each with decisions', () => {
  expect(examples).toHaveLength(10)
  for (const { rows, policies } of examples) {
    expect(rows.length).toBeGreaterThan(1)
    expect(policies.length).toBeGreaterThan(0)
  }
})

describe.each(examples)('example $title', ({ policies, rows }) => {
  it.each(rows)('$caller: $call is $decision', ({ caller, call, decision }) => {
    expect(decisionOf(accessPolicies(policies), subjectOf(caller), call)).toBe(decision)
  })
})
