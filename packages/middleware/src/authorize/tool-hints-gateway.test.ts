import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { systemClock } from '@thv/kernel/clock'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { describe, expect, it } from 'vitest'
import { fixtureServer, pipeRuntime, scriptedServer } from '../../../../apps/proxyrunner/src/backends/stdio/testing/pipe-runtime.ts'
import { startStdioRunner } from '../../../../apps/proxyrunner/src/backends/stdio/testing/stdio-runner.ts'
import { SseWireClient } from '../../../../apps/proxyrunner/src/testing/sse-wire-client.ts'
import { startTestRunner } from '../../../../apps/proxyrunner/src/testing/test-runner.ts'
import { readUntil, WireClient } from '../../../gateway/src/testing/wire-client.ts'
import { LateToolSource } from '../pipeline/tool-source.ts'
import { authorizeDeps } from '../testing/policy-holder.ts'
import { createAuthorize } from './authorize.ts'
import { ToolHints } from './tool-hints.ts'

/* Policies that depend on hints, in front of real servers whose tools no client has listed yet. */

const FORBID = [
  'permit(principal, action, resource);',
  'forbid(principal, action, resource) when { resource has readOnlyHint && resource.readOnlyHint };',
]

function guard() {
  const source = new LateToolSource()
  const log = new CollectingLog()
  const classOf = () => ({ key: '', caller: undefined, authorization: undefined })
  const toolHints = new ToolHints({ source, classOf, clock: systemClock, log })
  return { source, log, middleware: [createAuthorize(authorizeDeps({ policies: FORBID }, { toolHints }))] }
}

async function tells(client: WireClient, era: 'legacy' | 'modern') {
  const call = async (name: string) => (await (era === 'modern' ? client.modernCall(name, {}) : client.call(name, {}))).status
  const calls = [await call('add_numbers'), await call('greet')]
  const listed = await (era === 'modern' ? client.modern('tools/list', {}) : client.request('tools/list', {}))
  const names = listed.messages.at(-1).result.tools.map(({ name }: { name: string }) => name)
  return { calls, lists: ['add_numbers', 'greet'].map((name) => names.includes(name)) }
}

describe.each(['modern', 'legacy'] as const)('a forbid by a hint of the server, for %s clients', (era) => {
  it('decides the call and the list alike, over HTTP, and leaves no session behind', async () => {
    const { source, middleware } = guard()
    await using fixture = await startFixture()
    await using runner = await startTestRunner({ backend: fixture.url, middleware })
    source.bind(runner.backend)
    await runner.probed()
    const client = new WireClient(runner.url)
    if (era === 'legacy') await client.initialize()
    const sessions = fixture.stats.sessions
    expect(await tells(client, era)).toEqual({ calls: [403, 200], lists: [false, true] })
    expect(fixture.stats.count('tools/call')).toBe(1)
    // One list of ours, one of the client, however many pages.
    const lists = fixture.stats.received.filter(
      ({ message }) => 'method' in message && message.method === 'tools/list' && !('cursor' in (message.params ?? {})),
    )
    expect(lists).toHaveLength(2)
    await expect.poll(() => fixture.stats.sessions).toBe(sessions)
  })

  it('decides the call and the list alike, over stdio', async () => {
    const { source, middleware } = guard()
    await using runner = await startStdioRunner({ runtime: pipeRuntime(fixtureServer({ era: 'dual' })), middleware })
    source.bind(runner.backend)
    const client = new WireClient(runner.url)
    if (era === 'legacy') await client.initialize()
    expect(await tells(client, era)).toEqual({ calls: [403, 200], lists: [false, true] })
  })
})

it('a forbid by a hint of the server decides calls over HTTP+SSE, too', async () => {
  const { source, middleware } = guard()
  await using fixture = await startFixture({ transport: 'sse' })
  await using runner = await startTestRunner({ backend: fixture.url, middleware, transport: 'sse' })
  source.bind(runner.backend)
  await using client = await SseWireClient.open(runner.url)
  await client.request(1, 'initialize', { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 'x', version: '1' } })
  expect(await client.request(2, 'tools/call', { name: 'greet' })).toHaveProperty('result')
  const denied = await client.post({ id: 3, method: 'tools/call', params: { name: 'add_numbers' } })
  expect(denied.status).toBe(403)
  expect(fixture.stats.count('tools/list')).toBeGreaterThan(0)
})

it('a backend that cannot be asked opens nothing', async () => {
  const { source, middleware, log } = guard()
  await using fixture = await startFixture()
  await using runner = await startTestRunner({ backend: fixture.url, middleware })
  source.bind({})
  await runner.probed()
  expect((await new WireClient(runner.url).modernCall('greet', {})).status).toBe(403)
  expect(log.lines.join()).toContain('cannot be asked for its tools')
})

describe('a list that the server announces as changed', () => {
  const CHANGED = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' }
  const toolsWith = (readOnlyHint: boolean) => ({
    tools: [{ name: 'look', inputSchema: { type: 'object' }, annotations: { readOnlyHint } }],
  })
  /** Calls that pass may be answered until the list is asked for again, for a second at most. */
  const denied = (client: WireClient) => expect.poll(async () => (await client.call('look')).status, { timeout: 30_000 }).toBe(403)

  it('is asked for again, over HTTP', async () => {
    let isReadOnly = false
    const streams: ServerResponse[] = []
    const backend = createServer((request, response) => {
      if (request.method === 'GET') {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
        streams.push(response)
        return
      }
      void text(request).then((body) => {
        const { id, method } = JSON.parse(body || '{}') as { id?: number; method?: string }
        if (id === undefined) return void response.writeHead(202).end()
        const capabilities = { tools: { listChanged: true } }
        const initialized = { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 'x', version: '1' } }
        const called = { content: [] }
        const result = method === 'initialize' ? initialized : method === 'tools/list' ? toolsWith(isReadOnly) : called
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
      })
    })
    await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve))
    try {
      const { source, middleware } = guard()
      const url = `http://127.0.0.1:${(backend.address() as AddressInfo).port}/mcp`
      await using runner = await startTestRunner({ backend: url, middleware })
      source.bind(runner.backend)
      const client = new WireClient(runner.url)
      await client.initialize()
      expect((await client.call('look')).status).toBe(200)
      const stream = await client.get()
      await expect.poll(() => streams.length).toBe(1)
      isReadOnly = true
      streams[0]?.write(`data: ${JSON.stringify(CHANGED)}\n\n`)
      await readUntil(stream, 'list_changed')
      await denied(client)
    } finally {
      backend.closeAllConnections()
      await new Promise((resolve) => backend.close(resolve))
    }
  })

  it('is asked for again, over stdio', async () => {
    let isReadOnly = false
    const runtime = pipeRuntime(
      scriptedServer(
        ({ id, method }, send) => {
          if (method === 'tools/list') send({ jsonrpc: '2.0', id, result: toolsWith(isReadOnly) })
          if (method === 'tools/call') send({ jsonrpc: '2.0', id, result: { content: [] } })
        },
        { capabilities: { tools: { listChanged: true } } },
      ),
    )
    const { source, middleware } = guard()
    await using runner = await startStdioRunner({ runtime, config: { era: 'legacy' }, middleware })
    source.bind(runner.backend)
    const client = new WireClient(runner.url)
    await client.initialize()
    expect((await client.call('look')).status).toBe(200)
    isReadOnly = true
    for (const { write } of runtime.started) write(`${JSON.stringify(CHANGED)}\n`)
    await denied(client)
  })
})
