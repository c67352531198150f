import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { WireClient } from '@thv/gateway/testing/wire-client'
import { createLifecycle, type Lifecycle } from '@thv/kernel/lifecycle'
import { createLogger } from '@thv/telemetry/log'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { fixtureCommand } from '@thv/testkit/mcp/fixture-process'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { buildProgram } from './program.ts'
import { type TestFolder, testFolder } from './runtime/testing/runtime-fixtures.ts'
import { SseWireClient } from './testing/sse-wire-client.ts'

let folder: TestFolder
let lifecycle: Lifecycle
const lines: string[] = []
/** Besides PATH. */
let variables: Record<string, string>

beforeEach(async () => {
  folder = await testFolder()
  lifecycle = createLifecycle({ drainMs: 10_000 })
  lines.length = 0
  variables = {}
})

afterEach(async () => {
  await lifecycle.shutdown('the test is over')
  await folder[Symbol.asyncDispose]()
})

function run(...args: string[]): { printed: string[]; done: Promise<void> } {
  const printed: string[] = []
  const log = createLogger({ level: 'debug', format: 'json', write: (line) => void lines.push(line) })
  const env = { PATH: process.env['PATH'], ...variables }
  const program = buildProgram({ out: (text) => void printed.push(text), env, lifecycle, log })
  return { printed, done: program.parseAsync(['node', 'thv-proxyrunner', ...args]) }
}

/** Runs a document and waits until it is served. */
async function serve(document: object, ...args: string[]): Promise<{ url: string; metricsUrl: string; base: string }> {
  const file = await folder.write('runconfig.json', JSON.stringify({ name: 'demo', host: '127.0.0.1', port: 0, ...document }))
  const { printed, done } = run('run', '--config', file, '--runtime', 'local', ...args)
  done.catch((error: unknown) => printed.push(String(error)))
  await expect.poll(() => printed.join(''), { timeout: 10_000 }).toMatch(/is served at|Error/)
  const url = /demo is served at (\S+)/.exec(printed.join(''))?.[1]
  if (url === undefined) throw new Error(printed.join(''))
  const listening: { metrics: string } = JSON.parse(lines.find((line) => line.includes('"listening"')) ?? '{}')
  return { url, base: new URL(url).origin, metricsUrl: listening.metrics }
}

async function untilReady(base: string): Promise<void> {
  await expect.poll(async () => (await fetch(`${base}/ready`)).status, { timeout: 15_000, interval: 50 }).toBe(200)
}

describe('wrong words', () => {
  it.each([
    [['walk'], /unknown command/],
    [['run', '--nope'], /unknown option/],
    [['run', '--runtime', 'moon'], /--runtime/],
    [['run', 'image', 'another'], /too many arguments/],
    [['run', '--config'], /--config/],
  ])('%j', async (args, message) => {
    await expect(run(...args).done).rejects.toMatchObject({ code: 'usage', message: expect.stringMatching(message) })
  })

  it('prints help when asked', async () => {
    const { printed, done } = run('run', '--help')
    await done
    expect(printed.join('')).toContain('--runtime')
    expect(printed.join('')).not.toContain('--foreground')
  })
})

describe('a run config', () => {
  it('that is missing, wrong or asks for too much ends the runner before it listens', async () => {
    await expect(run('run', '--config', `${folder.path}/none.json`).done).rejects.toMatchObject({ code: 'run_config_missing' })
    const bad = await folder.write('bad.json', '{"name":"x","transport":"pigeon"}')
    await expect(run('run', '--config', bad).done).rejects.toMatchObject({ code: 'run_config_invalid' })
    const secured = { name: 'x', transport: 'stdio', image: 'exec:///bin/cat', isolate_network: true }
    const asking = await folder.write('asking.json', JSON.stringify(secured))
    await expect(run('run', '--config', asking).done).rejects.toMatchObject({
      code: 'middleware_unsupported',
      message: expect.stringContaining('isolate_network'),
    })
    expect(lines.join('')).not.toContain('listening')
  })

  it('with a forbidden remote address ends it too', async () => {
    const file = await folder.write(
      'meta.json',
      JSON.stringify({ name: 'x', transport: 'streamable-http', remote_url: 'http://169.254.169.254/mcp' }),
    )
    await expect(run('run', '--config', file).done).rejects.toMatchObject({ code: 'backend_blocked' })
  })
})

describe('a server', () => {
  it('over stdio is run and served, and the flags of ToolHive (Go) do no harm', async () => {
    const { command, args } = fixtureCommand({ transport: 'stdio', era: 'legacy' })
    const document = { transport: 'stdio', image: `exec://${command}`, cmd_args: args }
    const { url, base, metricsUrl } = await serve(document, '--foreground=true', '--debug')
    expect(url).toMatch(/\/mcp$/)
    await untilReady(base)
    const client = new WireClient(url)
    await client.initialize()
    const { messages } = await client.call('echo', { text: 'over stdio' })
    expect(messages.at(-1).result.structuredContent).toEqual({ arguments: { text: 'over stdio' } })
    expect((await fetch(`${base}/metrics`)).status).toBe(404)
    expect((await fetch(`${base}/sse`)).status).toBe(404)
    const metrics = await (await fetch(metricsUrl)).text()
    expect(metrics).toContain('toolhive_mcp_backend_ready{server="demo",transport="stdio"} 1')
    expect(metrics).toContain('process_resident_memory_bytes')
    expect((await lifecycle.shutdown('test')).clean).toBe(true)
  })

  it('over stdio is served as HTTP+SSE when asked to', async () => {
    const { command, args } = fixtureCommand({ transport: 'stdio', era: 'legacy' })
    const { url, base } = await serve({ transport: 'stdio', proxy_mode: 'sse', image: `exec://${command}`, cmd_args: args })
    expect(url).toMatch(/\/sse$/)
    await untilReady(base)
    await using client = await SseWireClient.open(url)
    await client.initialize()
    expect(await client.request(1, 'tools/call', { name: 'echo', arguments: {} })).toHaveProperty('result')
    expect((await fetch(`${base}/mcp`, { method: 'POST' })).status).toBe(404)
  })

  it('over HTTP is run and served, answers 503 until it is up, and lives until calls are finished', async () => {
    const port = await freePort()
    const { command, args } = fixtureCommand({ transport: 'http', port })
    const gate = join(folder.path, 'gate')
    const held = ['-c', `until [ -e '${gate}' ]; do sleep 0.05; done; exec "$0" "$@"`, command, ...args]
    const document = { transport: 'streamable-http', target_port: port, image: 'exec:///bin/sh', cmd_args: held }
    const { url, base, metricsUrl } = await serve(document)
    const client = new WireClient(url)
    expect((await client.modernCall('echo')).status).toBe(503)
    await folder.write('gate', '')
    await untilReady(base)
    await client.initialize()
    let isAnswered = false
    const slow = client.call('slow', { ms: 400 }).finally(() => {
      isAnswered = true
    })
    const inFlight = async () => /^toolhive_mcp_requests_in_flight\{[^}]*\} 1$/m.test(await (await fetch(metricsUrl)).text())
    // On a busy machine it may be over before anybody looks.
    await expect.poll(async () => isAnswered || (await inFlight())).toBe(true)
    const report = lifecycle.shutdown('test')
    expect((await slow).messages.at(-1)).toMatchObject({ result: { content: [{ text: 'slept' }] } })
    expect(await report).toMatchObject({ clean: true })
    await expect(fetch(`http://127.0.0.1:${port}/mcp`)).rejects.toThrow()
  })

  it('elsewhere is served without running anything, with its headers and path', async () => {
    await using fixture = await startFixture()
    const { url } = await serve({
      transport: 'streamable-http',
      remote_url: `${fixture.url}?region=eu,us`,
      remote_policy: { allow_loopback: true },
      header_forward: { add_plaintext_headers: { 'X-Tenant': 'blue' } },
    })
    const client = new WireClient(url)
    const { messages } = await client.modernCall('report_request', {}, { headers: { 'x-tenant': 'red' } })
    const { headers } = JSON.parse(messages[0].result.content[0].text)
    expect(headers).toMatchObject({ 'x-tenant': 'blue', 'x-forwarded-proto': 'http', host: new URL(fixture.url).host })
    expect(headers['x-forwarded-for']).toBeUndefined()
  })

  it('on this machine is not called unless that is allowed', async () => {
    const file = await folder.write(
      'loop.json',
      JSON.stringify({ name: 'x', transport: 'streamable-http', remote_url: 'http://localhost:1/mcp' }),
    )
    await expect(run('run', '--config', file).done).rejects.toMatchObject({
      code: 'backend_blocked',
      message: 'remote_url: localhost is a loopback address; set remote_policy.allow_loopback to allow it',
    })
  })

  it('is not called at the address of the Kubernetes API server, by number or by a name that leads there', async () => {
    const remote = (remote_url: string) => ({
      name: 'x',
      transport: 'streamable-http',
      remote_url,
      remote_policy: { allow_loopback: true },
    })
    await using fixture = await startFixture()
    const { port } = new URL(fixture.url)
    variables = { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: port, TOOLHIVE_RUNTIME: 'local' }
    const named = await folder.write('api.json', JSON.stringify(remote(fixture.url)))
    await expect(run('run', '--config', named).done).rejects.toMatchObject({
      code: 'backend_blocked',
      message: 'remote_url: 127.0.0.1 is an address of the Kubernetes API server, which is never a remote server',
    })
    const { url } = await serve({ ...remote(`http://localhost:${port}/mcp`), name: 'demo' })
    const before = JSON.stringify(fixture.stats.http)
    const { status } = await new WireClient(url).modernCall('echo')
    expect([502, 503]).toContain(status) // 503 until the first probe has failed
    expect(JSON.stringify(fixture.stats.http)).toBe(before)
  })
})

describe('the process', () => {
  it('says where it listens, stops on SIGTERM, and ends with 0', async () => {
    const { command, args } = fixtureCommand({ transport: 'stdio', era: 'legacy' })
    const document = { name: 'demo', host: '127.0.0.1', port: 0, transport: 'stdio', image: `exec://${command}`, cmd_args: args }
    const file = await folder.write('runconfig.json', JSON.stringify(document))
    const main = fileURLToPath(new URL('main.ts', import.meta.url))
    const child = spawn(process.execPath, [main, 'run', '--config', file, '--runtime', 'local'], { stdio: ['ignore', 'pipe', 'ignore'] })
    const [line]: string[] = await once(createInterface({ input: child.stdout }), 'line')
    expect(line).toMatch(/^demo is served at http:\/\/127\.0\.0\.1:\d+\/mcp$/)
    child.kill('SIGTERM')
    const [code] = await once(child, 'exit')
    expect(code).toBe(0)
  })

  it('runs the server itself where there is no cluster, from the file of --config [002-229] [002-230]', async () => {
    const { command, args } = fixtureCommand({ transport: 'stdio', era: 'legacy', name: 'of this machine' })
    const document = { name: 'demo', host: '127.0.0.1', port: 0, transport: 'stdio', image: `exec://${command}`, cmd_args: args }
    const file = await folder.write('another-name.json', JSON.stringify(document))
    const { printed, done } = run('run', '--config', file)
    done.catch((error: unknown) => printed.push(String(error)))
    await expect.poll(() => printed.join(''), { timeout: 10_000 }).toMatch(/is served at|Error/)
    const client = new WireClient(/is served at (\S+)/.exec(printed.join(''))?.[1] ?? '')
    await client.initialize()
    const { messages } = await client.call('who_am_i')
    expect(messages.at(-1).result.structuredContent).toMatchObject({ name: 'of this machine' })
  })

  it.each<[string, string | undefined, (file: string) => string]>([
    ['is missing', undefined, (file) => `run config ${file} does not exist`],
    ['is no JSON', '{\n  "name": ', (file) => `run config ${file} is not JSON: line 2, column 11`],
    [
      'has a wrong field',
      '{"name":"demo","image":"x:1","transport":"pigeon"}',
      (file) => `run config ${file} has a problem: transport expects one of stdio, sse, streamable-http`,
    ],
  ])('ends with 78 when its run config %s, and names file and field [002-221]', async (_fault, content, expected) => {
    const file = content === undefined ? join(folder.path, 'none.json') : await folder.write('bad.json', content)
    const main = fileURLToPath(new URL('main.ts', import.meta.url))
    const child = spawn(process.execPath, [main, 'run', '--config', file], { stdio: ['ignore', 'ignore', 'pipe'] })
    let text = ''
    child.stderr.on('data', (chunk) => {
      text += chunk
    })
    const [code] = await once(child, 'close')
    expect([code, text]).toEqual([78, expect.stringContaining(expected(file))])
  })
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? address.port : 0
}
