import { systemClock } from '@thv/kernel/clock'
import { createLogger } from '@thv/telemetry/log'
import { type OidcServer, startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ApiServer, startApi } from '../api/testing/api-server.ts'
import { createSampleEngine, type SampleEngine } from '../api/testing/sample-engine.ts'
import { createAccess, type RegistryAccess } from './access.ts'
import type { AuthConfig } from './auth-config.ts'

/* Roles and claims on the real API, with tokens of a provider that is not ours. */

const callers = {
  root: { sub: 'root', group: 'admins', team: 'z' },
  ops: { sub: 'ops', role: ['sources', 'registries'], team: ['a', 'b'] },
  publisher: { sub: 'publisher', role: 'entries', team: 'a' },
  reader: { sub: 'reader', team: 'b' },
  outsider: { sub: 'outsider', role: 'entries', team: 'b' },
  stranger: { sub: 'stranger' },
} as const
type CallerName = keyof typeof callers | 'nobody'

let idp: OidcServer
let engine: SampleEngine
let access: RegistryAccess
let api: ApiServer
const tokens = new Map<CallerName, string>()

beforeAll(async () => {
  idp = await startOidcServer()
  engine = await createSampleEngine({
    claims: { own: { team: 'a' }, catalog: { team: ['a', 'b'] }, mirror: { team: 'c' }, default: { team: [] }, readonly: { team: 'b' } },
    published: [
      { name: 'com.example/inherits', version: '1.0.0' },
      { name: 'com.example/for-b', version: '1.0.0', claims: { team: 'b' } },
    ],
  })
  access = createAccess(auth(), deps)
  api = await startApi({ engine, access })
  for (const name of Object.keys(callers) as (keyof typeof callers)[])
    tokens.set(name, await idp.token({ claims: callers[name], audience: 'registry' }))
})
afterAll(async () => {
  await api[Symbol.asyncDispose]()
  await access[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
  await idp[Symbol.asyncDispose]()
})

describe('claims that change while a write is decided', () => {
  const own = { source: 'own', name: 'com.example/inherits' }
  const path = '/servers/com.example%2Finherits'

  it.each([
    ['DELETE', `/registry/default/v0.1${path}/versions/1.0.0`, undefined],
    ['PATCH', `/registry/default/v0.1${path}/versions/1.0.0/status`, { status: 'deprecated' }],
    ['PATCH', `/registry/default/v0.1${path}/status`, { status: 'deprecated' }],
    ['DELETE', '/v1/entries/server/com.example%2Finherits/versions/1.0.0', undefined],
    ['PUT', '/v1/entries/server/com.example%2Finherits/claims', { claims: { team: 'a' } }],
  ])('%s %s → 409, and nothing is written', async (method, url, body) => {
    const { admin } = engine
    const { versionsOf } = admin
    await admin.setClaims({ ...own, claims: { team: 'a' } })
    // Somebody gives the server to another team just when it was looked at.
    const away = async (source: string, name: string) => {
      const found = await versionsOf(source, name)
      Object.assign(admin, { versionsOf })
      await admin.setClaims({ ...own, claims: { team: 'b' } })
      return found
    }
    Object.assign(admin, { versionsOf: away })
    expect(await call('publisher', method, url, body)).toMatchObject({ status: 409 })
    expect(await versionsOf('own', 'com.example/inherits')).toMatchObject([{ status: 'active', claims: { team: 'b' } }])
    await admin.setClaims({ ...own, claims: undefined })
  })
})

const deps = { clock: systemClock, log: createLogger({ write: () => {} }), env: {} }

function auth(): AuthConfig {
  return {
    mode: 'oauth',
    publicPaths: [],
    oauth: {
      realm: 'mcp-registry',
      providers: [{ name: 'oidc', issuerUrl: idp.issuer, audience: 'registry', allowPrivateIP: true }],
    },
    authz: {
      roles: {
        superAdmin: [{ group: 'admins' }],
        manageSources: [{ role: 'sources' }],
        manageRegistries: [{ role: 'registries' }],
        manageEntries: [{ role: 'entries' }],
      },
    },
  }
}

function call(caller: CallerName, method: string, path: string, body?: unknown) {
  const token = tokens.get(caller)
  return api.call(method, path, {
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    ...(body !== undefined && { body }),
  })
}

const document = { name: 'com.example/fresh', version: '1.0.0', description: 'A fresh one' }
const source = (claims?: object) => ({
  file: { url: 'https://example.com/registry.json' },
  syncPolicy: { interval: '1h' },
  ...(claims && { claims }),
})

describe('requests', () => {
  // Order: root, ops, publisher, reader, stranger, nobody
  it.each<[string, string, number[], unknown?]>([
    // First, so that nothing is put together yet for anybody.
    ['GET', '/registry/default/v0.1/x/dev.toolhive/search?q=example', [200, 200, 200, 200, 403, 401]],
    ['GET', '/registry/default/v0.1/servers', [200, 200, 200, 200, 403, 401]],
    ['GET', '/registry/readonly/v0.1/servers', [200, 200, 403, 200, 403, 401]],
    ['GET', '/registry/none/v0.1/servers', [404, 404, 404, 404, 404, 401]],
    ['GET', '/registry/default/v0/servers/com.example%2Finherits/versions/latest', [200, 200, 200, 404, 403, 401]],
    ['GET', '/registry/default/v0/servers/com.example%2Ffor-b/versions', [200, 200, 404, 200, 403, 401]],
    ['GET', '/v1/sources', [200, 200, 403, 403, 403, 401]],
    ['GET', '/v1/sources/own', [200, 200, 403, 403, 403, 401]],
    ['GET', '/v1/sources/mirror', [200, 404, 403, 403, 403, 401]],
    ['GET', '/v1/registries', [200, 200, 200, 200, 200, 401]],
    ['GET', '/v1/registries/readonly', [200, 200, 404, 200, 404, 401]],
    ['GET', '/v1/me', [200, 200, 200, 200, 200, 401]],
    ['PUT', '/v1/sources/unclaimed', [201, 403, 403, 403, 403, 401], source()],
    ['PUT', '/v1/sources/alien', [201, 403, 403, 403, 403, 401], source({ team: ['a', 'x'] })],
    ['PUT', '/v1/sources/ours', [201, 200, 403, 403, 403, 401], source({ team: ['a', 'b'] })],
    ['POST', '/v1/sources/mirror/sync', [202, 404, 403, 403, 403, 401]],
    ['GET', '/openapi.json', [200, 200, 200, 200, 200, 200]],
    ['GET', '/nothing', [404, 404, 404, 404, 404, 404]],
  ])('%s %s', async (method, path, statuses, body) => {
    const names: CallerName[] = ['root', 'ops', 'publisher', 'reader', 'stranger', 'nobody']
    const answers: Record<string, number> = {}
    for (const name of names) answers[name] = (await call(name, method, path, body)).status
    expect(answers).toEqual(Object.fromEntries(names.map((name, i) => [name, statuses[i]])))
  })
})

describe('lists', () => {
  async function names(caller: CallerName, registry: string): Promise<string[]> {
    const { json } = await call(caller, 'GET', `/registry/${registry}/v0.1/servers?limit=1000`)
    return json.servers.map(({ server }: { server: { name: string } }) => server.name)
  }

  it('show what the caller may see', async () => {
    expect(await names('publisher', 'default')).toContain('com.example/inherits')
    expect(await names('publisher', 'default')).not.toContain('com.example/for-b')
    expect(await names('reader', 'default')).toContain('com.example/for-b')
    expect(await names('reader', 'default')).not.toContain('com.example/inherits')
    expect(await names('root', 'default')).toEqual(expect.arrayContaining(['com.example/for-b', 'com.example/inherits']))
    expect(await names('reader', 'readonly')).not.toContain('org.example/mirrored')
    expect(await names('root', 'readonly')).toContain('org.example/mirrored')
  })

  it('and so does every other way to ask', async () => {
    const base = '/registry/default/v0.1'
    for (const path of [
      `${base}/x/dev.toolhive/search?q=inherits`,
      `${base}/servers?search=inherits`,
      `${base}/servers?version=latest&limit=1000`,
      `${base}/servers?updated_since=2020-01-01T00:00:00Z&limit=1000`,
      `${base}/servers?include_deleted=true&limit=1000`,
      `${base}/servers/com.example%2Finherits/versions?include_deleted=true`,
      `${base}/servers/com.example%2Finherits/versions/1.0.0`,
    ]) {
      expect((await call('publisher', 'GET', path)).text, path).toContain('com.example/inherits')
      expect((await call('reader', 'GET', path)).text, path).not.toContain('com.example/inherits')
    }
    expect((await call('reader', 'GET', '/registry/v0.1/x/dev.toolhive/search?q=inherits')).status).toBe(403)
  })

  it('of the administration too', async () => {
    const sources = async (caller: CallerName) =>
      (await call(caller, 'GET', '/v1/sources')).json.sources.map(({ name }: { name: string }) => name)
    expect(await sources('ops')).not.toContain('mirror')
    expect(await sources('root')).toContain('mirror')
  })
})

describe('publishing', () => {
  it('takes the role, and claims that are one’s own', async () => {
    const publish = (caller: CallerName, claims?: object) =>
      call(caller, 'POST', '/v1/entries', { server: document, ...(claims && { claims }) })
    expect((await publish('reader', { team: 'b' })).status).toBe(403)
    expect((await publish('publisher', { team: ['a', 'b'] })).status).toBe(403)
    expect((await publish('publisher')).status).toBe(400)
    expect((await publish('publisher', { team: 'a' })).status).toBe(201)
  })
})

describe('entries hidden from a caller', () => {
  const status = async (...asked: Parameters<typeof call>) => (await call(...asked)).status
  const ofB = '/registry/default/v0.1/servers/com.example%2Ffor-b'
  const claimsOf = (name: string) => `/v1/entries/server/com.example%2F${name}/claims`

  it('cannot be changed, by whichever path', async () => {
    const gone = { status: 'deleted' }
    expect(await status('publisher', 'PATCH', `${ofB}/status`, gone)).toBe(403)
    expect(await status('publisher', 'PATCH', `${ofB}/versions/1.0.0/status`, gone)).toBe(403)
    expect(await status('publisher', 'DELETE', `${ofB}/versions/1.0.0`)).toBe(403)
    expect(await status('publisher', 'PUT', `${ofB}/versions/1.0.0`, { ...document, name: 'com.example/for-b' })).toBe(403)
    expect(await status('publisher', 'DELETE', '/v1/entries/server/com.example%2Ffor-b/versions/1.0.0')).toBe(403)
    expect(await status('publisher', 'PUT', claimsOf('for-b'), { claims: { team: 'a' } })).toBe(403)
    expect(await status('publisher', 'GET', claimsOf('for-b'))).toBe(404)
    expect(await status('root', 'GET', `${ofB}/versions/1.0.0`)).toBe(200)
    expect((await call('root', 'GET', claimsOf('for-b'))).json).toEqual({ claims: { team: 'b' } })
  })

  it('nor can claims be given that are not one’s own', async () => {
    expect(await status('publisher', 'GET', claimsOf('inherits'))).toBe(200)
    expect(await status('publisher', 'PUT', claimsOf('inherits'), { claims: { team: ['a', 'b'] } })).toBe(403)
    expect(await status('publisher', 'PUT', claimsOf('inherits'), { claims: {} })).toBe(403)
    expect(await status('publisher', 'PUT', claimsOf('inherits'), { claims: { team: 'a' } })).toBe(204)
  })

  it('nor can a source be written to, though the name is one’s own', async () => {
    const next = { ...document, name: 'com.example/for-b', version: '2.0.0' }
    expect(await status('outsider', 'POST', '/registry/default/v0.1/publish', next)).toBe(403)
    expect(await status('outsider', 'POST', '/v1/entries', { server: next, claims: { team: 'b' } })).toBe(403)
  })

  it('nor can it be replaced by something of the same name', async () => {
    const hidden = { team: 'z' }
    expect(await status('root', 'PUT', '/v1/sources/hidden', source(hidden))).toBe(201)
    expect(await status('ops', 'PUT', '/v1/sources/hidden', source({ team: 'a' }))).toBe(403)
    expect(await status('ops', 'DELETE', '/v1/sources/hidden')).toBe(404)
    expect(await status('root', 'PUT', '/v1/registries/hidden', { sources: ['own'], claims: hidden })).toBe(201)
    expect(await status('ops', 'PUT', '/v1/registries/hidden', { sources: ['own'], claims: { team: 'a' } })).toBe(403)
    expect(await status('ops', 'DELETE', '/v1/registries/hidden')).toBe(404)
  })

  it('is in no list of entries', async () => {
    const secret = { ...document, name: 'com.example/for-z' }
    expect(await status('root', 'POST', '/v1/entries', { server: secret, claims: { team: 'z' } })).toBe(201)
    for (const path of ['/v1/registries/default/entries', '/v1/sources/own/entries']) {
      expect((await call('root', 'GET', path)).text, path).toContain('com.example/for-z')
      const { text } = await call('ops', 'GET', path)
      expect(text, path).toContain('com.example/for-b')
      expect(text, path).not.toContain('com.example/for-z')
    }
  })
})

it('public paths open reading only: who writes below one has to sign in, and can', async () => {
  const open = createAccess({ ...auth(), publicPaths: ['/registry/default'] }, deps)
  const server = await startApi({ engine, access: open })
  const publish = (headers: Record<string, string>) =>
    server.call('POST', '/registry/default/v0.1/publish', { headers, body: { ...document, name: 'com.example/below' } })
  expect((await server.get('/registry/default/v0.1/servers')).status).toBe(200)
  const refused = await publish({})
  expect([refused.status, refused.headers['www-authenticate']]).toEqual([401, expect.stringContaining('Bearer realm')])
  expect((await publish({ authorization: `Bearer ${tokens.get('reader')}` })).status).toBe(403)
  expect((await publish({ authorization: `Bearer ${tokens.get('publisher')}` })).status).toBe(200)
  await server[Symbol.asyncDispose]()
  await open[Symbol.asyncDispose]()
})

it('tells callers who they are', async () => {
  expect((await call('ops', 'GET', '/v1/me')).json).toEqual({ subject: 'ops', roles: ['manageSources', 'manageRegistries'] })
  expect((await call('root', 'GET', '/v1/me')).json).toMatchObject({
    roles: ['superAdmin', 'manageSources', 'manageRegistries', 'manageEntries'],
  })
})
