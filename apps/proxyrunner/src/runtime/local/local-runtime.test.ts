import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Runtime } from '../runtime.ts'
import { isRuntimeError } from '../runtime-errors.ts'
import { configOf, eventually, isAlive, type MemoryLog, memoryLog, type TestFolder, testFolder } from '../testing/runtime-fixtures.ts'
import { createLocalRuntime, defaultDataDir, type LocalRuntimeOptions } from './local-runtime.ts'

const ECHO = 'process.stdin.pipe(process.stdout); console.error("pid", process.pid)'
const LISTEN =
  'require("node:http").createServer((q, s) => s.end(process.env.MCP_TRANSPORT)).listen(+process.env.MCP_PORT, process.env.MCP_HOST)'

describe('createLocalRuntime', () => {
  let log: MemoryLog
  let folder: TestFolder
  const runtimes: Runtime[] = []
  const never = new AbortController().signal
  beforeEach(async () => {
    log = memoryLog()
    folder = await testFolder()
  })
  afterEach(async () => {
    await Promise.all(runtimes.splice(0).map((runtime) => runtime.close()))
    await folder[Symbol.asyncDispose]()
  })

  const runtimeOf = (document: Record<string, unknown>, more: Partial<LocalRuntimeOptions> = {}) => {
    const config = configOf({ image: `exec://${process.execPath}`, ...document })
    const runtime = createLocalRuntime({ config, log, env: {}, dataDir: join(folder.path, 'data'), ...more })
    runtimes.push(runtime)
    return runtime
  }
  const pids = () => log.lines.filter(({ message }) => message === 'started demo').map(({ fields }) => Number(fields['pid']))

  it('starts a process of its own for each connection', async () => {
    const runtime = runtimeOf({ cmd_args: ['-e', ECHO] })
    const [a, b] = await Promise.all([runtime.openStdio(never), runtime.openStdio(never)])
    a.stdin.write('to a\n')
    b.stdin.write('to b\n')
    expect(String((await once(a.stdout, 'data'))[0])).toBe('to a\n')
    expect(String((await once(b.stdout, 'data'))[0])).toBe('to b\n')
    expect(a.instance).not.toBe(b.instance)
    await a.close()
    expect(await a.ended).toMatchObject({ code: 0 })
    b.stdin.end('bye')
    expect(await text(b.stdout)).toBe('bye')
  })

  it('keeps what the server prints to stderr out of stdout', async () => {
    const runtime = runtimeOf({ cmd_args: ['-e', ECHO] })
    const connection = await runtime.openStdio(never)
    await eventually('it is in the log', () => log.text().includes('pid '))
    connection.stdin.end('x')
    expect(await text(connection.stdout)).toBe('x')
  })

  it('has no more processes than there may be', async () => {
    const runtime = runtimeOf({ cmd_args: ['-e', ECHO], stdio_max_processes: 1 })
    expect(runtime.stdioCapacity).toBe(4)
    const outcomes = await Promise.allSettled([1, 2, 3, 4, 5].map(() => runtime.openStdio(never)))
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected')
    expect(refused.map(({ reason }) => isRuntimeError(reason, 'stdio_capacity'))).toEqual([true])
    const [first] = outcomes
    if (first?.status === 'fulfilled') void first.value.close()
    await (await runtime.openStdio(never)).close() // at once: the one that is ending does not count
  })

  it('ends a process whose caller has gone', async () => {
    const runtime = runtimeOf({ cmd_args: ['-e', ECHO] })
    await expect(runtime.openStdio(AbortSignal.abort(new Error('too late')))).rejects.toThrow('too late')
    await eventually('it is gone', () => pids().length === 1 && !isAlive(pids()[0] ?? 0))
  })

  it('ends everything at close, and takes no more', async () => {
    const runtime = runtimeOf(
      { cmd_args: ['-e', 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1000)'] },
      { stopLimits: { eofMs: 20, termMs: 20 } },
    )
    const connections = await Promise.all([runtime.openStdio(never), runtime.openStdio(never)])
    await runtime.close()
    for (const connection of connections) expect(await connection.ended).toHaveProperty('message')
    expect(pids().map(isAlive)).toEqual([false, false])
    await expect(runtime.openStdio(never)).rejects.toThrow('closed')
    await expect(runtime.startServer(never)).rejects.toThrow('closed')
  })

  it('runs a server with a port, on a free one when none is named', async () => {
    const runtime = runtimeOf({ transport: 'streamable-http', cmd_args: ['-e', LISTEN] })
    const stop = new AbortController()
    const server = await runtime.startServer(stop.signal)
    expect(server.url.hostname).toBe('127.0.0.1')
    await eventually('it is ready', () => server.state.ready)
    expect(await (await fetch(server.url)).text()).toBe('streamable-http')
    stop.abort()
    await eventually('it is gone', () => !isAlive(pids()[0] ?? 0))
    await runtime.close()
  })

  it.each<[string, Record<string, unknown>, string]>([
    ['a container image', { image: 'ghcr.io/x/y:1' }, 'image: without a cluster'],
    ['a mount', { volumes: ['/a:/b'] }, 'volumes: a local process sees'],
    ['a published port', { transport: 'sse', publish: ['80:80'] }, 'publish: a local process sees'],
  ])('refuses %s at once', (_, document, message) => {
    expect(() => runtimeOf(document)).toThrow(message)
  })

  it('warns of what has no effect here', () => {
    runtimeOf({ permission_profile: { name: 'none' }, k8s_pod_template_patch: '{"spec":{}}' })
    expect(log.text()).toMatch(/k8s_pod_template_patch has no effect[\s\S]*permission_profile has no effect/)
  })

  it('says at once that a program is not there', async () => {
    const missing = runtimeOf({ image: 'exec:///nowhere/program' })
    await expect(missing.openStdio(never)).rejects.toThrow('/nowhere/program is not an executable file')
    await expect(missing.startServer(never)).rejects.toThrow('/nowhere/program is not an executable file')
    const uvx = runtimeOf(
      { image: 'uvx://mcp-server-time@1.0.0' },
      { env: { PATH: folder.path, PIP_CONFIG_FILE: '/dev/null', UV_NO_CONFIG: '1' } },
    )
    const error = await uvx.openStdio(never).catch((e: unknown) => e)
    expect(isRuntimeError(error, 'program_missing')).toBe(true)
    expect(String(error)).toContain('pip install uv')
  })

  it('installs and runs a uvx:// package', async () => {
    const program = '#!/bin/sh\\necho $*, $MCP_TRANSPORT, $UV_INDEX\\n'
    const install = `const fs = require('node:fs'); const bin = process.env.UV_TOOL_BIN_DIR; fs.mkdirSync(bin, { recursive: true })
fs.writeFileSync(bin + '/mcp-server-time', '${program}', { mode: 0o755 })\n`
    await folder.write('uv', `#!${process.execPath}\n${install}`, 0o755)
    const env = { PATH: folder.path, UV_INDEX: 'somewhere' }
    const runtime = runtimeOf({ image: 'uvx://mcp-server-time@1.0.0', cmd_args: ['--tz', 'UTC'] }, { env })
    const outputs = await Promise.all([1, 2].map(async () => text((await runtime.openStdio(never)).stdout)))
    expect(outputs).toEqual(['--tz UTC, stdio,\n', '--tz UTC, stdio,\n'])
    expect(log.lines.filter(({ message }) => message === 'installing mcp-server-time@1.0.0')).toHaveLength(1)
  })

  it('installs and runs an npx:// package', async () => {
    const install = `const fs = require('node:fs'); fs.mkdirSync('node_modules/server/', { recursive: true })
fs.writeFileSync('node_modules/server/package.json', JSON.stringify({ version: '1.0.0', bin: 'cli.js' }))
fs.writeFileSync('node_modules/server/cli.js', 'console.log(process.argv.slice(2).join(), process.env.MCP_TRANSPORT)')\n`
    await folder.write('npm', `#!${process.execPath}\n${install}`, 0o755)
    const runtime = runtimeOf({ image: 'npx://server@1.0.0', cmd_args: ['a', 'b'] }, { env: { PATH: folder.path } })
    const outputs = await Promise.all([1, 2].map(async () => text((await runtime.openStdio(never)).stdout)))
    expect(outputs).toEqual(['a,b stdio\n', 'a,b stdio\n'])
    expect(log.lines.filter(({ message }) => message === 'installing server@1.0.0')).toHaveLength(1)
  })

  it('names the secret that it was not given', async () => {
    const runtime = runtimeOf({ cmd_args: ['-e', ECHO], secrets: ['token,target=TOKEN'] })
    await expect(runtime.openStdio(never)).rejects.toThrow('TOOLHIVE_SECRET_token')
  })

  it('keeps packages in the configured folder, or in the cache of the user', () => {
    expect(defaultDataDir({ THV_DATA_DIR: '/d' })).toBe('/d')
    expect(defaultDataDir({ XDG_CACHE_HOME: '/c', HOME: '/h' })).toBe('/c/thv')
    expect(defaultDataDir({ HOME: '/h' })).toBe('/h/.cache/thv')
  })
})
