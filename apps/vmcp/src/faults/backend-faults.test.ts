import { WireClient } from '@thv/gateway/testing/wire-client'
import { startBackend } from '@thv/http/testing/backend'
import { createCertificate } from '@thv/http/tls/certificate'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { describe, expect, it } from 'vitest'
import { answer, json, type ScriptedOptions, startScripted } from '../testing/scripted-backend.ts'
import { startTestVmcp, type TestVmcp, type TestVmcpOptions } from '../testing/test-vmcp.ts'

const ERAS = ['legacy', 'modern'] as const
type Era = (typeof ERAS)[number]
const COMBINATIONS = ERAS.flatMap((client) => ERAS.map((backend) => ({ client, backend })))

/** Calls of one client; in the legacy era its session is open. */
async function connect({ url }: TestVmcp, era: Era) {
  const client = new WireClient(url)
  if (era === 'legacy') await client.initialize()
  return async (name: string) => (await (era === 'legacy' ? client.call(name) : client.modernCall(name))).messages.at(-1)
}

async function before(scripted: ScriptedOptions, options: Partial<TestVmcpOptions> = {}) {
  const stack = new AsyncDisposableStack()
  const backend = stack.use(await startScripted(scripted))
  const vmcp = stack.use(await startTestVmcp({ backends: { one: backend.url }, ...options }))
  return { backend, vmcp, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

const names = ({ offer }: TestVmcp) => [...offer.view.now.tools.keys()]
const RETRY = { attempts: 5, backoff: '10ms', on: ['connect', 'unavailable'] }

describe('a backend that restarts during a call', () => {
  it.each(COMBINATIONS)('may have run it: it is not sent again, and the answer says so: $client client, $backend backend', async (eras) => {
    const tools = [{ name: 'work', inputSchema: { type: 'object' }, annotations: { idempotentHint: true } }]
    await using running = await before(
      {
        era: eras.backend,
        list: () => ({ tools }),
        call: (call, response) => (call.times === 2 ? void response.destroy() : answer(response, call)),
      },
      { config: { operational: { retry: RETRY } } },
    )
    const call = await connect(running.vmcp, eras.client)
    expect(await call('work')).toHaveProperty('result')
    expect(await call('work')).toMatchObject({ error: { data: { backend: 'one', mayHaveRun: true } } })
    expect(running.backend.calls.length).toBe(2)
    expect(await call('work')).toHaveProperty('result')
  })

  it.each(COMBINATIONS)('in the middle of its answer is no different: $client client, $backend backend', async (eras) => {
    await using running = await before({
      era: eras.backend,
      call: (call, response) => {
        if (call.times !== 2) return answer(response, call)
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(': working\n\n', () => response.destroy())
      },
    })
    const call = await connect(running.vmcp, eras.client)
    await call('work')
    expect(await call('work')).toMatchObject({ error: { data: { backend: 'one', mayHaveRun: true } } })
    expect(running.backend.calls.length).toBe(2)
    expect(await call('work')).toHaveProperty('result')
  })
})

describe('a backend that sends calls elsewhere', () => {
  it.each(COMBINATIONS)('is not followed: $client client, $backend backend', async (eras) => {
    await using elsewhere = await startBackend((_request, response) => json(response, '{}'))
    const call = (_call: unknown, response: Parameters<ScriptedOptions['call']>[1]) =>
      void response.writeHead(307, { location: `${elsewhere.url}/mcp` }).end()
    await using running = await before({ era: eras.backend, call })
    const failed = await (await connect(running.vmcp, eras.client))('work')
    expect(failed).toMatchObject({ error: { data: { backend: 'one' } } })
    expect(JSON.stringify(failed)).not.toContain('127.0.0.1')
    expect(elsewhere.requests).toEqual([])
  })

  it('is not followed when it is listed either', async () => {
    await using elsewhere = await startBackend((_request, response) => json(response, '{}'))
    await using mover = await startBackend((_request, response) => void response.writeHead(308, { location: elsewhere.url }).end())
    await using vmcp = await startTestVmcp({ backends: { one: `${mover.url}/mcp` } })
    expect([names(vmcp), elsewhere.connections]).toEqual([[], 0])
  })

  it('by its name, which now resolves to a metadata address, is not called there', async () => {
    let address = '127.0.0.1'
    const resolve = async () => [{ address, family: 4 as const }]
    await using backend = await startScripted({ era: 'legacy', call: (call, response) => answer(response, call) })
    const entry = { name: 'one', url: `http://tools.example:${backend.backend.port}/mcp`, type: 'entry' }
    const config = { backends: [entry], remotePolicy: { allowLoopback: true } }
    await using vmcp = await startTestVmcp({ backends: {}, config, resolve })
    const call = await connect(vmcp, 'legacy')
    expect(await call('work')).toHaveProperty('result')
    address = '169.254.169.254'
    for (const socket of backend.backend.sockets) socket.destroy()
    await expect.poll(() => backend.backend.sockets.size).toBe(0)
    const failed = await call('work')
    expect(failed).toMatchObject({ error: { data: { backend: 'one', mayHaveRun: false } } })
    expect(JSON.stringify(failed)).not.toContain('169.254')
    expect(backend.calls.length).toBe(1)
    address = '127.0.0.1'
    expect(await call('work')).toHaveProperty('result')
  })

  it('with a certificate that has expired is not spoken to', async () => {
    const tls = createCertificate({ commonName: 's', hosts: ['127.0.0.1'], notAfter: new Date(Date.now() - 60_000) })
    await using running = await before({ era: 'legacy', call: (call, response) => answer(response, call), tls })
    expect(names(running.vmcp)).toEqual([])
    expect(running.backend.backend.requests).toEqual([])
    expect(running.vmcp.offer.members.map(({ health }) => health.report.LastErrorCategory)).toEqual(['connection_failed'])
  })
})

describe('lists of a backend', () => {
  const tool = (name: string) => ({ name, inputSchema: { type: 'object' } })
  const call: ScriptedOptions['call'] = (each, response) => answer(response, each)

  it('without end are cut at 10,000 tools, which clients get page by page', async () => {
    let pages = 0
    const list = () => {
      const page = pages++
      return { tools: Array.from({ length: 500 }, (_, i) => tool(`t${page * 500 + i}`)), nextCursor: `c${page}` }
    }
    await using running = await before({ era: 'legacy', list, call })
    expect([names(running.vmcp).length, pages]).toEqual([10_000, 21])
    expect(running.vmcp.logged.join('\n')).toContain('over the limit')
    const client = new WireClient(running.vmcp.url)
    await client.initialize()
    const seen = new Set<string>()
    let cursor: string | undefined
    do {
      const { result } = (await client.request('tools/list', { cursor })).messages[0]
      for (const { name } of result.tools) seen.add(name)
      cursor = result.nextCursor
    } while (cursor !== undefined)
    expect(seen.size).toBe(10_000)
  })

  it('end at a cursor that leads back to itself', async () => {
    let pages = 0
    const list = () => ({ tools: [tool(`t${pages++}`)], nextCursor: 'again' })
    await using running = await before({ era: 'modern', list, call })
    expect([names(running.vmcp), pages]).toEqual([['t0', 't1'], 2])
  })

  it('that stop in the middle delay no client, and nothing of them is offered', async () => {
    await using healthy = await startFixture({ only: ['echo'] })
    const list = (cursor: string | undefined) => (cursor === undefined ? { tools: [tool('half')], nextCursor: 'next' } : undefined)
    await using hanging = await startScripted({ era: 'legacy', list, call })
    await using vmcp = await startTestVmcp({ backends: { a: healthy.url, b: hanging.url }, isAttempted: false })
    await expect.poll(() => names(vmcp)).toEqual(['echo'])
    const client = new WireClient(vmcp.url)
    await client.initialize()
    const { result } = (await client.request('tools/list')).messages.at(-1)
    expect(result.tools.map(({ name }: { name: string }) => name)).toEqual(['echo'])
    expect((await client.call('echo', { text: 'hi' })).text).toContain('hi')
    // It still hangs: no request has waited for it.
    expect(vmcp.offer.view.isMissing).toBe(true)
  })

  it('that lie about schemas, or are no lists, harm no other tool', async () => {
    const tools = [
      { name: 'text', inputSchema: 'none' },
      { name: 'bare', annotations: 'x', outputSchema: 7, description: null },
      { name: 'deep', inputSchema: JSON.parse(`${'{"properties":{"a":'.repeat(50)}{}${'}}'.repeat(50)}`) as object },
      { name: 'wrong', inputSchema: { type: 'array' } },
      { inputSchema: {} },
      null,
      ['tool'],
      tool('good'),
      { ...tool('good'), description: 'again' },
    ]
    await using running = await before({ era: 'legacy', list: () => ({ tools }), call })
    for (const era of ERAS) {
      expect(names(running.vmcp)).toContain('good')
      expect(await (await connect(running.vmcp, era))('good')).toHaveProperty('result')
    }
    const client = new WireClient(running.vmcp.url)
    await client.initialize()
    const { result } = (await client.request('tools/list')).messages[0]
    const shown = result.tools.map(({ name, inputSchema, annotations }: Record<string, never>) => [
      name,
      inputSchema?.['type'],
      annotations,
    ])
    expect(shown).toEqual(['bare', 'deep', 'good'].map((name) => [name, 'object', undefined]))
    const left = running.vmcp.offer.view.now.conflicts.map(({ outcome, original }) => `${outcome} ${original}`)
    expect(left.toSorted()).toEqual(['duplicate good', 'invalid ', 'invalid ', 'invalid ', 'invalid text', 'invalid wrong'])
  })

  it('that have changed by the time of the call: the backend is the judge', async () => {
    const gone: ScriptedOptions['call'] = ({ id }, response) =>
      json(response, JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32602, message: 'Unknown tool: work' } }))
    for (const backend of ERAS) {
      await using running = await before({ era: backend, call: gone })
      for (const era of ERAS) {
        const call = await connect(running.vmcp, era)
        expect(await call('work')).toMatchObject({ error: { code: -32602, message: 'Unknown tool: work' } })
      }
      expect(running.vmcp.offer.members.map(({ health }) => health.status)).toEqual(['healthy'])
    }
  })
})

describe('a result of 100 MB', () => {
  it.each(COMBINATIONS)('is cut off long before its end: $client client, $backend backend', async (eras) => {
    const chunk = Buffer.alloc(1 << 20, 'x')
    let sent = 0
    await using running = await before({
      era: eras.backend,
      call: (call, response) => {
        if (call.times > 1) return answer(response, call)
        response.writeHead(200, { 'content-type': 'application/json' })
        response.write(`{"jsonrpc":"2.0","id":${call.id},"result":{"content":[{"type":"text","text":"`)
        const more = () => {
          while (sent < 100 && !response.destroyed) {
            sent++
            if (!response.write(chunk)) return void response.once('drain', more)
          }
        }
        more()
      },
    })
    const call = await connect(running.vmcp, eras.client)
    expect(await call('work')).toMatchObject({ error: { data: { backend: 'one', limitBytes: 32 << 20, mayHaveRun: true } } })
    expect(sent).toBeLessThan(60)
    expect(await call('work')).toHaveProperty('result')
    expect(running.backend.calls.length).toBe(2)
  })
})
