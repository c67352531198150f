import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ensurePythonEnv, type PythonEnv } from '@thv/testkit/python/python-env'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type RunnerProcess, spawnRunner } from '../../apps/proxyrunner/src/testing/runner-process.ts'

/* Servers that others publish, behind the proxy as users start it, driven by the official clients. */

/** Without uv: the runner fetches its own with pip. */
const PYTHON_PACKAGES = ['mcp==2.3.0']
const run = promisify(execFile)
const info = { name: 'test', version: '1.0.0' }

interface Seen {
  tools: string[]
  texts: string[]
}

interface Call {
  tool: string
  args: Record<string, unknown>
}

let python: PythonEnv
beforeAll(async () => {
  python = await ensurePythonEnv(PYTHON_PACKAGES)
}, 300_000)

const textsOf = (result: unknown) =>
  (result as { content: { type: string; text?: string }[] }).content.flatMap((block) => (block.type === 'text' ? [block.text ?? ''] : []))

const CLIENTS: readonly [string, (url: string, call: Call) => Promise<Seen>][] = [
  [
    'TypeScript SDK 1',
    async (url, { tool, args }) => {
      const client = new ClientV1(info)
      // The SDK's own type of the transport is not exact about optional members.
      await client.connect(new TransportV1(new URL(url)) as never)
      const { tools } = await client.listTools()
      const result = await client.callTool({ name: tool, arguments: args })
      await client.close()
      return { tools: tools.map((each) => each.name), texts: textsOf(result) }
    },
  ],
  [
    'TypeScript SDK 2, which asks for the newest era first',
    async (url, { tool, args }) => {
      const client = new ClientV2(info, { versionNegotiation: { mode: 'auto' } })
      await client.connect(new TransportV2(new URL(url)))
      const { tools } = await client.listTools()
      const result = await client.callTool({ name: tool, arguments: args })
      await client.close()
      return { tools: tools.map((each) => each.name), texts: textsOf(result) }
    },
  ],
  ['Python SDK, automatic', (url, call) => pythonClient(url, 'auto', call)],
  ['Python SDK, legacy', (url, call) => pythonClient(url, 'legacy', call)],
]

async function pythonClient(url: string, mode: string, { tool, args }: Call): Promise<Seen> {
  const script = fileURLToPath(new URL('python-client.py', import.meta.url))
  const { stdout } = await run(python.python, [script, url, mode, tool, JSON.stringify(args)], { timeout: 60_000 })
  return JSON.parse(stdout) as Seen
}

describe('@modelcontextprotocol/server-everything from npm', () => {
  let runner: RunnerProcess
  beforeAll(async () => {
    runner = await spawnRunner({
      image: 'npx://@modelcontextprotocol/server-everything@2026.8.31',
      cmd_args: ['stdio'],
      transport: 'stdio',
    })
    await CLIENTS[0]?.[1](runner.url, { tool: 'echo', args: { message: 'installs it' } })
  }, 180_000)
  afterAll(() => runner?.[Symbol.asyncDispose]())

  it.each(CLIENTS)('serves %s', async (_name, drive) => {
    const { tools, texts } = await drive(runner.url, { tool: 'echo', args: { message: 'grüße 👩‍👩‍👧 \u00a0' } })
    expect(tools).toContain('echo')
    expect(texts.join('')).toContain('grüße 👩‍👩‍👧 \u00a0')
  })

  it('never gives one of 50 clients the answer of another', async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, async (_, index) => {
        const client = new ClientV1(info)
        await client.connect(new TransportV1(new URL(runner.url)) as never)
        const texts: string[] = []
        for (let call = 0; call < 4; call++) {
          texts.push(...textsOf(await client.callTool({ name: 'echo', arguments: { message: `client ${index} call ${call}` } })))
        }
        await client.close()
        return texts
      }),
    )
    expect(answers.map((texts) => texts.length)).toEqual(Array(50).fill(4))
    answers.forEach((texts, index) => {
      texts.forEach((text, call) => {
        expect(text).toContain(`client ${index} call ${call}`)
      })
    })
  })
})

describe('mcp-server-time from PyPI', () => {
  let runner: RunnerProcess
  beforeAll(async () => {
    const config = { image: 'uvx://mcp-server-time@2026.10.19', cmd_args: ['--local-timezone', 'Europe/Berlin'], transport: 'stdio' }
    runner = await spawnRunner(config, { PATH: `${python.bin}:${process.env['PATH']}` })
    // The first call waits for two downloads, which may take longer than the client's own limit of a minute.
    const call = { tool: 'get_current_time', args: { timezone: 'UTC' } }
    await vi.waitFor(() => CLIENTS[0]?.[1](runner.url, call), { timeout: 280_000, interval: 500 })
  }, 300_000)
  afterAll(() => runner?.[Symbol.asyncDispose]())

  it.each(CLIENTS)('serves %s', async (_name, drive) => {
    const { tools, texts } = await drive(runner.url, { tool: 'get_current_time', args: { timezone: 'Asia/Tokyo' } })
    expect(tools).toContain('get_current_time')
    expect(texts.join('')).toContain('Asia/Tokyo')
  })
})
