import { TestClock } from '@thv/kernel/clock'
import type { Middleware } from '@thv/middleware/pipeline/middleware'
import { describe, expect, it } from 'vitest'
import { fixtureServer, pipeRuntime, type ScriptedMessage, scriptedServer } from './testing/pipe-runtime.ts'
import { startStdioRunner } from './testing/stdio-runner.ts'
import { eventually, post, send } from './testing/wire-client.ts'

/** Believes what a request says about its caller. */
const identify: Middleware = {
  name: 'identify',
  open(context) {
    context.caller = { principal: String(context.exchange.headers['x-user']) }
    return undefined
  },
}

const start = () => startStdioRunner({ runtime: pipeRuntime(fixtureServer({ era: 'legacy' })), middleware: [identify] })

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
}
const PING = { jsonrpc: '2.0', id: 1, method: 'ping' }

describe('a session belongs to the caller who opened it', () => {
  it('and does not exist for other callers, who cannot end it either', async () => {
    await using runner = await start()
    const { url } = runner
    const opened = await post(url, INITIALIZE, { 'x-user': 'ada' })
    const headers = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '', accept: 'text/event-stream' }
    const stream = await send(url, { headers: { ...headers, 'x-user': 'ada' } })
    for (const method of ['GET', 'DELETE']) {
      expect((await send(url, { method, headers: { ...headers, 'x-user': 'eve' } })).status).toBe(404)
    }
    expect((await post(url, PING, { ...headers, 'x-user': 'eve' })).status).toBe(404)
    expect((await post(url, PING, { ...headers, 'x-user': 'ada' })).status).toBe(200)
    const trigger = { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'test_trigger_tool_change' } }
    await post(url, trigger, { ...headers, 'x-user': 'ada' })
    expect(await stream.next()).toMatchObject({ method: 'notifications/tools/list_changed' })
    expect((await send(url, { method: 'DELETE', headers: { ...headers, 'x-user': 'ada' } })).status).toBe(204)
  })

  it('also over HTTP+SSE', async () => {
    await using runner = await start()
    const stream = await send(`${runner.base}/sse`, { headers: { 'x-user': 'ada' } })
    await eventually('the endpoint is known', () => stream.events.length > 0)
    const endpoint = new URL(stream.events[0]?.data ?? '', runner.base).href
    expect((await post(endpoint, PING, { 'x-user': 'eve' })).status).toBe(404)
    expect((await post(endpoint, PING, { 'x-user': 'ada' })).status).toBe(202)
    expect(await stream.next()).toMatchObject({ id: 1, result: {} })
    stream.abort()
  })
})

describe('messages of a shared server after the answer to a call', () => {
  /** Answers `first` at once and keeps `second` open; what it says in between names no call, but was caused by the first one. */
  async function startLate() {
    const open: unknown[] = []
    const refusals: ScriptedMessage[] = []
    let write: (message: object) => void = () => {}
    const server = scriptedServer((message, send) => {
      write = send
      if (message.method === 'tools/call' && message.params?.['name'] === 'first') send({ jsonrpc: '2.0', id: message.id, result: {} })
      else if (message.method === 'tools/call') open.push(message.id)
      else if (message.error !== undefined) refusals.push(message)
    })
    const clock = new TestClock()
    const runtime = pipeRuntime(server)
    const runner = await startStdioRunner({ runtime, config: { isolation: 'shared' }, clock, middleware: [identify] })
    return {
      ...{ runner, clock, refusals },
      async session(user: string) {
        const initialize = { ...INITIALIZE, params: { ...INITIALIZE.params, capabilities: { sampling: {} } } }
        const opened = await post(runner.url, initialize, { 'x-user': user })
        const headers = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '', 'x-user': user }
        return (name: string) => post(runner.url, { jsonrpc: '2.0', id: name, method: 'tools/call', params: { name } }, headers)
      },
      /** Says three things for the first call, then answers the second. */
      async finish() {
        await eventually('the second call is there', () => open.length === 1)
        write({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'late secret' } })
        write({ jsonrpc: '2.0', method: 'notifications/vendor/thing', params: { data: 'late secret' } })
        write({ jsonrpc: '2.0', id: 'q', method: 'sampling/createMessage', params: { messages: ['late secret'] } })
        write({ jsonrpc: '2.0', id: open[0], result: {} })
      },
      [Symbol.asyncDispose]: () => runner[Symbol.asyncDispose](),
    }
  }

  const methodsOf = (messages: readonly { method?: string }[]) => messages.flatMap(({ method }) => method ?? [])

  it('never reaches a session of another principal; a request is refused', async () => {
    await using late = await startLate()
    const [ada, eve] = [await late.session('ada'), await late.session('eve')]
    await (await ada('first')).all()
    const second = eve('second')
    await late.finish()
    expect(await (await second).all()).toEqual([{ jsonrpc: '2.0', id: 'second', result: {} }])
    await eventually('the server was refused', () => late.refusals.length === 1)
    expect(late.refusals).toMatchObject([{ id: 'q', error: { code: -32601 } }])
    const { runner } = late
    expect(['log', 'notification', 'request'].map((what) => runner.dropped(what, 'unattributed'))).toEqual([1, 1, 1])
  })

  it('reaches the session at work when it can be of the same principal only', async () => {
    await using late = await startLate()
    const [one, two] = [await late.session('ada'), await late.session('ada')]
    await (await one('first')).all()
    const second = two('second')
    await late.finish()
    expect(methodsOf(await (await second).all())).toEqual(['notifications/message', 'notifications/vendor/thing', 'sampling/createMessage'])
  })

  it('counts for one minute', async () => {
    await using late = await startLate()
    await (await (await late.session('ada'))('first')).all()
    await late.clock.advance(60_000)
    const eve = await late.session('eve')
    const second = eve('second')
    await late.finish()
    expect(methodsOf(await (await second).all())).toHaveLength(3)
  })
})
