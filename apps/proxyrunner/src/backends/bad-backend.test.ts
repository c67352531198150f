import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from 'node:net'
import { gzipSync } from 'node:zlib'
import { WireClient } from '@thv/gateway/testing/wire-client'
import { createToolFilter } from '@thv/middleware/tool-filter/tool-filter'
import { afterEach, describe, expect, it } from 'vitest'
import { startTestRunner, type TestRunner, type TestRunnerOptions } from '../testing/test-runner.ts'

const open: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close()
})

type Handler = (request: IncomingMessage & { text: string }, response: ServerResponse) => void

async function listening(server: Server | TcpServer): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  open.push(async () => {
    if ('closeAllConnections' in server) server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
}

/** A backend that does to each POST of the client what the test says. */
async function backend(handler: Handler, options: Partial<TestRunnerOptions> = {}): Promise<{ client: WireClient; runner: TestRunner }> {
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += chunk
    if (text.includes('thv-discover')) response.writeHead(404).end()
    else handler(Object.assign(request, { text }), response)
  })
  return await runnerFor(await listening(server), options)
}

async function runnerFor(url: string, options: Partial<TestRunnerOptions>): Promise<{ client: WireClient; runner: TestRunner }> {
  const runner = await startTestRunner({ backend: url, ...options })
  open.push(async () => await runner[Symbol.asyncDispose]())
  return { client: new WireClient(runner.url), runner }
}

/** A backend that writes these bytes to every connection. */
async function rawBackend(bytes: string): Promise<WireClient> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {}).once('data', () => socket.end(bytes))
  })
  return (await runnerFor(await listening(server), {})).client
}

const JSON_TYPE = { 'content-type': 'application/json' }
const SSE_TYPE = { 'content-type': 'text/event-stream' }
const RESULT = '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'

describe('an answer that is no answer', () => {
  it.each([
    ['HTML', '<html>hello</html>'],
    ['nothing', ''],
    ['half a message', RESULT.slice(0, -10)],
    ['a batch', `[${RESULT}]`],
    ['a notification', '{"jsonrpc":"2.0","method":"notifications/x"}'],
    ['another id', '{"jsonrpc":"2.0","id":"1","result":{}}'],
  ])('%s becomes 502 under the id of the call', async (_, body) => {
    const { client } = await backend((_request, response) => response.writeHead(200, JSON_TYPE).end(body))
    expect(await client.modernCall('x')).toMatchObject({ status: 502, messages: [{ id: 1, error: { code: 502 } }] })
  })

  it.each([
    ['no HTTP at all', 'SSH-2.0-OpenSSH_9.6\r\n', 502],
    ['a header that is none', 'HTTP/1.1 200 OK\r\nbad header\r\n\r\n', 502],
    ['less than its length', 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{', 5021],
    ['nothing', '', 5021],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}', 502],
  ])('%s becomes a coded 502', async (_, bytes, code) => {
    const client = await rawBackend(bytes)
    expect(await client.modernCall('x')).toMatchObject({
      status: 502,
      messages: [{ id: 1, error: { code, data: { mayHaveRun: true } } }],
    })
  })

  it('of a failed handler is passed on as the answer to the call', async () => {
    const error = '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"boom"}}'
    const { client } = await backend((_request, response) => response.writeHead(500, JSON_TYPE).end(error))
    expect(await client.modernCall('x')).toMatchObject({ status: 200, text: error })
  })

  it.each([
    ['JSON', 200, JSON_TYPE, RESULT],
    ['an event stream', 200, SSE_TYPE, `data: ${RESULT}\n\n`],
    ['an error', 400, JSON_TYPE, '{"error":"bad"}'],
  ])('%s that is compressed without being requested becomes 502', async (_, status, type, body) => {
    const answer: Handler = (_request, response) => response.writeHead(status, { ...type, 'content-encoding': 'gzip' }).end(gzipSync(body))
    const { client } = await backend(answer)
    expect(await client.modernCall('x')).toMatchObject({ status: 502, messages: [{ id: 1, error: { code: 502 } }] })
    expect((await client.initialize()).status).toBe(502)
    client.sessionId = undefined
    expect((await client.get()).status).toBe(502)
    const filtered = await backend(answer, { middleware: [createToolFilter({ filter: ['a'], overrides: {} }, { warn: () => {} })] })
    expect((await filtered.client.modern('tools/list')).status).toBe(502)
  })

  it('that says it is not encoded passes', async () => {
    const headers = { ...JSON_TYPE, 'content-encoding': 'Identity' }
    const { client } = await backend((_request, response) => response.writeHead(200, headers).end(RESULT))
    expect(await client.modernCall('x')).toMatchObject({ status: 200, text: RESULT })
  })
})

describe('headers of an answer', () => {
  const foreign = {
    'set-cookie': ['session=1', 'other=2'],
    'access-control-allow-origin': '*',
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': 'x-own',
    'access-control-something-new': '1',
    'x-own': 'kept',
  }

  it.each([
    ['JSON', 200, JSON_TYPE, RESULT],
    ['an event stream', 200, SSE_TYPE, `data: ${RESULT}\n\n`],
    ['an error', 404, JSON_TYPE, '{"error":"bad"}'],
  ])('%s: cookies and cross-origin permissions of the backend do not reach the client', async (_, status, type, body) => {
    const { client } = await backend((_request, response) => response.writeHead(status, { ...type, ...foreign }).end(body))
    const called = await client.modernCall('x')
    expect(called.headers.get('x-own')).toBe('kept')
    for (const answer of [called, await client.request('initialize', {}), await client.get()]) {
      const names = [...answer.headers.keys()]
      expect(names.filter((name) => name === 'set-cookie' || name.startsWith('access-control-'))).toEqual([])
    }
  })
})

describe('a stream', () => {
  it('that ends without the answer is completed with an error', async () => {
    const progress = 'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}\n\n'
    const { client } = await backend((_request, response) => response.writeHead(200, SSE_TYPE).end(progress))
    const { messages } = await client.modernCall('x')
    expect(messages).toMatchObject([{ method: 'notifications/progress' }, { id: 1, error: { code: 502 } }])
  })

  it('that breaks off inside an event ends after the last whole one', async () => {
    const { client } = await backend((_request, response) => {
      response.writeHead(200, SSE_TYPE).write('data: {"jsonrpc":"2.0","method":"a"}\n\ndata: {"jsonrpc":"2.0","id":1,"res')
      setTimeout(() => response.destroy(), 20)
    })
    const { messages } = await client.modernCall('x')
    expect(messages).toMatchObject([{ method: 'a' }, { id: 1, error: { code: 5021, data: { mayHaveRun: true } } }])
  })

  it('with event ids may break off: a legacy client comes back for the rest', async () => {
    const { client } = await backend((_request, response) => response.writeHead(200, SSE_TYPE).end('id: 1\ndata: \n\nretry: 10\n\n'))
    const answer = await client.call('x')
    expect([answer.status, answer.text]).toEqual([200, 'id: 1\ndata: \n\nretry: 10\n\n'])
  })

  it('that goes on after the answer is not held against it', async () => {
    const { client } = await backend((_request, response) => {
      response.writeHead(200, SSE_TYPE).write(`data: ${RESULT}\n\n`)
      setTimeout(() => response.end(': bye\n\n'), 20)
    })
    expect((await client.modernCall('x')).text).toBe(`data: ${RESULT}\n\n: bye\n\n`)
  })

  it('is not to be stored or held back, whatever the backend says about that', async () => {
    const headers = { ...SSE_TYPE, 'cache-control': 'public, max-age=60', 'x-accel-buffering': 'yes', 'x-own': '1' }
    const { client } = await backend((_request, response) => response.writeHead(200, headers).end(`data: ${RESULT}\n\n`))
    const { headers: got } = await client.modernCall('x')
    expect([got.get('cache-control'), got.get('x-accel-buffering'), got.get('x-own')]).toEqual(['no-store', 'no', '1'])
  })

  it('of a client that does not read makes the backend wait', async () => {
    let written = 0
    const frame = `data: {"jsonrpc":"2.0","method":"x","params":"${'x'.repeat(60_000)}"}\n\n`
    const { client } = await backend((_request, response) => {
      response.writeHead(200, SSE_TYPE)
      const fill = () => {
        while (!response.destroyed && response.write(frame)) written += frame.length
        response.once('drain', fill)
      }
      fill()
    })
    const leave = new AbortController()
    const response = await fetch(client.url, {
      method: 'POST',
      signal: leave.signal,
      headers: { ...JSON_TYPE, accept: 'application/json, text/event-stream' },
      body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
    })
    expect(response.status).toBe(200)
    const settled = async () => {
      const before = written
      await new Promise((resolve) => setTimeout(resolve, 150))
      return written === before
    }
    await expect.poll(settled, { timeout: 10_000 }).toBe(true)
    expect(written).toBeLessThan(40_000_000)
    leave.abort()
  })
})

describe('a redirect', () => {
  it('on the same server is followed with method and body, and remembered', async () => {
    const seen: string[] = []
    const { client } = await backend((request, response) => {
      seen.push(`${request.method} ${request.url}`)
      if (request.url?.startsWith('/mcp/') !== true) response.writeHead(307, { location: `/mcp/${request.url?.slice(4) ?? ''}` }).end()
      else response.writeHead(200, JSON_TYPE).end(`{"jsonrpc":"2.0","id":${JSON.parse(request.text).id},"result":{}}`)
    })
    expect((await client.modernCall('x')).status).toBe(200)
    expect((await client.modernCall('x')).status).toBe(200)
    expect(seen).toEqual(['POST /mcp', 'POST /mcp/', 'POST /mcp/'])
  })

  it.each(['http://127.0.0.1:1/mcp', 'https://127.0.0.1/mcp', '//evil.example/mcp', 'nonsense://'])('to %s is not', async (location) => {
    const { client } = await backend((_request, response) => response.writeHead(308, { location }).end())
    const answer = await client.modernCall('x')
    expect(answer).toMatchObject({ status: 502, messages: [{ error: { code: 502 } }] })
    expect(answer.headers.get('location')).toBeNull()
  })

  it('in a circle ends', async () => {
    let count = 0
    const { client } = await backend((_request, response) => {
      count++
      response.writeHead(307, { location: '/mcp' }).end()
    })
    expect((await client.modernCall('x')).status).toBe(502)
    expect(count).toBeLessThanOrEqual(6)
  })
})

describe('a refusal of the backend', () => {
  it.each([401, 403, 406, 415, 422, 429])('with %i gets to the client as it is', async (status) => {
    const headers = { ...JSON_TYPE, 'www-authenticate': 'Bearer', 'retry-after': '7' }
    const { client } = await backend((_request, response) => response.writeHead(status, headers).end('{"own":"body"}'))
    const answer = await client.modernCall('x')
    expect([answer.status, answer.text]).toEqual([status, '{"own":"body"}'])
    expect([answer.headers.get('www-authenticate'), answer.headers.get('retry-after')]).toEqual(['Bearer', '7'])
  })
})

it('a session id that a backend gives to modern requests stays behind', async () => {
  const { client } = await backend((_request, response) => response.writeHead(200, { ...JSON_TYPE, 'mcp-session-id': 'leak' }).end(RESULT))
  expect((await client.modernCall('x')).headers.get('mcp-session-id')).toBeNull()
})

it('a backend that hands out a session to the probe has it ended', async () => {
  const seen: string[] = []
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.headers['mcp-session-id'] ?? ''}`)
    request.resume().on('end', () => response.writeHead(200, { ...JSON_TYPE, 'mcp-session-id': 'probe' }).end('{}'))
  })
  await runnerFor(await listening(server), {})
  await expect.poll(() => seen).toEqual(['POST ', 'DELETE probe'])
})
