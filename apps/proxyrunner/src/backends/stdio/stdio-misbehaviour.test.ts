import { spawn } from 'node:child_process'
import { request } from 'node:http'
import { fixtureCommand } from '@thv/testkit/mcp/fixture-process'
import { describe, expect, it } from 'vitest'
import type { Runtime, StdioEnd } from '../../runtime/runtime.ts'
import { fixtureServer, pipeRuntime, scriptedServer } from './testing/pipe-runtime.ts'
import { startStdioRunner } from './testing/stdio-runner.ts'
import { eventually, modern, openLegacy, textOf } from './testing/wire-client.ts'

/** Real processes with real pipes. */
function spawnRuntime(command: { command: string; args: readonly string[] }): Runtime {
  const children = new Set<ReturnType<typeof spawn>>()
  return {
    name: 'local',
    stdioCapacity: 16,
    startServer: () => Promise.reject(new Error('not a server with HTTP')),
    async openStdio() {
      const child = spawn(command.command, command.args, { stdio: ['pipe', 'pipe', 'ignore'] })
      children.add(child)
      const ended = new Promise<StdioEnd>((resolve) => {
        child.once('error', (error) => resolve({ message: error.message }))
        child.once('exit', (code, signal) => resolve({ message: `ended with ${code ?? signal}` }))
      })
      void ended.then(() => children.delete(child))
      const { stdin, stdout } = child
      return {
        stdin,
        stdout,
        ended,
        async close() {
          stdin.end()
          child.kill('SIGKILL')
          await ended
        },
      }
    },
    async close() {
      for (const child of children) child.kill('SIGKILL')
    },
  }
}

/** A program that answers the handshake, then does what the text says to each `tools/call`; `id` and `out` are at hand. */
const program = (onCall: string) => ({
  command: process.execPath,
  args: [
    '-e',
    `const out = (x) => process.stdout.write(typeof x === 'string' ? x : JSON.stringify(x) + '\\n')
     let rest = ''
     process.stdin.setEncoding('utf8').on('data', (text) => {
       const lines = (rest + text).split('\\n'); rest = lines.pop()
       for (const line of lines) {
         const { id, method, params } = JSON.parse(line)
         if (method === 'initialize') out({ jsonrpc: '2.0', id, result: { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'p', version: '1' } } })
         if (method === 'tools/call') { ${onCall} }
       }
     })`,
  ],
})

const SOON = { backoff: { baseMs: 1, maxMs: 1 } }

describe('a real process that misbehaves', () => {
  it('carries a megabyte of text in both directions without a change', async () => {
    await using runner = await startStdioRunner({ runtime: spawnRuntime(fixtureCommand({ transport: 'stdio', era: 'dual' })) })
    const text = 'größer 大きさ 🙂\u200d\ufffd\u0000\u2028'.repeat(25_000)
    const client = await openLegacy(runner.url)
    expect(JSON.parse(textOf(await client.tool('echo', { text })))).toEqual({ text })
    const answer = await modern(runner.url, 'tools/call', { name: 'echo', arguments: { text } })
    expect(JSON.parse(textOf(await answer.next()))).toEqual({ text })
  })

  it('prints all sorts of things between its messages', async () => {
    const noisy = program(`out('starting up\\n{ not json\\n\\n[1]\\n{"jsonrpc":"1.0","id":1,"result":{}}\\n')
      process.stdout.write(Buffer.from([0xff, 0xfe, 0x0a])); out({ jsonrpc: '2.0', id, result: { fine: true } })`)
    await using runner = await startStdioRunner({ runtime: spawnRuntime(noisy) })
    const client = await openLegacy(runner.url)
    expect(await client.call('tools/call')).toMatchObject({ result: { fine: true } })
    expect(runner.dropped('line', 'noise')).toBe(5)
    expect(runner.logged.filter((line) => line.includes('no message'))).toHaveLength(1)
  })

  it('answers under unknown ids', async () => {
    const wrong =
      program(`for (const other of [1, 'x', null, id + '0', id.replace(/.$/, '0')]) out({ jsonrpc: '2.0', id: other, result: { wrong: true } })
      out({ jsonrpc: '2.0', id, result: { right: true } })`)
    await using runner = await startStdioRunner({ runtime: spawnRuntime(wrong) })
    const client = await openLegacy(runner.url)
    for (let index = 0; index < 3; index++) expect(await client.call('tools/call')).toMatchObject({ result: { right: true } })
  })

  it('dies in the middle of a line, or hangs with its output closed', async () => {
    for (const end of ['process.exit(3)', 'require("node:fs").closeSync(1)']) {
      const dying = program(`require('node:fs').writeSync(1, '{"jsonrpc":"2.0","id":"' + id + '","result":{"half":'); ${end}`)
      await using runner = await startStdioRunner({ runtime: spawnRuntime(dying), config: SOON })
      const client = await openLegacy(runner.url)
      for (let index = 0; index < 2; index++) {
        const answer = await client.request('tools/call')
        // The half line is a broken answer, unless the end of the process is seen first.
        const code = expect.toBeOneOf([502, 5021])
        expect([answer.status, await answer.next()]).toMatchObject([502, { error: { code, data: { mayHaveRun: true } } }])
      }
    }
  })

  it('writes a line that never ends', async () => {
    const huge = program(`out('{"jsonrpc":"2.0","id":"' + id + '","result":"'); for (let i = 0; i < 40; i++) out('x'.repeat(100_000))
      out('"}\\n'); out({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })`)
    await using runner = await startStdioRunner({ runtime: spawnRuntime(huge), config: { maxLineBytes: 1_000_000 } })
    const client = await openLegacy(runner.url)
    const stream = await client.stream()
    const answer = await client.request('tools/call')
    expect([answer.status, await answer.next()]).toMatchObject([502, { error: { message: expect.stringContaining('size limit') } }])
    expect(await stream.next()).toMatchObject({ method: 'notifications/tools/list_changed' })
  })

  it('does not read its input: others get an error, and calls are not lost once it does', async () => {
    const deaf = program(
      `if (params.pause) { process.stdin.pause(); setTimeout(() => process.stdin.resume(), 300) } out({ jsonrpc: '2.0', id, result: {} })`,
    )
    await using runner = await startStdioRunner({ runtime: spawnRuntime(deaf) })
    const client = await openLegacy(runner.url)
    await client.call('tools/call', { pause: true })
    const padding = 'x'.repeat(100_000)
    const answers = await Promise.all(Array.from({ length: 20 }, (_, id) => client.call('tools/call', { padding }, { id })))
    expect(answers.map(({ id }) => id)).toEqual(answers.map((_, id) => id))
  })
})

describe('a server that says more than a client can take', () => {
  it('loses nothing on the way to a client that reads', async () => {
    const runtime = pipeRuntime(fixtureServer({ era: 'legacy' }))
    await using runner = await startStdioRunner({ runtime })
    const client = await openLegacy(runner.url)
    const count = 20_000
    const flood = { name: 'flood', arguments: { count, kind: 'progress' } }
    const messages = await (await client.request('tools/call', flood, { meta: { progressToken: 't' } })).all()
    expect(messages).toHaveLength(count + 1)
    const steps = messages.slice(0, -1).map((message) => (message['params'] as { progress: number }).progress)
    expect(steps).toEqual(Array.from({ length: count }, (_, index) => index + 1))
    expect(runner.dropped('progress', 'slow_client')).toBe(0)
  })

  it('drops progress for a client that does not read, never its answer, and delays no other client', async () => {
    const runtime = pipeRuntime(fixtureServer({ era: 'legacy' }))
    await using runner = await startStdioRunner({ runtime, config: { sharedHoldMs: 5 } })
    const [stuck, other] = [await openLegacy(runner.url), await openLegacy(runner.url)]
    const flood = { name: 'flood', arguments: { count: 100_000, kind: 'progress' } }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 'f', method: 'tools/call', params: { ...flood, _meta: { progressToken: 't' } } })
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': stuck.sessionId,
    }
    const answered = Promise.withResolvers<string>()
    const post = request(runner.url, { method: 'POST', headers }, (response) => {
      response.pause()
      const begin = () => {
        let text = ''
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk
        })
        response
          .on('end', () => answered.resolve(text))
          .on('error', answered.reject)
          .resume()
      }
      eventually('the flood is over', () => runner.dropped('progress', 'slow_client') > 1_000 && runner.backend.status.inFlight === 0).then(
        begin,
        answered.reject,
      )
    })
    post.end(body)
    await eventually('progress is dropped', () => runner.dropped('progress', 'slow_client') > 0)
    expect(textOf(await other.tool('echo', { still: 'served' }))).toBe('{"still":"served"}')
    const text = await answered.promise
    expect(text.match(/^data: .*$/gm)?.at(-1)).toContain('"id":"f"')
    expect(text).toContain('sent 100000')
  })

  it('is cut off where it does not even take its answers', async () => {
    const server = scriptedServer(({ id, method }, write) => {
      if (method === 'tools/call') write({ jsonrpc: '2.0', id, result: { padding: 'x'.repeat(200_000) } })
    })
    await using runner = await startStdioRunner({ runtime: pipeRuntime(server) })
    const stuck = await new Promise<{ endpoint: string; closed: Promise<void> }>((resolve, reject) => {
      const get = request(`${runner.base}/sse`, (response) => {
        const closed = new Promise<void>((done) => response.once('close', done).once('error', () => done()))
        response.once('data', (chunk: Buffer) => {
          response.pause()
          resolve({ endpoint: new URL(/data: (\S+)/.exec(chunk.toString())?.[1] ?? '', runner.base).href, closed })
        })
      })
      get.on('error', reject).end()
    })
    const send = (body: object) =>
      fetch(stuck.endpoint, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', ...body }),
      })
    await send({
      id: 0,
      method: 'initialize',
      params: { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
    })
    await eventually('the connection is given up', async () => {
      for (let id = 1; id <= 20; id++) await send({ id, method: 'tools/call', params: {} })
      return runner.backend.status.sessions === 0
    })
    const other = await openLegacy(runner.url)
    expect(await other.call('tools/call')).toMatchObject({ result: { padding: expect.any(String) } })
  })
})
