import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { connectSdk } from '@thv/testkit/mcp/testing/sdk-client'
import { ensurePythonEnv, type PythonEnv } from '@thv/testkit/python/python-env'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type RunnerProcess, spawnRunner } from '../../apps/proxyrunner/src/testing/runner-process.ts'
import { startTestVmcp, type TestVmcp } from '../../apps/vmcp/src/testing/test-vmcp.ts'

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
let everything: RunnerProcess
let time: RunnerProcess

beforeAll(async () => {
  python = await ensurePythonEnv(PYTHON_PACKAGES)
  await Promise.all([startEverything(), startTime()])
}, 400_000)

afterAll(async () => {
  await everything?.[Symbol.asyncDispose]()
  await time?.[Symbol.asyncDispose]()
})

async function startEverything(): Promise<void> {
  const image = 'npx://@modelcontextprotocol/server-everything@2026.8.31'
  everything = await spawnRunner({ image, cmd_args: ['stdio'], transport: 'stdio' })
  // The first call waits for downloads, which may take longer than the client's own limit of a minute.
  const call = { tool: 'echo', args: { message: 'installs it' } }
  await vi.waitFor(() => CLIENTS[0]?.[1](everything.url, call), { timeout: 280_000, interval: 500 })
}

async function startTime(): Promise<void> {
  const config = { image: 'uvx://mcp-server-time@2026.10.19', cmd_args: ['--local-timezone', 'Europe/Berlin'], transport: 'stdio' }
  time = await spawnRunner(config, { PATH: `${python.bin}:${process.env['PATH']}` })
  const call = { tool: 'get_current_time', args: { timezone: 'UTC' } }
  await vi.waitFor(() => CLIENTS[0]?.[1](time.url, call), { timeout: 280_000, interval: 500 })
}

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
  it.each(CLIENTS)('serves %s', async (_name, drive) => {
    const { tools, texts } = await drive(everything.url, { tool: 'echo', args: { message: 'grüße 👩‍👩‍👧 \u00a0' } })
    expect(tools).toContain('echo')
    expect(texts.join('')).toContain('grüße 👩‍👩‍👧 \u00a0')
  })

  it('never gives one of 50 clients the answer of another', async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, async (_, index) => {
        const client = new ClientV1(info)
        await client.connect(new TransportV1(new URL(everything.url)) as never)
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
  it.each(CLIENTS)('serves %s', async (_name, drive) => {
    const { tools, texts } = await drive(time.url, { tool: 'get_current_time', args: { timezone: 'Asia/Tokyo' } })
    expect(tools).toContain('get_current_time')
    expect(texts.join('')).toContain('Asia/Tokyo')
  })
})

describe('a virtual server over published servers, behind runners and over HTTP', () => {
  let web: ChildProcess
  let vmcp: TestVmcp
  beforeAll(async () => {
    const port = await freePort()
    const script = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js')
    web = spawn(process.execPath, [script, 'streamableHttp'], { env: { ...process.env, PORT: String(port) }, stdio: 'ignore' })
    const backends = { stdio: everything.url, time: time.url, web: `http://127.0.0.1:${port}/mcp` }
    await vi.waitFor(() => fetch(backends.web), { timeout: 60_000, interval: 100 })
    vmcp = await startTestVmcp({ backends, config: { aggregation: { conflictResolution: 'prefix' } } })
  }, 120_000)
  afterAll(async () => {
    await vmcp?.[Symbol.asyncDispose]()
    if (web !== undefined && web.exitCode === null) {
      web.kill('SIGKILL')
      await once(web, 'exit')
    }
  })

  it.each(CLIENTS)('serves %s', async (name, drive) => {
    const { tools, texts } = await drive(vmcp.url, { tool: 'time_get_current_time', args: { timezone: 'Asia/Tokyo' } })
    expect(tools).toEqual(expect.arrayContaining(['stdio_echo', 'web_echo', 'time_get_current_time']))
    expect(texts.join('')).toContain('Asia/Tokyo')
    // Python takes seconds to start.
    for (const tool of name.startsWith('Python') ? [] : ['stdio_echo', 'web_echo'])
      expect((await drive(vmcp.url, { tool, args: { message: 'grüße 👩‍👩‍👧' } })).texts.join('')).toContain('grüße 👩‍👩‍👧')
  })

  it.each(['legacy', 'modern'] as const)('asks a %s client what server-everything asks: sampling and elicitation', async (mode) => {
    await using sdk = await connectSdk(new TransportV2(new URL(vmcp.url)), mode)
    const names = async () => (await sdk.client.listTools()).tools.map(({ name }) => name)
    await expect.poll(names, { timeout: 30_000 }).toContain('web_trigger-sampling-request')
    expect(await sdk.text('web_trigger-sampling-request', { prompt: 'capital?', maxTokens: 10 })).toContain('Paris')
    expect(JSON.stringify(await sdk.client.callTool({ name: 'web_trigger-elicitation-request', arguments: {} }))).toContain('Ada')
  })
})
