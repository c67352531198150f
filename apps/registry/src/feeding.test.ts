import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { startRegistry, until } from './testing/run-registry.ts'

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
}, 30_000)
