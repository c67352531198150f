import type { Identity } from '@thv/auth/incoming/authenticator'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTestRunner, type TestRunner } from '../../../../apps/proxyrunner/src/testing/test-runner.ts'
import { WireClient } from '../../../gateway/src/testing/wire-client.ts'
import type { Middleware } from '../pipeline/middleware.ts'
import type { AuthzOutcome } from '../pipeline/request-context.ts'
import { authorizeDeps } from '../testing/policy-holder.ts'
import { createAuthorize } from './authorize.ts'

/* Two users of one server, through a real gateway in front of a real MCP server. */

const POLICIES = [
  '@id("ann-echo") permit(principal == Client::"ann", action == Action::"call_tool", resource == Tool::"echo");',
  '@id("bob-who") permit(principal == Client::"bob", action == Action::"call_tool", resource == Tool::"who_am_i");',
]

/** Stands for authentication: the token is the subject. */
const identify: Middleware = {
  name: 'identify',
  open(context) {
    const subject = String(context.exchange.headers['authorization']).replace('Bearer ', '')
    const identity: Identity = { subject, issuer: 'https://idp', provider: 'idp', claims: { sub: subject } }
    context.caller = { principal: subject, identity }
    return undefined
  },
}

let fixture: Fixture
let runner: TestRunner
const audit: (AuthzOutcome | undefined)[] = []

beforeAll(async () => {
  fixture = await startFixture()
  const journal: Middleware = { name: 'journal', end: ({ authz }) => void audit.push(authz) }
  runner = await startTestRunner({
    backend: fixture.url,
    middleware: [journal, identify, createAuthorize(authorizeDeps({ policies: POLICIES }))],
  })
  await runner.probed()
})

afterAll(async () => {
  await runner[Symbol.asyncDispose]()
  await fixture.stop()
})

const as = (user: string) => ({ headers: { authorization: `Bearer ${user}` } })

describe('two users of one server', () => {
  it.each(['ann', 'bob'])('%s sees and calls only the own tool, in both eras [002-066]', async (user) => {
    const [own, other] = user === 'ann' ? ['echo', 'who_am_i'] : ['who_am_i', 'echo']
    const client = new WireClient(runner.url)
    const modern = await client.modern('tools/list', {}, as(user))
    expect(modern.messages.at(-1).result.tools.map(({ name }: { name: string }) => name)).toEqual([own])
    expect((await client.modernCall(own, {}, as(user))).messages.at(-1)).toHaveProperty('result')
    const before = fixture.stats.count('tools/call')
    const denied = await client.modernCall(other, {}, as(user))
    expect(denied.status).toBe(403)
    expect(denied.messages).toEqual([{ jsonrpc: '2.0', id: expect.any(Number), error: { code: 403, message: 'Unauthorized' } }])
    expect(fixture.stats.count('tools/call')).toBe(before)

    const opened = await client.request(
      'initialize',
      { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
      as(user),
    )
    client.sessionId = opened.headers.get('mcp-session-id') ?? undefined
    const legacy = await client.request('tools/list', {}, as(user))
    expect(legacy.messages.at(-1).result.tools.map(({ name }: { name: string }) => name)).toEqual([own])
    expect((await client.call(other, {}, as(user))).status).toBe(403)
  })

  it('get the same answer for a tool that is denied and one that does not exist', async () => {
    const client = new WireClient(runner.url)
    const [denied, unknown] = [await client.modernCall('who_am_i', {}, as('ann')), await client.modernCall('no_such_tool', {}, as('ann'))]
    expect(unknown.status).toBe(denied.status)
    expect(unknown.messages[0].error).toEqual(denied.messages[0].error)
  })

  it('leave in the context whether a denied tool exists, as soon as anyone has listed the tools', async () => {
    const client = new WireClient(runner.url)
    const listings = async () => {
      audit.length = 0
      for (const tool of ['who_am_i', 'no_such_tool', 'echo']) await client.modernCall(tool, {}, as('ann'))
      await expect.poll(() => audit.length).toBe(3)
      return audit.map((outcome) => [outcome?.decision, outcome?.isListed])
    }
    await client.modern('tools/list', {}, as('nobody'))
    expect(await listings()).toEqual([
      ['deny', true],
      ['deny', false],
      ['allow', undefined],
    ])
  })

  it('leave the deciding policy in the context', async () => {
    audit.length = 0
    const client = new WireClient(runner.url)
    await client.modernCall('echo', {}, as('ann'))
    await client.modernCall('who_am_i', {}, as('ann'))
    await expect
      .poll(() => audit.map((outcome) => [outcome?.decision, outcome?.policies]))
      .toEqual([
        ['allow', ['ann-echo']],
        ['deny', []],
      ])
  })
})
