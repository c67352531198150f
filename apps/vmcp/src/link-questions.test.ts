import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { WireClient } from '@thv/gateway/testing/wire-client'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { connectSdk } from '@thv/testkit/mcp/testing/sdk-client'
import { describe, expect, it } from 'vitest'
import { callModern } from './testing/call-modern.ts'
import { json, startScripted } from './testing/scripted-backend.ts'
import { startTestVmcp } from './testing/test-vmcp.ts'

const URL_OF_FIXTURE = 'https://example.com/consent'
const OPENS_LINKS = { elicitation: { url: {} } }

describe('a server that asks the user to open a link', () => {
  it('legacy client, modern backend: the link gets an id, and the client hears when the call has ended', async () => {
    await using fixture = await startFixture({ era: 'modern' })
    await using vmcp = await startTestVmcp({ backends: { one: fixture.url } })
    await using sdk = await connectSdk(new StreamableHTTPClientTransport(new URL(vmcp.url)), 'legacy')
    const shown: unknown[] = []
    const completed: string[] = []
    sdk.client.setRequestHandler('elicitation/create', ({ params }) => {
      shown.push(params)
      return { action: 'accept' }
    })
    sdk.client.setNotificationHandler('notifications/elicitation/complete', ({ params }) => void completed.push(params.elicitationId))
    expect(await sdk.text('ask', { kind: 'url', message: 'open it' })).toContain('accept')
    expect(shown).toEqual([expect.objectContaining({ mode: 'url', url: URL_OF_FIXTURE, elicitationId: expect.any(String) })])
    const [{ elicitationId } = { elicitationId: '' }] = shown as { elicitationId: string }[]
    await expect.poll(() => completed).toEqual([elicitationId])
  })

  it('legacy client that opens no links, modern backend: the link is in the text of the failed tool', async () => {
    await using backend = await startScripted({
      era: 'modern',
      call: ({ id }, response) => {
        const link = { method: 'elicitation/create', params: { mode: 'url', url: URL_OF_FIXTURE, message: 'open it' } }
        json(response, JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'input_required', inputRequests: { link } } }))
      },
    })
    await using vmcp = await startTestVmcp({ backends: { one: backend.url } })
    const client = new WireClient(vmcp.url)
    await client.initialize({ elicitation: { form: {} } })
    const { result } = (await client.call('work')).messages.at(-1)
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining(URL_OF_FIXTURE) }] })
  })

  it('no link that a client cannot be shown gets into the log or the audit log', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'vmcp-links-'))
    const logFile = join(folder, 'audit.log')
    try {
      await using modern = await startScripted({
        era: 'modern',
        call: ({ id, params }, response) => {
          const { url } = params['arguments'] as { url: string }
          const link = { method: 'elicitation/create', params: { mode: 'url', url, message: 'open it' } }
          json(response, JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'input_required', inputRequests: { link } } }))
        },
      })
      await using legacy = await startScripted({
        era: 'legacy',
        list: () => ({ tools: [{ name: 'first', inputSchema: { type: 'object' } }] }),
        call: ({ id }, response) => {
          const error = { code: -32000, message: `first open ${URL_OF_FIXTURE}?state=one-time` }
          json(response, JSON.stringify({ jsonrpc: '2.0', id, error }))
        },
      })
      const steps = (url: string) => [{ id: 'only', tool: 'one.work', arguments: { url } }]
      const compositeTools = [
        { name: 'shown', description: 'One step.', steps: steps(`${URL_OF_FIXTURE}?state=one-time`) },
        { name: 'hidden', description: 'One step.', steps: steps('example.com/consent?state=one-time') },
      ]
      const config = { compositeTools, audit: { enabled: true, logFile } }
      await using vmcp = await startTestVmcp({ backends: { one: modern.url, two: legacy.url }, config })
      const client = new WireClient(vmcp.url)
      await client.initialize({ elicitation: { form: {} } })
      expect((await client.call('shown')).text).toContain(`${URL_OF_FIXTURE}?state=one-time`)
      expect((await client.call('hidden')).text).toContain('asks to open a link (open it)')
      expect((await client.call('first')).text).toContain('one-time')
      const audited = () => readFileSync(logFile, 'utf8')
      await expect.poll(audited).toContain('"jsonrpc_error_message":"first open [link]"')
      expect(audited()).toContain('the server asks to open [link] (open it)')
      const logged = vmcp.logged.join('\n')
      expect(logged).toContain('the server asks to open [link] (open it)')
      for (const text of [logged, audited()]) expect(text).not.toMatch(/one-time|example\.com/)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  it('legacy client that answers with an error, modern backend: the tool has failed', async () => {
    await using fixture = await startFixture({ era: 'modern' })
    await using vmcp = await startTestVmcp({ backends: { one: fixture.url } })
    await using sdk = await connectSdk(new StreamableHTTPClientTransport(new URL(vmcp.url)), 'legacy')
    sdk.client.setRequestHandler('elicitation/create', () => {
      throw new Error('the person is out')
    })
    const result = await sdk.client.callTool({ name: 'ask', arguments: { kind: 'elicitation' } })
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('the person is out') }] })
  })

  it('legacy client without a capability, modern backend: the tool has failed, and its text names the capability', async () => {
    await using fixture = await startFixture({ era: 'modern' })
    await using vmcp = await startTestVmcp({ backends: { one: fixture.url } })
    const client = new WireClient(vmcp.url)
    await client.initialize({})
    const { result } = (await client.call('test_sampling', { prompt: 'x' })).messages.at(-1)
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('sampling') }] })
  })

  it('modern client, legacy backend: a link during a call, and links before it', async () => {
    await using fixture = await startFixture({ era: 'legacy' })
    await using vmcp = await startTestVmcp({ backends: { one: fixture.url } })
    const asked = await callModern(vmcp.url, 'ask', { arguments: { kind: 'url', message: 'open it' }, capabilities: OPENS_LINKS })
    expect(asked.result).toMatchObject({
      resultType: 'input_required',
      inputRequests: { 'elicitation-1': { method: 'elicitation/create', params: { mode: 'url', url: URL_OF_FIXTURE } } },
    })
    const first = await callModern(vmcp.url, 'needs_url_consent', { capabilities: OPENS_LINKS })
    expect(first.result).toMatchObject({
      resultType: 'input_required',
      inputRequests: { 'elicitation-1': { method: 'elicitation/create', params: { mode: 'url', url: URL_OF_FIXTURE } } },
    })
    expect(JSON.stringify([asked, first])).not.toContain('elicitationId')
    expect(first.result).not.toHaveProperty('requestState')
    // Its retry is a new call.
    const inputResponses = { 'elicitation-1': { action: 'accept' } }
    const calls = fixture.stats.count('tools/call')
    await callModern(vmcp.url, 'needs_url_consent', { capabilities: OPENS_LINKS, inputResponses })
    expect(fixture.stats.count('tools/call')).toBe(calls + 1)
    for (const capabilities of [{}, { elicitation: {} }])
      expect((await callModern(vmcp.url, 'needs_url_consent', { capabilities })).error).toMatchObject({
        code: -32021,
        data: { requiredCapabilities: { elicitation: { url: {} } } },
      })
  })

  it('legacy client, legacy backend: the client hears that the link is done', async () => {
    const done = { jsonrpc: '2.0', method: 'notifications/elicitation/complete', params: { elicitationId: 'x' } }
    await using backend = await startScripted({
      era: 'legacy',
      call: ({ id }, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        const answer = { jsonrpc: '2.0', id, result: { content: [] } }
        response.end([done, answer].map((message) => `data: ${JSON.stringify(message)}\n\n`).join(''))
      },
    })
    await using vmcp = await startTestVmcp({ backends: { one: backend.url } })
    const client = new WireClient(vmcp.url)
    await client.initialize(OPENS_LINKS)
    expect((await client.call('work')).messages).toContainEqual(done)
    // Modern clients know no ids of links.
    expect((await client.modernCall('work')).text).not.toContain('elicitation')
  })
})
