import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { connectSdk } from '@thv/testkit/mcp/testing/sdk-client'
import { startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { describe, expect, it } from 'vitest'
import { startTestVmcp } from './testing/test-vmcp.ts'

const POLICIES = [
  'permit(principal, action == Action::"call_tool", resource == Tool::"both");',
  'permit(principal, action == Action::"call_tool", resource == Tool::"each");',
  'permit(principal, action == Action::"call_tool", resource == Tool::"a_add_numbers");',
  // A hidden tool has the name that it would have, and arguments count.
  'permit(principal == Client::"ada", action == Action::"call_tool", resource == Tool::"a_greet") when { context.arg_name != "Eve" };',
]

const both = {
  name: 'both',
  description: 'Adds, then greets.',
  parameters: { type: 'object', properties: { who: { type: 'string', maxLength: 10 } } },
  steps: [
    { id: 'sum', tool: 'a.add_numbers', arguments: { a: 1, b: 2 } },
    { id: 'hello', tool: 'a.greet', dependsOn: ['sum'], arguments: { name: '{{.params.who}}' } },
  ],
}
const each = {
  name: 'each',
  description: 'Greets all, as far as that is permitted.',
  steps: [
    {
      id: 'all',
      type: 'forEach',
      collection: '["Ada","Eve"]',
      onError: { action: 'continue' },
      step: { id: 'one', tool: 'a.greet', arguments: { name: '{{.forEach.item}}' } },
    },
  ],
}

describe('steps that policies judge', () => {
  it.each(['legacy', 'modern'] as const)('run only where the caller may call their tools: %s client', async (mode) => {
    await using stack = new AsyncDisposableStack()
    const idp = stack.use(await startOidcServer())
    const a = stack.use(await startFixture({ only: ['add_numbers', 'greet'] }))
    const oidc = { issuer: idp.issuer, audience: 'tests', protectedResourceAllowPrivateIp: true, insecureAllowHttp: true }
    const config = {
      aggregation: { conflictResolution: 'prefix', tools: [{ workload: 'a', exclude: ['greet'] }] },
      incomingAuth: { type: 'oidc', oidc, authz: { type: 'cedar', policies: POLICIES } },
      workflows: { authorizeSteps: true },
      compositeTools: [both, each],
    }
    const vmcp = stack.use(await startTestVmcp({ backends: { a: a.url }, config }))
    const connect = async (sub: string) => {
      const requestInit = { headers: { authorization: `Bearer ${await idp.token({ claims: { sub } })}` } }
      return stack.use(await connectSdk(new StreamableHTTPClientTransport(new URL(vmcp.url), { requestInit }), mode))
    }
    const ada = await connect('ada')
    const bob = await connect('bob')
    expect(await ada.text('both', { who: 'Ada' })).toContain('Hello, Ada!')
    const called = () => a.stats.count('tools/call')
    const before = called()
    const denied = await bob.client.callTool({ name: 'both', arguments: { who: 'Bob' } })
    expect(denied).toMatchObject({ isError: true })
    expect(JSON.stringify(denied)).not.toContain('Hello')
    // The step that was permitted ran, the other one never reached the backend.
    expect(called()).toBe(before + 1)
    expect((await ada.client.callTool({ name: 'both', arguments: { who: 'Eve' } })).isError).toBe(true)
    const [first] = (await ada.client.callTool({ name: 'each', arguments: {} })).content
    expect(first?.type === 'text' && first.text).toMatch(/Hello, Ada!/)
    expect(first?.type === 'text' && first.text).not.toMatch(/Hello, Eve!/)
    expect(vmcp.logged.join('\n')).toContain('a step is not permitted')
  })
})
