import { Agent, request } from 'node:http'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { answer, startScripted } from '../testing/scripted-backend.ts'
import { startTestVmcp } from '../testing/test-vmcp.ts'

type Era = 'legacy' | 'modern'

const CALLS = 20
const MODERN = '2026-07-28'
const META = { 'io.modelcontextprotocol/protocolVersion': MODERN, 'io.modelcontextprotocol/clientCapabilities': {} }
const INITIALIZE = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } }

interface Posted {
  readonly status: number
  readonly session: string
  readonly text: string
}

/** Callbacks and one connection: `fetch` makes abort controllers of its own. */
class PlainClient implements Disposable {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })
  readonly #url: string
  readonly #era: Era
  #session: Record<string, string> = {}

  constructor(url: string, era: Era) {
    this.#url = url
    this.#era = era
  }

  async open(): Promise<void> {
    if (this.#era === 'modern') return
    const { session } = await this.#post({ id: 0, method: 'initialize', params: INITIALIZE })
    this.#session = { 'mcp-session-id': session }
    await this.#post({ method: 'notifications/initialized' })
  }

  call(id: number): Promise<Posted> {
    const params = { name: 'work', arguments: {}, ...(this.#era === 'modern' && { _meta: META }) }
    const names = { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': 'work' }
    return this.#post({ id, method: 'tools/call', params }, this.#era === 'modern' ? names : this.#session)
  }

  [Symbol.dispose](): void {
    this.#agent.destroy()
  }

  #post(message: object, own: Record<string, string> = this.#session): Promise<Posted> {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...own }
    return new Promise((resolve, reject) => {
      const sent = request(this.#url, { method: 'POST', agent: this.#agent, headers }, (response) => {
        let text = ''
        response.on('data', (chunk: Buffer) => {
          text += chunk.toString()
        })
        response.on('end', () => resolve({ status: response.statusCode ?? 0, session: String(response.headers['mcp-session-id']), text }))
      })
      sent.on('error', reject).end(JSON.stringify({ jsonrpc: '2.0', ...message }))
    })
  }
}

afterEach(() => {
  vi.unstubAllGlobals()
})

/** Abort controllers that calls make once the client is connected to the backend, and the few of work in the background. */
async function controllersOf(client: Era, backend: Era, config: Readonly<Record<string, unknown>> = {}): Promise<number> {
  await using scripted = await startScripted({ era: backend, call: (call, response) => answer(response, call) })
  await using vmcp = await startTestVmcp({ backends: { one: scripted.url }, config })
  using plain = new PlainClient(vmcp.url, client)
  await plain.open()
  expect(await plain.call(1)).toMatchObject({ status: 200, text: expect.stringContaining('done') }) // it connects
  let made = 0
  vi.stubGlobal(
    'AbortController',
    class extends AbortController {
      constructor() {
        super()
        made++
      }
    },
  )
  for (let id = 2; id < 2 + CALLS; id++) expect((await plain.call(id)).text).toContain('done')
  return made
}

describe('a call that needs neither a retry nor a time limit of its own', () => {
  it.each([
    ['legacy', 'legacy'],
    ['legacy', 'modern'],
    ['modern', 'legacy'],
    ['modern', 'modern'],
  ] as const)('makes no abort controller, from a %s client to a %s backend', async (client, backend) => {
    expect(await controllersOf(client, backend)).toBeLessThan(CALLS / 2)
  })

  it.each(['legacy', 'modern'] as const)('makes none either where failed calls are sent again, between %s hops', async (era) => {
    expect(await controllersOf(era, era, { operational: { retry: { attempts: 3, backoff: '1s', on: ['connect'] } } })).toBeLessThan(
      CALLS / 2,
    )
  })
})
