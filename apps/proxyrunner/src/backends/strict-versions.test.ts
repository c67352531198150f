import { describe, expect, it } from 'vitest'
import { fixtureServer, pipeRuntime } from './stdio/testing/pipe-runtime.ts'
import { startStdioRunner } from './stdio/testing/stdio-runner.ts'
import { openLegacy, post, send } from './stdio/testing/wire-client.ts'

const INITIALIZE = {
  ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
}

/** Statuses of a call, a notification, a response, GET, DELETE and `initialize` under the version. */
async function statuses(strictVersions: boolean, version: string): Promise<number[]> {
  await using runner = await startStdioRunner({ runtime: pipeRuntime(fixtureServer({ era: 'legacy' })), server: { strictVersions } })
  const { sessionId } = await openLegacy(runner.url)
  const headers = { 'mcp-session-id': sessionId, 'mcp-protocol-version': version }
  const call = await post(runner.url, { jsonrpc: '2.0', id: 2, method: 'ping' }, headers)
  const notification = await post(runner.url, { jsonrpc: '2.0', method: 'notifications/x' }, headers)
  const response = await post(runner.url, { jsonrpc: '2.0', id: 'q', result: {} }, headers)
  const stream = await send(runner.url, { headers: { ...headers, accept: 'text/event-stream' } })
  stream.abort()
  const end = await send(runner.url, { method: 'DELETE', headers })
  const initialize = await post(runner.url, INITIALIZE, { 'mcp-protocol-version': version })
  return [call, notification, response, stream, end, initialize].map(({ status }) => status)
}

describe('strict_protocol_validation', () => {
  it('rejects an unknown MCP-Protocol-Version on everything but initialize, which negotiates it', async () => {
    expect(await statuses(true, '1999-01-01')).toEqual([400, 400, 400, 400, 400, 200])
    expect(await statuses(true, '2025-06-18')).toEqual([200, 202, 202, 200, 204, 200])
  })

  it('is off by default: then only calls are rejected', async () => {
    expect(await statuses(false, '1999-01-01')).toEqual([400, 202, 202, 200, 204, 200])
  })
})
