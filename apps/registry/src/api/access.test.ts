import type { Claims } from '@thv/catalog/sources/fetch/source-config'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { callerOf } from '../access/caller.ts'
import { covers, coversAll } from '../access/claim-gates.ts'
import type { Access } from './http/access-port.ts'
import { sendApiError } from './http/api-error.ts'
import { type ApiServer, startApi } from './testing/api-server.ts'
import { createSampleEngine, type SampleEngine } from './testing/sample-engine.ts'

/** Tokens are the claims themselves: `Bearer team=a,team=b,role=admin`. */
const roles = {
  superAdmin: [{ role: 'root' }],
  manageSources: [{ role: 'sources' }],
  manageRegistries: [{ role: 'registries' }],
  manageEntries: [{ role: 'entries' }],
}
const access: Access = {
  anonymous: false,
  writesNeedToken: false,
  authenticate(exchange) {
    const token = /^Bearer (.*)$/.exec(String(exchange.headers['authorization'] ?? ''))?.[1]
    if (token === undefined) {
      sendApiError(exchange, 401, { error: 'missing or malformed authorization header', code: 'invalid_request' })
      return undefined
    }
    const claims: Record<string, string[]> = {}
    for (const pair of token.split(',')) {
      const [name = '', value = ''] = pair.split('=')
      claims[name] = [...(claims[name] ?? []), value]
    }
    return callerOf({ subject: 'someone', issuer: 'i', provider: 'p', claims }, { roles })
  },
  handle: () => false,
  hasRole: (caller, role) => caller.roles.has(role),
  maySee: (caller, claims) => !caller.gated || covers(caller.claims, claims),
  maySet: (caller, claims) => !caller.gated || coversAll(caller.claims, claims),
}

const team = (...names: string[]): Claims => ({ team: names })
let engine: SampleEngine
let api: ApiServer
beforeAll(async () => {
  engine = await createSampleEngine({
    claims: { default: team('a', 'b'), readonly: team('b'), own: team('a'), catalog: team('a', 'b'), mirror: team('b') },
    published: [
      { name: 'com.example/shadow', version: '3.0.0' },
      { name: 'com.example/private', version: '1.0.0', claims: team('x') },
    ],
  })
  api = await startApi({ engine, access })
})
afterAll(async () => {
  await api[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

const as = (token: string) => ({ authorization: `Bearer ${token}` })
const get = (token: string, target: string) => api.get(target, as(token))
const call = (token: string, method: string, target: string, body?: unknown) => api.call(method, target, { headers: as(token), body })
const versionOfShadow = async (token: string) =>
  (await get(token, '/registry/default/v0.1/servers/com.example%2Fshadow/versions/latest')).json.server?.version

describe('signing in', () => {
  it('401 without a token, but the description of the API is open', async () => {
    expect(await api.get('/registry/default/v0.1/servers')).toMatchObject({ status: 401, json: { code: 'invalid_request' } })
    expect((await api.get('/v1/me')).status).toBe(401)
    expect((await api.get('/openapi.json')).status).toBe(200)
    expect((await api.get('/registry/default/openapi.json')).status).toBe(401)
  })

  it('answers to one caller are not for all', async () => {
    const { headers } = await get('team=a', '/registry/default/v0.1/servers')
    expect(headers['cache-control']).toBe('private, no-cache')
    // A browser keeps them too, and one person may sign in as another.
    expect(headers['vary']).toBe('Accept-Encoding, Authorization')
    expect(
      (await api.get('/registry/default/v0.1/servers', { ...as('team=a'), 'if-none-match': String(headers['etag']) })).headers,
    ).toMatchObject({
      vary: 'Accept-Encoding, Authorization',
    })
    const others = await api.get('/registry/default/v0.1/servers', { ...as('team=b'), 'if-none-match': String(headers['etag']) })
    expect(others.status, 'what another sees is something else').toBe(200)
  })

  it('/v1/me', async () => {
    expect((await get('team=a,role=sources', '/v1/me')).json).toEqual({ subject: 'someone', roles: ['manageSources'] })
    expect((await call('team=a', 'POST', '/registry/default/v0/auth/none')).status).toBe(404)
  })
})

describe('reading', () => {
  it('the registry gate', async () => {
    expect(await get('team=a', '/registry/readonly/v0.1/servers')).toMatchObject({
      status: 403,
      json: { error: 'forbidden: insufficient claims for registry' },
    })
    expect((await get('team=b', '/registry/readonly/v0.1/servers')).status).toBe(200)
    expect((await get('team=a', '/registry/readonly/openapi.yaml')).status).toBe(403)
    expect((await get('role=root', '/registry/readonly/v0.1/servers')).status).toBe(200)
  })

  it('hidden entries give way to those of later sources', async () => {
    expect(await versionOfShadow('team=a')).toBe('3.0.0')
    expect(await versionOfShadow('team=b')).toBe('9.0.0')
    expect(await versionOfShadow('role=root')).toBe('3.0.0')
  })

  it('an entry’s own claims count instead of its source’s', async () => {
    const path = '/registry/default/v0.1/servers/com.example%2Fprivate/versions/latest'
    expect((await get('team=a', path)).status).toBe(404)
    expect((await get('team=a,team=x', path)).status).toBe(200)
  })

  it('the aggregated paths cannot keep the claims of registries, so they are closed to callers with claims', async () => {
    expect((await get('team=a,team=b', '/registry/v0.1/servers')).status).toBe(403)
    expect((await get('role=root', '/registry/v0.1/servers')).status).toBe(200)
  })
})

describe('roles', () => {
  it.each([
    ['GET', '/v1/sources', 'sources'],
    ['PUT', '/v1/sources/x', 'sources'],
    ['DELETE', '/v1/sources/x', 'sources'],
    ['POST', '/v1/sources/x/sync', 'sources'],
    ['PUT', '/v1/registries/x', 'registries'],
    ['DELETE', '/v1/registries/x', 'registries'],
    ['GET', '/v1/registries/x/entries', 'registries'],
    ['POST', '/v1/entries', 'entries'],
    ['PUT', '/v1/entries/server/a.b%2Fc/claims', 'entries'],
    ['POST', '/registry/default/v0.1/publish', 'entries'],
    ['DELETE', '/registry/default/v0.1/servers/a.b%2Fc/versions/1', 'entries'],
  ])('%s %s needs %s', async (method, target, role) => {
    for (const other of ['sources', 'registries', 'entries'].filter((name) => name !== role)) {
      expect(await call(`team=a,role=${other}`, method, target, {})).toMatchObject({
        status: 403,
        json: { error: 'forbidden: insufficient permissions' },
      })
    }
    const allowed = await call(`team=a,role=${role}`, method, target, {})
    expect(allowed.json?.error ?? '').not.toContain('permissions')
  })
})

describe('administration under claims', () => {
  it('single reads hide what the caller may not see; lists leave it out', async () => {
    const names = async (token: string, path: string, member: string) =>
      (await get(token, path)).json[member].map(({ name }: { name: string }) => name)
    expect(await names('team=a,role=sources', '/v1/sources', 'sources')).toEqual(['catalog', 'own'])
    expect((await get('team=a,role=sources', '/v1/sources/mirror')).status).toBe(404)
    expect((await get('team=a', '/v1/registries/readonly')).status).toBe(404)
    expect(await names('team=a', '/v1/registries', 'registries')).toEqual(['default'])
  })

  it('entries of a source are those that the caller sees', async () => {
    const names = async (token: string) =>
      (await get(`${token},role=sources`, '/v1/sources/own/entries')).json.entries.map(({ name }: { name: string }) => name)
    expect(await names('team=a')).toContain('com.example/shadow')
    expect(await names('team=a')).not.toContain('com.example/private')
    expect(await names('team=a,team=x')).toContain('com.example/private')
    expect(await names('role=root')).toContain('com.example/private')
  })

  it('only claims that the caller holds can be set', async () => {
    const source = (claims?: Claims) => ({ file: { path: '/allowed/x' }, syncPolicy: { interval: '1h' }, ...(claims && { claims }) })
    const put = (claims?: Claims) => call('team=a,role=sources', 'PUT', '/v1/sources/claimed', source(claims))
    expect((await put(team('a', 'b'))).status).toBe(403)
    expect((await put()).status, 'it would be hidden from all').toBe(403)
    expect((await put(team('a'))).status).toBe(201)
    const registry = (sources: string[], claims: Claims) =>
      call('team=a,role=registries', 'PUT', '/v1/registries/mine', { sources, claims })
    expect((await registry(['mirror'], team('a'))).status, 'a source that one does not see does not exist').toBe(400)
    expect((await registry(['catalog'], team('b'))).status).toBe(403)
    expect((await registry(['catalog'], team('a'))).status).toBe(201)
  })

  it('publishing under claims', async () => {
    const server = (name: string, version = '1.0.0') => ({ name, description: 'd', version })
    const publish = (token: string, body: unknown) => call(`${token},role=entries`, 'POST', '/v1/entries', body)
    expect(await publish('team=a', { server: server('com.example/p') })).toMatchObject({
      status: 400,
      json: { error: 'claims are required when authorization is enabled' },
    })
    expect((await publish('team=b', { server: server('com.example/p'), claims: team('b') })).status, 'does not see the source').toBe(403)
    expect((await publish('team=a', { server: server('com.example/p'), claims: team('a', 'b') })).status).toBe(403)
    expect((await publish('team=a', { server: server('com.example/p'), claims: team('a') })).status).toBe(201)
    const theirs = await publish('team=a', { server: server('com.example/private', '2.0.0'), claims: team('a') })
    expect(theirs.status, 'the name belongs to somebody else').toBe(409)
  })

  it('the standard’s publish takes the claims of the name, or of the source', async () => {
    const publish = (token: string, name: string, version: string) =>
      call(`${token},role=entries`, 'POST', '/registry/default/v0.1/publish', { name, description: 'd', version })
    expect((await publish('team=a', 'com.example/std', '1.0.0')).status).toBe(200)
    expect((await publish('team=b', 'com.example/std', '2.0.0')).status).toBe(403)
    const refused = await publish('team=a', 'com.example/private', '2.0.0')
    expect(refused).toMatchObject({ status: 403, json: { error: expect.stringContaining('claims of this server are not all yours') } })
    expect((await publish('team=a,team=x', 'com.example/private', '2.0.0')).status).toBe(200)
    const path = '/registry/default/v0.1/servers/com.example%2Fprivate/versions/2.0.0'
    expect((await call('team=a,role=entries', 'DELETE', path)).status).toBe(403)
    expect((await call('team=a,team=x,role=entries', 'DELETE', path)).status).toBe(200)
  })

  it('a name that becomes somebody else’s meanwhile is not written to', async () => {
    const server = (name: string, version: string) => ({ name, description: 'd', version })
    const name = 'com.example/contested'
    const text = JSON.stringify(server(name, '0.0.1'))
    let overtaken = false
    const versionsOf = async (source: string, of: string) => {
      const seen = await engine.admin.versionsOf(source, of)
      if (!overtaken) await engine.admin.publish({ source, name, version: '0.0.1', text, claims: team('x') })
      overtaken = true
      return seen
    }
    await using slow = await startApi({ engine: { ...engine, admin: { ...engine.admin, versionsOf } }, access })
    const publish = () =>
      slow.call('POST', '/registry/default/v0.1/publish', { headers: as('team=a,role=entries'), body: server(name, '1.0.0') })
    expect((await publish()).status).toBe(409)
    expect((await publish()).status).toBe(403)
  })
})
