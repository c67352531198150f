import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { noteRunning } from '../local-platform/running-platform.ts'
import { runThv } from '../testing/run-thv.ts'

const asked: { url: string; headers: IncomingMessage['headers'] }[] = []
let answer: { status: number; body: string } = { status: 200, body: '' }
const server = createServer(({ url = '', headers }, response) => {
  asked.push({ url, headers })
  response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body)
})
let base = ''

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => new Promise((resolve) => server.close(resolve)))

const found = [
  {
    server: {
      name: 'io.example/browser',
      version: '1.2.0',
      description: 'Drives\u001b[31m a browser',
      packages: [{ registryType: 'npm', identifier: 'x' }],
    },
    _meta: {},
  },
  {
    server: { name: 'io.example/pages', version: '2.0.0', description: 'Pages', remotes: [{ type: 'sse', url: 'https://x.example' }] },
    _meta: {},
  },
]

const search = (...args: string[]) => runThv(['search', ...args])

describe('thv search', () => {
  it('shows what the registry found, in its order, and nothing that a terminal would obey', async () => {
    answer = { status: 200, body: JSON.stringify({ servers: found, metadata: { count: 2 } }) }
    const { out, error } = await search('web', 'browser', '--registry', `${base}/registry/default/`, '--limit', '5')
    expect(error).toBeUndefined()
    expect(asked.at(-1)?.url).toBe('/registry/default/v0.1/x/dev.toolhive/search?q=web+browser&limit=5')
    const lines = out.trimEnd().split('\n')
    expect(lines.map((line) => line.split(/ {2,}/).slice(0, 3))).toEqual([
      ['NAME', 'VERSION', 'FROM'],
      ['io.example/browser', '1.2.0', 'npm'],
      ['io.example/pages', '2.0.0', 'remote'],
    ])
    expect(out).not.toContain('\u001b')
  })

  it('asks all registries of a server, with the headers given, and prints JSON', async () => {
    answer = { status: 200, body: JSON.stringify({ servers: found, metadata: { count: 2 } }) }
    const { out } = await search('x', '--registry', base, '-o', 'json', '--header', 'Authorization=Bearer abc')
    expect(asked.at(-1)?.url).toBe('/registry/v0.1/x/dev.toolhive/search?q=x&limit=10')
    expect(asked.at(-1)?.headers.authorization).toBe('Bearer abc')
    expect(JSON.parse(out)).toEqual(found)
  })

  it('passes exact filters on, also without words', async () => {
    answer = { status: 200, body: JSON.stringify({ servers: found, metadata: { count: 2 } }) }
    const filters = ['--tag', 'web', '--tag', 'a&b', '--from', 'npm', '--transport', 'stdio', '--transport', 'sse']
    expect((await search('x', ...filters, '--registry', base)).error).toBeUndefined()
    const path = '/registry/v0.1/x/dev.toolhive/search'
    expect(asked.at(-1)?.url).toBe(`${path}?q=x&limit=10&tag=web&tag=a%26b&registry_type=npm&transport=stdio&transport=sse`)
    expect((await search('--from', 'remote', '--registry', base)).error).toBeUndefined()
    expect(asked.at(-1)?.url).toBe(`${path}?limit=10&registry_type=remote`)
  })

  it('shows every origin of a server once', async () => {
    const server = {
      ...found[1]?.server,
      packages: [{ registryType: 'npm' }, { registryType: 'oci' }, { registryType: 'npm' }, { registry_type: 'pypi' }],
    }
    answer = { status: 200, body: JSON.stringify({ servers: [{ server }, { server: { name: 'a/b', version: '1' } }] }) }
    const { out } = await search('x', '--registry', base)
    const [, first = '', second = ''] = out.split('\n')
    expect(first).toContain(' npm, oci, pypi, remote ')
    expect(second).toMatch(/^a\/b +1 +- *$/)
  })

  it('says when nothing fits', async () => {
    answer = { status: 200, body: '{"servers":[],"metadata":{"count":0}}' }
    const { out, err, error } = await search('zzz', '--registry', base)
    expect([out, error]).toEqual(['', undefined])
    expect(err).toContain('match "zzz".')
    expect((await search('zzz', '--tag', 'a', '--registry', base)).err).toContain('match "zzz" and the filters.')
    expect((await search('--tag', 'a', '--registry', base)).err).toContain('match the filters.')
  })

  it.each([
    ['an answer of an error', 401, '{"error":"missing or malformed authorization header"}', 'missing or malformed authorization header'],
    ['another server', 404, '<html>', 'has no such registry'],
    ['no JSON', 200, 'hello', 'it answered 200'],
    ['no list', 200, '{"servers":{}}', 'it answered 200'],
  ])('says what went wrong: %s', async (_, status, body, message) => {
    answer = { status, body }
    const { error } = await search('x', '--registry', base)
    expect(error).toMatchObject({ code: 'source_failed', message: expect.stringContaining(message) })
  })

  it.each([
    [['x', '--registry', 'ftp://example.com'], '--registry must be an http or https address'],
    [['x', '--registry', 'example'], '--registry must be an http or https address'],
    [['x', '--limit', '0', '--registry', 'http://127.0.0.1:1'], '--limit must be a number from 1 to 100'],
    [['x', '--header', 'oops', '--registry', 'http://127.0.0.1:1'], '--header must be NAME=VALUE'],
    [[], 'specify search words'],
    [[' '], 'specify search words'],
    [['x', '--tag', ''], '--tag and --from must not be empty'],
    [
      ['x', '--transport', 'http', '--registry', 'http://127.0.0.1:1'],
      '--transport must be one of stdio, sse, streamable-http, not "http"',
    ],
  ])('refuses %j', async (args, message) => {
    expect((await search(...args)).error).toMatchObject({ code: 'usage', message: expect.stringContaining(message) })
  })

  it('says that nothing runs', async () => {
    expect((await search('x')).error).toMatchObject({ code: 'platform_stopped', message: expect.stringContaining('--registry') })
  })

  it('says that the platform does not answer', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'thv-search-'))
    const forget = noteRunning(folder, 'https://127.0.0.1:1')
    try {
      const cluster = { name: 'local', cluster: { server: 'https://127.0.0.1:1' } }
      const user = { name: 'me', user: { token: 'x' } }
      const context = { name: 'local', context: { cluster: 'local', user: 'me' } }
      const kubeconfig = {
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [cluster],
        users: [user],
        contexts: [context],
        'current-context': 'local',
      }
      writeFileSync(join(folder, 'kubeconfig'), JSON.stringify(kubeconfig))
      expect((await search('x', '--data-dir', folder)).error).toMatchObject({
        code: 'kube_unreachable',
        message: expect.stringContaining('is not responding'),
      })
    } finally {
      forget()
      rmSync(folder, { recursive: true })
    }
  })

  it('reports an unreachable registry', async () => {
    expect((await search('x', '--registry', 'http://127.0.0.1:1')).error).toMatchObject({ code: 'source_failed' })
  })
})
