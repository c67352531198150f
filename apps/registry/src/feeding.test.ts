import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { startRegistry } from './testing/run-registry.ts'
import { until } from './testing/until.ts'

const folder = mkdtempSync(join(tmpdir(), 'thv-feeding-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function configFile(name: string, source: string): string {
  const path = join(folder, `${name}.yaml`)
  const lines = ['sources:', `  - name: ${name}`, source, 'registries:', `  - {name: default, sources: [${name}]}`]
  writeFileSync(path, [...lines, 'auth: {mode: anonymous}', 'sync: {allowPrivateAddresses: true, jitter: 0}', ''].join('\n'))
  return path
}

interface Listed {
  readonly servers: readonly { readonly server: { readonly name: string }; readonly _meta: Record<string, { readonly status: string }> }[]
}

/** The text of what a registry lists, and what it says of each. */
async function listOf(url: string): Promise<{ text: string; statuses: Record<string, string | undefined> }> {
  const text = await (await fetch(`${url}/registry/default/v0.1/servers?include_deleted=true`)).text()
  const { servers } = JSON.parse(text) as Listed
  const statusOf = (meta: Listed['servers'][number]['_meta']) => meta['io.modelcontextprotocol.registry/official']?.status
  return { text, statuses: Object.fromEntries(servers.map(({ server, _meta }) => [server.name, statusOf(_meta)])) }
}

it('one registry feeds another: documents as they are, then what changes, then what goes', async () => {
  const odd = (name: string) => `{"zz":1.0,"name":"io.example/${name}","9":12345678901234567890,"description":"A server","version":"1.0.0"}`
  const data = join(folder, 'data.json')
  writeFileSync(data, `[${odd('a')},${odd('b')}]`)
  await using origin = await startRegistry(['--config', configFile('origin', `    file: {path: ${data}}\n    syncPolicy: {interval: 1s}`)])
  await until(async () => (await listOf(origin.url)).text.includes('io.example/b'))

  const endpoint = `${origin.url}/registry/default`
  await using copy = await startRegistry([
    '--config',
    configFile('copy', `    api: {endpoint: "${endpoint}"}\n    syncPolicy: {interval: 1s}`),
  ])
  await until(async () => (await listOf(copy.url)).text.includes('io.example/b'))
  expect((await listOf(copy.url)).text).toContain(odd('a'))

  writeFileSync(data, `[${odd('a')},${odd('c')}]`)
  await until(async () => (await listOf(copy.url)).text.includes('io.example/c'))
  const { statuses } = await until(async () => {
    const listed = await listOf(copy.url)
    return listed.statuses['io.example/b'] === 'deleted' && listed
  })
  expect(statuses).toEqual({ 'io.example/a': 'active', 'io.example/b': 'deleted', 'io.example/c': 'active' })
})

it('sources without syncPolicy: a file is followed, another registry is asked at the start and on request', async () => {
  const entry = (name: string) => `{"name":"io.example/${name}","description":"A server","version":"1.0.0"}`
  const data = join(folder, 'followed.json')
  writeFileSync(data, `[${entry('a')}]`)
  await using origin = await startRegistry(['--config', configFile('followed', `    file: {path: ${data}}`)])
  await until(async () => (await listOf(origin.url)).text.includes('io.example/a'))
  const source = `    api: {endpoint: "${origin.url}/registry/default"}`
  await using copy = await startRegistry(['--config', configFile('unhurried', source)])
  await until(async () => (await listOf(copy.url)).text.includes('io.example/a'))

  writeFileSync(data, `[${entry('a')},${entry('b')}]`)
  await until(async () => (await listOf(origin.url)).text.includes('io.example/b'))
  expect((await listOf(copy.url)).text).not.toContain('io.example/b')
  expect((await fetch(`${copy.url}/v1/sources/unhurried/sync`, { method: 'POST' })).status).toBe(202)
  await until(async () => (await listOf(copy.url)).text.includes('io.example/b'))
})

it('one registry feeds another what is published there: adds, changes, status changes, deletes and what comes back', async () => {
  await using origin = await startRegistry(['--config', configFile('own', '    managed: {}')])
  const endpoint = `${origin.url}/registry/default`
  const source = `    api: {endpoint: "${endpoint}"}\n    syncPolicy: {interval: 1h}`
  await using copy = await startRegistry(['--config', configFile('mirror', source)])
  const write = async (method: string, path: string, body?: string) => {
    const answer = await fetch(`${endpoint}/v0.1${path}`, {
      method,
      ...(body !== undefined && { body, headers: { 'content-type': 'application/json' } }),
    })
    expect([method, path, answer.status, await answer.text()]).toMatchObject([method, path, 200, expect.anything()])
  }
  /** Documents with what else an origin says about them; only when a copy was changed is its own affair. */
  const told = async (url: string) => {
    const { text } = await listOf(url)
    const entries = text.matchAll(/\{"server":(\{.*?\}),"_meta":(\{.*?"isLatest":(?:true|false)\})/g)
    return [...entries].map(([, document, meta = '']) => [document, meta.replaceAll(/"(updatedAt|statusChangedAt)":"[^"]*",/g, '')])
  }
  const arrives = async (count: number) => {
    const trigger = await fetch(`${copy.url}/v1/sources/mirror/sync`, { method: 'POST' })
    expect(trigger.status).toBe(202)
    const wanted = await told(origin.url)
    expect(wanted.length).toBe(count)
    await until(async () => JSON.stringify(await told(copy.url)) === JSON.stringify(wanted))
  }
  const odd = (version: string, text = 'A server') =>
    `{"zz":1.0,"name":"io.example/a","9":12345678901234567890,"description":"${text}","version":"${version}","_x":{"b":[],"a":null}}`
  await write('POST', '/publish', odd('1.0.0'))
  await write('POST', '/publish', odd('1.1.0'))
  await arrives(2)
  expect((await told(copy.url)).map(([document]) => document)).toEqual([odd('1.0.0'), odd('1.1.0')])

  const version = (number: string) => `/servers/io.example%2Fa/versions/${number}`
  await write('PUT', version('1.0.0'), odd('1.0.0', 'Another text'))
  await arrives(2)
  await write('PATCH', `${version('1.0.0')}/status`, '{"status":"deprecated","statusMessage":"use 1.1.0"}')
  await arrives(2)
  expect((await told(copy.url))[0]?.[1]).toContain('"status":"deprecated","statusMessage":"use 1.1.0"')
  await write('DELETE', version('1.1.0'))
  await write('POST', '/publish', odd('2.0.0'))
  await arrives(3)
  expect((await fetch(`${copy.url}/registry/default/v0.1${version('1.1.0')}`)).status).toBe(404)
  await write('POST', '/publish', odd('1.1.0', 'Back again'))
  await write('PATCH', '/servers/io.example%2Fa/status', '{"status":"active"}')
  await arrives(3)
})
