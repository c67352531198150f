import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type StartedRegistry, startRegistry } from '../testing/run-registry.ts'
import { until } from '../testing/until.ts'

/* The registry of a laptop, which has no identity provider: who may write to it, and what it may be made to read. */

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'registry-writes-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const BUNDLED = 'ai.perplexity/mcp-server'

function document(name: string, version = '99.0.0'): object {
  return {
    $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    name,
    description: 'Published by hand',
    version,
    remotes: [{ type: 'streamable-http', url: 'https://mcp.example.com/mcp' }],
  }
}

interface Sent {
  readonly method?: string
  readonly token?: string
  readonly body?: object
}

async function send({ url }: StartedRegistry, path: string, { method = 'POST', token, body }: Sent = {}) {
  const answer = await fetch(`${url}${path}`, {
    method,
    headers: { 'content-type': 'application/json', ...(token !== undefined && { authorization: `Bearer ${token}` }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: answer.status, headers: answer.headers, json: (await answer.json()) as { error?: string; server?: object } }
}

async function ready(registry: StartedRegistry): Promise<void> {
  await until(async () => (await fetch(`${registry.internalUrl}/readiness`)).ok)
}

const tokenFile = () => join(folder, 'write-token')
const token = () => readFileSync(tokenFile(), 'utf8').trim()
const PUBLISH = '/registry/default/v0.1/publish'

describe('without a configuration', () => {
  it('publishes only with the token of the data folder, which its owner alone can read', async () => {
    await using registry = await startRegistry(['--data-dir', folder])
    await ready(registry)
    const own = { body: document('com.example/own') }
    expect(await send(registry, PUBLISH, own)).toMatchObject({
      status: 401,
      json: { error: expect.stringContaining('auth.writeTokenFile') },
    })
    const wrong = await send(registry, PUBLISH, { ...own, token: `${token()}x` })
    expect([wrong.status, wrong.headers.get('www-authenticate')]).toEqual([401, expect.stringContaining('error="invalid_token"')])
    expect(await send(registry, PUBLISH, { ...own, token: token() })).toMatchObject({ status: 200, json: { server: own.body } })
    expect(statSync(tokenFile()).mode & 0o777).toBe(0o600)
  })

  it.each([
    ['POST', '/registry/v0.1/publish'],
    ['POST', '/v1/entries'],
    ['PUT', '/v1/sources/mine'],
    ['PUT', '/v1/registries/mine'],
    ['DELETE', '/v1/registries/mine'],
    ['DELETE', '/registry/default/v0.1/servers/com.example%2Fown/versions/1.0.0'],
    ['PATCH', '/registry/default/v0.1/servers/com.example%2Fown/status'],
  ])('%s %s is 401 without the token', async (method, path) => {
    await using registry = await startRegistry(['--data-dir', folder])
    expect((await send(registry, path, { method, body: {} })).status).toBe(401)
  })

  it('reads need no token, and a token changes nothing for them', async () => {
    await using registry = await startRegistry(['--data-dir', folder])
    await ready(registry)
    const path = `${registry.url}/registry/default/v0.1/servers?limit=1`
    for (const authorization of ['', 'Bearer wrong', `Bearer ${token()}`])
      expect((await fetch(path, { headers: { authorization } })).status).toBe(200)
  })

  it('keeps its token over a restart', async () => {
    await (await startRegistry(['--data-dir', folder]))[Symbol.asyncDispose]()
    const before = token()
    await using registry = await startRegistry(['--data-dir', folder])
    expect(token()).toBe(before)
    expect((await send(registry, PUBLISH, { token: before, body: document('com.example/own') })).status).toBe(200)
  })

  it('gives no tokens to publishing tools', async () => {
    await using registry = await startRegistry(['--data-dir', folder])
    expect(await send(registry, '/registry/default/v0/auth/none')).toMatchObject({
      status: 403,
      json: { error: expect.stringContaining('auth.writeTokenFile') },
    })
  })

  it.each([
    ['the paths of the registry', PUBLISH, (name: string) => document(name)],
    ['the paths of all registries', '/registry/v0.1/publish', (name: string) => document(name)],
    ['the admin API', '/v1/entries', (name: string) => ({ server: document(name) })],
  ])('a name of the bundled catalog cannot be published through %s', async (_, path, body) => {
    await using registry = await startRegistry(['--data-dir', folder])
    await ready(registry)
    expect(await send(registry, path, { token: token(), body: body(BUNDLED) })).toMatchObject({
      status: 409,
      json: { error: `${BUNDLED} is a server of the source catalog, which is listed before published: choose another name` },
    })
    const latest = `/registry/default/v0.1/servers/${encodeURIComponent(BUNDLED)}/versions/latest`
    const { json } = await send(registry, latest, { method: 'GET' })
    expect(json.server).toMatchObject({ name: BUNDLED, version: expect.not.stringContaining('99') })
  })

  it('reads no file of this machine for a source made through the API', async () => {
    await using registry = await startRegistry(['--data-dir', folder])
    const body = { file: { path: '/etc/passwd' }, syncPolicy: { interval: '1h' } }
    expect(await send(registry, '/v1/sources/mine', { method: 'PUT', token: token(), body })).toMatchObject({
      status: 400,
      json: { problems: [{ pointer: '/file/path', message: expect.stringContaining('sync.allowedFolders') }] },
    })
  })
})

describe('with a configuration', () => {
  const config = (text: string) => {
    const path = join(folder, 'config.yaml')
    writeFileSync(
      path,
      `sources: [{name: own, managed: {}}]\nregistries: [{name: default, sources: [own]}]\nstorage: {memory: true}\n${text}`,
    )
    return path
  }

  it('takes the token from auth.writeTokenFile, also after it changed, and none when the file is gone', async () => {
    const file = join(folder, 'secret')
    writeFileSync(file, 'first\n')
    await using registry = await startRegistry(['--config', config(`auth: {mode: anonymous, writeTokenFile: ${file}}\n`)])
    const publish = (name: string, given: string) => send(registry, PUBLISH, { token: given, body: document(name) })
    expect((await publish('com.example/a', 'first')).status).toBe(200)
    writeFileSync(file, 'second')
    expect((await publish('com.example/b', 'first')).status).toBe(401)
    expect((await publish('com.example/b', 'second')).status).toBe(200)
    for (const content of ['', ' \n']) {
      writeFileSync(file, content)
      expect((await publish('com.example/c', '')).status).toBe(401)
    }
    rmSync(file)
    expect(await publish('com.example/c', 'second')).toMatchObject({ status: 503 })
    expect(registry.lines.map(({ msg }) => msg)).toContain('auth.writeTokenFile cannot be read; writes are refused')
  })

  it('reads files of the folders that sync.allowedFolders names, and nothing through a link out of them', async () => {
    const allowed = mkdtempSync(join(folder, 'allowed-'))
    writeFileSync(join(allowed, 'a.json'), JSON.stringify({ servers: { a: { image: 'example.com/a:1', description: 'A server' } } }))
    writeFileSync(join(folder, 'secret.json'), JSON.stringify({ servers: { s: { image: 'example.com/s:1', description: 'A secret' } } }))
    symlinkSync(join(folder, 'secret.json'), join(allowed, 'link.json'))
    await using registry = await startRegistry(['--config', config(`auth: {mode: anonymous}\nsync: {allowedFolders: [${allowed}]}\n`)])
    const put = (name: string, path: string) =>
      send(registry, `/v1/sources/${name}`, { method: 'PUT', body: { file: { path }, syncPolicy: { interval: '1h' } } })
    const state = async (name: string) => {
      const { json } = await send(registry, `/v1/sources/${name}`, { method: 'GET' })
      return (json as { syncStatus?: { phase: string; message: string } }).syncStatus
    }
    expect((await put('good', join(allowed, 'a.json'))).status).toBe(201)
    await until(async () => (await state('good'))?.phase === 'complete')
    for (const path of [join(folder, 'secret.json'), `${allowed}/../secret.json`, `${allowed}x`, '/'])
      expect([path, (await put('bad', path)).status]).toEqual([path, 400])
    expect((await put('link', join(allowed, 'link.json'))).status).toBe(201)
    await until(async () => (await state('link'))?.phase === 'failed')
    expect(await state('link')).toMatchObject({ message: expect.stringContaining('sync.allowedFolders') })
  })
})
