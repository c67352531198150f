import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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
let memory: RunnerProcess
let files: RunnerProcess
let web: RunnerProcess

beforeAll(async () => {
  python = await ensurePythonEnv(PYTHON_PACKAGES)
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'thv-published-')))
  cleanups.push(async () => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'note.txt'), 'a note')
  ;[everything, time, memory, files, web] = await Promise.all([
    started('npx://@modelcontextprotocol/server-everything@2026.8.31', ['stdio'], { tool: 'echo', args: { message: 'installs it' } }),
    started('uvx://mcp-server-time@2026.10.19', ['--local-timezone', 'Europe/Berlin'], {
      ...{ tool: 'get_current_time', args: { timezone: 'UTC' } },
    }),
    started(
      'npx://@modelcontextprotocol/server-memory@2026.8.31',
      [],
      { tool: 'read_graph', args: {} },
      { MEMORY_FILE_PATH: `${folder}/graph` },
    ),
    started('npx://@modelcontextprotocol/server-filesystem@2026.8.31', [folder], { tool: 'list_allowed_directories', args: {} }),
    started('uvx://mcp-server-fetch@2026.10.24', ['--ignore-robots-txt', '--allow-private-ips'], {
      tool: 'fetch',
      args: { url: 'http://127.0.0.1:1/' },
    }),
  ])
}, 400_000)

const cleanups: (() => Promise<unknown>)[] = []
afterAll(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup()
})

/** A package behind a runner of its own. Its first call waits for downloads, which may take longer than the client's own limit of a minute. */
async function started(image: string, args: string[], first: Call, variables: Record<string, string> = {}): Promise<RunnerProcess> {
  const config = { image, cmd_args: args, transport: 'stdio', env_vars: variables }
  const runner = await spawnRunner(config, { PATH: `${python.bin}:${process.env['PATH']}` })
  cleanups.push(async () => await runner[Symbol.asyncDispose]())
  await vi.waitFor(() => CLIENTS[0]?.[1](runner.url, first), { timeout: 280_000, interval: 500 })
  return runner
}

const textsOf = (result: unknown) =>
  (result as { content: { type: string; text?: string }[] }).content.flatMap((block) => (block.type === 'text' ? [block.text ?? ''] : []))

/** Each makes its calls over one connection. */
const CLIENTS: readonly [string, (url: string, ...calls: Call[]) => Promise<Seen>][] = [
  [
    'TypeScript SDK 1',
    async (url, ...calls) => {
      const client = new ClientV1(info)
      // The SDK's own type of the transport is not exact about optional members.
      await client.connect(new TransportV1(new URL(url)) as never)
      const { tools } = await client.listTools()
      const texts: string[] = []
      for (const { tool, args } of calls) texts.push(...textsOf(await client.callTool({ name: tool, arguments: args })))
      await client.close()
      return { tools: tools.map((each) => each.name), texts }
    },
  ],
  [
    'TypeScript SDK 2, which asks for the newest era first',
    async (url, ...calls) => {
      const client = new ClientV2(info, { versionNegotiation: { mode: 'auto' } })
      await client.connect(new TransportV2(new URL(url)))
      const { tools } = await client.listTools()
      const texts: string[] = []
      for (const { tool, args } of calls) texts.push(...textsOf(await client.callTool({ name: tool, arguments: args })))
      await client.close()
      return { tools: tools.map((each) => each.name), texts }
    },
  ],
  ['Python SDK, automatic', (url, ...calls) => pythonClient(url, 'auto', calls)],
  ['Python SDK, legacy', (url, ...calls) => pythonClient(url, 'legacy', calls)],
]

async function pythonClient(url: string, mode: string, calls: readonly Call[]): Promise<Seen> {
  const script = fileURLToPath(new URL('python-client.py', import.meta.url))
  const words = calls.flatMap(({ tool, args }) => [tool, JSON.stringify(args)])
  const { stdout } = await run(python.python, [script, url, mode, ...words], { timeout: 180_000 })
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

describe('a virtual server over five published servers: behind runners, over HTTP, and remote', () => {
  let vmcp: TestVmcp
  const NOTE = 'grüße 👩‍👩‍👧'
  /** One call of each backend, and what its answer holds. */
  const CALLS: readonly [tool: string, args: () => Record<string, unknown>, answer: RegExp][] = [
    ['time_get_current_time', () => ({ timezone: 'Asia/Tokyo' }), /Asia\/Tokyo/],
    ['stdio_echo', () => ({ message: NOTE }), new RegExp(NOTE)],
    ['http_echo', () => ({ message: NOTE }), new RegExp(NOTE)],
    ['remote_echo', () => ({ message: NOTE }), new RegExp(NOTE)],
    ['memory_read_graph', () => ({}), /entities/],
    ['files_list_allowed_directories', () => ({}), /thv-published-/],
    ['web_fetch', () => ({ url: page.url }), /the text of a page/],
  ]
  const page = { url: '' }
  beforeAll(async () => {
    const port = await freePort()
    const script = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js')
    const overHttp = spawn(process.execPath, [script, 'streamableHttp'], { env: { ...process.env, PORT: String(port) }, stdio: 'ignore' })
    cleanups.push(() => ended(overHttp))
    const http = `http://127.0.0.1:${port}/mcp`
    await vi.waitFor(() => fetch(http), { timeout: 60_000, interval: 100 })
    const remote = await spawnRunner({ remote_url: http, remote_policy: { allow_loopback: true }, transport: 'streamable-http' })
    cleanups.push(async () => await remote[Symbol.asyncDispose]())
    page.url = await servedPage('the text of a page')
    const behindRunners = { stdio: everything.url, time: time.url, memory: memory.url, files: files.url, web: web.url, remote: remote.url }
    vmcp = await startTestVmcp({ backends: { ...behindRunners, http }, config: { aggregation: { conflictResolution: 'prefix' } } })
    cleanups.push(async () => await vmcp[Symbol.asyncDispose]())
    // A server in Python may take longer to start than a first list waits.
    const names = async () => (await CLIENTS[0]?.[1](vmcp.url, { tool: 'http_echo', args: { message: '' } }))?.tools
    const all = expect.arrayContaining(CALLS.map(([tool]) => tool))
    await vi.waitFor(async () => expect(await names()).toEqual(all), { timeout: 120_000, interval: 500 })
  })

  it.each(CLIENTS)('serves %s', async (_name, drive) => {
    const { tools, texts } = await drive(vmcp.url, ...CALLS.map(([tool, args]) => ({ tool, args: args() })))
    expect(tools).toEqual(expect.arrayContaining(CALLS.map(([tool]) => tool)))
    for (const [index, [, , answer]] of CALLS.entries()) expect(texts[index], texts.join('\n')).toMatch(answer)
  })

  it.each([
    ['legacy', 'http'],
    ['modern', 'http'],
    ['modern', 'remote'],
  ] as const)('asks a %s client what server-everything (%s) asks: sampling and elicitation', async (mode, backend) => {
    await using sdk = await connectSdk(new TransportV2(new URL(vmcp.url)), mode)
    const names = async () => (await sdk.client.listTools()).tools.map(({ name }) => name)
    await expect.poll(names, { timeout: 30_000 }).toContain(`${backend}_trigger-sampling-request`)
    expect(await sdk.text(`${backend}_trigger-sampling-request`, { prompt: 'capital?', maxTokens: 10 })).toContain('Paris')
    expect(JSON.stringify(await sdk.client.callTool({ name: `${backend}_trigger-elicitation-request`, arguments: {} }))).toContain('Ada')
  })
})

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

/** The address of a page with this text. */
async function servedPage(text: string): Promise<string> {
  const server = createServer((_, response) => void response.writeHead(200, { 'content-type': 'text/plain' }).end(text))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanups.push(() => new Promise((resolve) => server.close(resolve)))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}
