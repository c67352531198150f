import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { startTestRunner } from '../../../../apps/proxyrunner/src/testing/test-runner.ts'
import { WireClient } from '../../../gateway/src/testing/wire-client.ts'
import { compilePipeline } from '../pipeline/pipeline.ts'
import { authorizeDeps } from '../testing/policy-holder.ts'
import { testContext } from '../testing/test-context.ts'
import { createToolFilter } from '../tool-filter/tool-filter.ts'
import { createAuthorize } from './authorize.ts'

/* Lists in every form that a backend may give them: none shows what policies hide. */

const POLICIES = ['permit(principal, action, resource == Tool::"echo");']
const guard = () => createAuthorize(authorizeDeps({ policies: POLICIES }))
const result = (more: object = {}) => ({ resultType: 'complete', tools: [{ name: 'echo' }, { name: 'hidden' }], ...more })

/** Answers everything as `answer` says, with the id of the request. */
async function startBackend(answer: (response: ServerResponse, id: unknown) => void) {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      answer(response, text === '' ? undefined : JSON.parse(text).id)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

describe('a list in an answer', () => {
  it.each([
    ...[200, 201, 203, 400, 404, 500, 503].map((status) => [status, 'application/json'] as const),
    ...[200, 201, 400, 500].map((status) => [status, 'text/event-stream'] as const),
  ])('with status %i as %s shows only what policies permit', async (status, type) => {
    await using backend = await startBackend((response, id) => {
      const message = JSON.stringify({ jsonrpc: '2.0', id, result: result() })
      response.writeHead(status, { 'content-type': type })
      response.end(type === 'text/event-stream' ? `data: ${message}\n\n` : message)
    })
    await using runner = await startTestRunner({ backend: backend.url, middleware: [guard()] })
    const { text } = await new WireClient(runner.url).modern('tools/list', {})
    expect(text).not.toContain('hidden')
  })

  it.each(['application/json', 'text/event-stream'])(
    'whose members have names with escapes, as %s, shows only what policies permit',
    async (type) => {
      await using backend = await startBackend((response, id) => {
        const message = JSON.stringify({ jsonrpc: '2.0', id, result: result() })
          .replace('"result"', '"\\u0072esult"')
          .replace('"tools"', '"\\u0074ools"')
        response.writeHead(200, { 'content-type': type })
        response.end(type === 'text/event-stream' ? `data: ${message}\n\n` : message)
      })
      await using runner = await startTestRunner({ backend: backend.url, middleware: [guard()] })
      const { text } = await new WireClient(runner.url).modern('tools/list', {})
      expect(text).toContain('echo')
      expect(text).not.toContain('hidden')
    },
  )

  it('that cannot be checked is not passed on', async () => {
    await using backend = await startBackend((response, id) => {
      response.writeHead(201, { 'content-type': 'application/json' })
      response.end(`[${JSON.stringify({ jsonrpc: '2.0', id, result: result() })}]`)
    })
    await using runner = await startTestRunner({ backend: backend.url, middleware: [guard()] })
    const { text, status } = await new WireClient(runner.url).modern('tools/list', {})
    expect(text).not.toContain('hidden')
    expect(status).toBeGreaterThanOrEqual(500)
  })

  it('on the stream of subscriptions/listen shows only what policies permit', async () => {
    await using backend = await startBackend((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id: 'of another request', result: result() })}\n\n`)
    })
    await using runner = await startTestRunner({ backend: backend.url, middleware: [guard()] })
    const { text } = await new WireClient(runner.url).modern('subscriptions/listen', { notifications: { toolsListChanged: true } })
    expect(text).toContain('echo')
    expect(text).not.toContain('hidden')
  })
})

describe('the cache scope of a list', () => {
  const edited = (middleware: Parameters<typeof compilePipeline>[0], more: object) => {
    const context = testContext({ id: 1, method: 'tools/list' }, {})
    const text = JSON.stringify({ jsonrpc: '2.0', id: 1, result: result(more) })
    return JSON.parse(compilePipeline(middleware).responseText(context, text)).result
  }
  const all = createAuthorize(authorizeDeps({ policies: ['permit(principal, action, resource);'] }))

  it.each([
    ['public', { ttlMs: 1000, cacheScope: 'public' }],
    ['not said', { ttlMs: 1000 }],
    ['private', { ttlMs: 1000, cacheScope: 'private' }],
  ])('that is %s becomes private where policies filter, also when they hide nothing', (_, more) => {
    for (const middleware of [[guard()], [all]]) expect(edited(middleware, more)).toMatchObject({ ttlMs: 1000, cacheScope: 'private' })
  })

  it('stays as it is where the list is the same for every caller, and where there is none', () => {
    const filter = createToolFilter({ filter: ['echo'], overrides: {} }, { warn: () => {} })
    expect(edited([filter], { ttlMs: 1000, cacheScope: 'public' })).toMatchObject({ cacheScope: 'public', tools: [{ name: 'echo' }] })
    expect(edited([guard()], {})).not.toHaveProperty('cacheScope')
  })
})
