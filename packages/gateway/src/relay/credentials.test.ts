import { type Backend, startBackend } from '@thv/http/testing/backend'
import { reject } from '@thv/mcp/wire-errors'
import type { Middleware } from '@thv/middleware/pipeline/middleware'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { afterEach, describe, expect, it } from 'vitest'
import { startTestRunner, type TestRunnerOptions } from '../../../../apps/proxyrunner/src/testing/test-runner.ts'
import { WireClient } from '../testing/wire-client.ts'

const open: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one[Symbol.asyncDispose]()
})

/** A token endpoint: each token is good until the backend says otherwise. */
function tokens(options: { readonly forgets?: boolean; readonly waits?: boolean } = {}) {
  let minted = 0
  const rejected: (string | undefined)[] = []
  const middleware: Middleware = {
    name: 'tokens',
    prepare(hop) {
      if (hop.caller === undefined) return undefined
      const set = () => {
        hop.credentials = { authorization: `Bearer ${hop.caller?.principal}-${minted}` }
        return undefined
      }
      return options.waits ? Promise.resolve().then(set) : set()
    },
    credentialsRejected(hop) {
      rejected.push(String(hop.credentials?.['authorization']))
      minted++
      return options.forgets !== false
    },
  }
  return { middleware, rejected }
}

const identify: Middleware = {
  name: 'identify',
  withholds: ['authorization'],
  open(context) {
    context.caller = { principal: String(context.exchange.headers['x-user'] ?? 'anonymous') }
    return undefined
  },
}

async function start(backend: string, middleware: readonly Middleware[], options: Partial<TestRunnerOptions> = {}) {
  const runner = await startTestRunner({ backend, middleware, ...options })
  open.push(runner)
  return { runner, client: new WireClient(runner.url) }
}

/** A backend that takes one token only and answers every other request with a challenge. */
async function picky(good: string): Promise<Backend> {
  const backend = await startBackend(({ headers, body }, response) => {
    if (headers.authorization === undefined) return void response.writeHead(401, { 'www-authenticate': 'Bearer probe' }).end()
    if (headers.authorization !== good) return void response.writeHead(401, { 'www-authenticate': 'Bearer error="backend"' }).end()
    const { id } = JSON.parse(body) as { id: number }
    response.setHeader('content-type', 'application/json')
    response.setHeader('www-authenticate', 'Bearer stray')
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } }))
  })
  open.push(backend)
  return backend
}

const calls = ({ requests }: Backend) => requests.filter(({ headers }) => headers.authorization !== undefined)

describe('credentials of ours that the backend refuses', () => {
  it.each([false, true])('are replaced once, and the call is repeated (asynchronous: %s)', async (waits) => {
    const backend = await picky('Bearer anonymous-1')
    const { middleware, rejected } = tokens({ waits })
    const { client } = await start(backend.url, [identify, middleware])
    const answer = await client.modernCall('x', {}, { headers: { authorization: 'Bearer of-the-client' } })
    expect(answer).toMatchObject({ status: 200, messages: [{ result: { content: [] } }] })
    expect(answer.headers.get('www-authenticate')).toBeNull()
    expect(rejected).toEqual(['Bearer anonymous-0'])
    expect(calls(backend).map(({ headers }) => headers.authorization)).toEqual(['Bearer anonymous-0', 'Bearer anonymous-1'])
  })

  it.each([
    ['a second time', {}, 2],
    ['and nothing can replace', { forgets: false }, 1],
  ])('%s: the client gets 502 and never the challenge', async (_, options, sent) => {
    const backend = await picky('Bearer good')
    const { client } = await start(backend.url, [identify, tokens(options).middleware])
    for (const [i, ask] of [
      () => client.modernCall('x'),
      () => client.modern('subscriptions/listen', { notifications: {} }),
      () => client.initialize(),
      () => client.request('ping'),
    ].entries()) {
      const before = calls(backend).length
      const answer = await ask()
      if (i !== 2) expect(calls(backend).length - before).toBe(sent)
      expect(answer).toMatchObject({ status: 502, messages: [{ error: { code: 5022 } }] })
      expect(answer.headers.get('www-authenticate')).toBeNull()
    }
    const stream = await client.get()
    expect([stream.status, stream.headers.get('www-authenticate')]).toEqual([502, null])
    expect((await client.delete()).status).toBe(502)
  })

  it('may be answered by prepare itself', async () => {
    const backend = await picky('Bearer good')
    let attempts = 0
    const challenge: Middleware = {
      name: 'challenge',
      prepare(hop) {
        if (hop.caller === undefined) return undefined
        if (attempts++ > 0) return reject('invalid_request', { httpStatus: 401, headers: { 'www-authenticate': 'Bearer ours' } })
        hop.credentials = { authorization: 'Bearer bad' }
        return undefined
      },
      credentialsRejected: () => true,
    }
    const { client } = await start(backend.url, [challenge])
    const answer = await client.modernCall('x')
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer ours'])
  })

  it('may be asked for with a question to the user, which answers the call', async () => {
    const backend = await picky('Bearer good')
    const params = { mode: 'url', url: 'https://mcp.example.com/oauth/connect/chat?link=x', message: 'Log in to chat.' }
    const result = { resultType: 'input_required', inputRequests: { 'login-chat': { method: 'elicitation/create', params } } }
    const asking: Middleware = {
      name: 'asking',
      prepare: (hop) => (hop.caller === undefined ? undefined : reject('login_needed', { httpStatus: 200, inBand: true, result })),
    }
    const { client } = await start(backend.url, [asking])
    const answer = await client.modernCall('x')
    expect(answer).toMatchObject({ status: 200, messages: [{ result }] })
    expect(answer.messages[0]).not.toHaveProperty('error')
    expect(calls(backend)).toEqual([])
  })

  it.each([
    ['links', { elicitation: { url: {} } }, '2025-11-25', 200],
    ['forms alone', { elicitation: { form: {} } }, '2025-11-25', 403],
    ['links, in a revision before them', { elicitation: { url: {} } }, '2025-06-18', 403],
  ])('may be asked for with a link, in a session whose client declared %s', async (_, capabilities, protocolVersion, status) => {
    const fixture = await startFixture({ era: 'legacy' })
    open.push(fixture)
    const link = { url: 'https://mcp.example.com/oauth/connect/chat?link=x', message: 'Log in to chat.' }
    const asking: Middleware = {
      name: 'asking',
      prepare: ({ outgoing }) =>
        outgoing?.method === 'tools/call'
          ? reject('insufficient_scope', { headers: { 'www-authenticate': 'Bearer ours' }, links: [link] })
          : undefined,
    }
    const { client } = await start(fixture.url, [asking])
    const clientInfo = { name: 'x', version: '1' }
    const begun = await client.request('initialize', { protocolVersion, capabilities, clientInfo })
    client.sessionId = begun.headers.get('mcp-session-id') ?? undefined
    expect(client.sessionId).toBeDefined()
    const answer = await client.call('echo')
    const isLink = status === 200
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([status, isLink ? null : 'Bearer ours'])
    const elicitations = [{ mode: 'url', elicitationId: expect.any(String), ...link }]
    expect(answer.messages[0].error).toMatchObject(isLink ? { code: -32042, data: { elicitations } } : { code: 4032 })
  })

  it('of the client itself pass, challenge and all', async () => {
    const backend = await picky('Bearer good')
    const { client } = await start(backend.url, [])
    const answer = await client.modernCall('x', {}, { headers: { authorization: 'Bearer of-the-client' } })
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer error="backend"'])
  })
})

describe('requests on behalf of a client', () => {
  async function startRecording(): Promise<{ fixture: Fixture; hops: string[]; recording: Middleware }> {
    const fixture = await startFixture({ era: 'legacy' })
    open.push(fixture)
    const hops: string[] = []
    const recording: Middleware = {
      name: 'recording',
      prepare(hop) {
        if (hop.caller !== undefined) hop.credentials = { 'x-principal': hop.caller.principal, 'x-token': String(hop.caller.token) }
        return undefined
      },
      headers: (hop, set) => void hops.push(`${hop.caller?.principal ?? 'proxy'} ${String(set['x-token'])}`),
    }
    return { fixture, hops, recording }
  }

  it('use the caller whose request caused them, with its newest token', async () => {
    const { fixture, hops, recording } = await startRecording()
    const withToken: Middleware = {
      name: 'token',
      open(context) {
        context.caller = { principal: 'ada', token: String(context.exchange.headers['x-presented']) }
        return undefined
      },
    }
    const { client, runner } = await start(fixture.url, [withToken, recording])
    await runner.probed()
    await client.initialize()
    fixture.admin.forgetSessions()
    hops.length = 0
    const answer = await client.call('echo', {}, { headers: { 'x-presented': 'fresh' } })
    expect(answer.status).toBe(200)
    // The call, the new initialize, the replayed notification, and the call again.
    expect(hops.length).toBeGreaterThanOrEqual(4)
    expect(new Set(hops)).toEqual(new Set(['ada fresh']))
    hops.length = 0
    expect((await client.delete()).status).toBeLessThan(300)
    expect(hops).toEqual(['ada undefined'])
  })

  it('are distinguished from those of the proxy itself', async () => {
    const { fixture, hops, recording } = await startRecording()
    const { runner } = await start(fixture.url, [recording])
    await runner.probed()
    expect(new Set(hops)).toEqual(new Set(['proxy undefined']))
  })
})
