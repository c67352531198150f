import { readFileSync } from 'node:fs'
import { rawClient } from '@thv/http/testing/loopback'
import { createMetrics } from '@thv/telemetry/metrics'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { renderApiReference } from './api-reference.ts'
import { addRegistryMetrics, notReadyReasons } from './health-routes.ts'
import { type Access, openAccess } from './http/access-port.ts'
import { errorsOf } from './http/openapi.ts'
import { componentNames } from './http/schemas.ts'
import { routes } from './routes.ts'
import { startApi } from './testing/api-server.ts'
import { sampleApi } from './testing/sample-api.ts'
import { createSampleEngine } from './testing/sample-engine.ts'

const { api, engine } = await sampleApi()

const list = '/registry/default/v0.1/servers'

describe('every answer', () => {
  it.each([list, `${list}?limit=0`, '/nope', '/v1/sources', '/health', '/openapi.json'])('%s has the headers of safety', async (target) => {
    const { headers } = await api.get(target)
    expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'cross-origin-resource-policy': 'same-origin' })
    expect(headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/)
    expect(headers).not.toHaveProperty('access-control-allow-origin')
  })

  it('keeps a sane X-Request-Id and replaces others', async () => {
    expect((await api.get(list, { 'x-request-id': 'abc-1.2:3' })).headers['x-request-id']).toBe('abc-1.2:3')
    for (const id of ['x'.repeat(200), 'a b', '<script>']) {
      expect((await api.get(list, { 'x-request-id': id })).headers['x-request-id'], id).not.toBe(id)
    }
  })

  it('errors of the router are JSON too', async () => {
    expect(await api.get('/nope')).toMatchObject({
      status: 404,
      json: { error: 'there is nothing at this path; /openapi.json lists what there is', code: 'not_found' },
    })
    const answer = await api.call('POST', list)
    expect(answer).toMatchObject({ status: 405, json: { error: 'POST is not possible here', code: 'method_not_allowed' } })
    expect(answer.headers['allow']).toBe('GET, HEAD, OPTIONS')
    expect((await api.call('OPTIONS', list)).headers['allow']).toBe('GET, HEAD, OPTIONS')
    expect((await api.call('OPTIONS', '/nope')).status).toBe(404)
    expect((await api.call('OPTIONS', '*')).status).toBe(204)
  })

  it('a slow reader delays no other', async () => {
    using slow = await rawClient(Number(new URL(api.url).port), { paused: true })
    slow.socket.pause()
    for (let i = 0; i < 20; i++) slow.write(`GET ${list}?limit=1000 HTTP/1.1\r\nHost: x\r\n\r\n`)
    expect((await api.get(list)).status).toBe(200)
  })
})

describe('CORS', () => {
  it('by configuration', async () => {
    await using open = await startApi({ engine, http: { cors: { origins: ['https://ui.example.com'], maxAgeSeconds: 600 } } })
    const origin = { origin: 'https://ui.example.com' }
    const answer = await open.get(list, origin)
    expect(answer.headers).toMatchObject({ 'access-control-allow-origin': origin.origin, vary: 'Accept-Encoding, Origin' })
    expect((await open.get('/nope', origin)).headers['access-control-allow-origin']).toBe(origin.origin)
    expect((await open.get(list, { origin: 'https://evil.example.com' })).headers).not.toHaveProperty('access-control-allow-origin')
    const preflight = await open.call('OPTIONS', '/v1/sources/x', { headers: { ...origin, 'access-control-request-method': 'PUT' } })
    expect(preflight).toMatchObject({ status: 204 })
    expect(preflight.headers).toMatchObject({
      'access-control-allow-origin': origin.origin,
      'access-control-allow-methods': 'GET, HEAD, PUT, DELETE, OPTIONS',
      'access-control-max-age': '600',
    })
    expect(preflight.headers['access-control-allow-headers']).toContain('Authorization')
  })

  it('for everybody', async () => {
    await using open = await startApi({ engine, http: { cors: { origins: ['*'], maxAgeSeconds: 1 } } })
    const { headers } = await open.get(list, { origin: 'https://any.example.com' })
    expect(headers).toMatchObject({ 'access-control-allow-origin': '*', vary: 'Accept-Encoding' })
    expect(headers).not.toHaveProperty('access-control-allow-credentials')
  })

  it('for all origins is read-only without authentication: any page could write otherwise', async () => {
    const preflight = async (access: Access) => {
      await using open = await startApi({ engine, access, http: { cors: { origins: ['*'], maxAgeSeconds: 1 } } })
      return (await open.call('OPTIONS', '/v1/sources/x', { headers: { origin: 'https://any.example.com' } })).headers
    }
    const anonymous = await preflight(openAccess)
    expect(anonymous['access-control-allow-methods']).toBe('GET, HEAD, OPTIONS')
    // POST needs no method of its own, so what counts is that no JSON can be sent.
    expect(anonymous['access-control-allow-headers']).toBe('If-None-Match, X-Request-Id')
    const signedIn = await preflight({ ...openAccess, anonymous: false })
    expect(signedIn['access-control-allow-methods']).toBe('GET, HEAD, PUT, DELETE, OPTIONS')
    expect(signedIn['access-control-allow-headers']).toContain('Content-Type')
  })
})

describe('about the server', () => {
  it('health and readiness say whether this replica leads', async () => {
    await using other = await createSampleEngine()
    await using server = await startApi({ engine: other })
    const led = { leading: true, transitions: 1, ownStore: true }
    other.pretend({ leader: led })
    expect((await server.get('/health')).json).toEqual({ status: 'healthy', leader: true })
    expect((await server.get('/readiness')).json).toEqual({ status: 'ready', store: 'available', leader: true })
    other.pretend({ leader: { ...led, leading: false, ownStore: false } })
    expect((await server.get('/readiness')).json, 'it reads from the shared store').toEqual({
      status: 'ready',
      store: 'available',
      leader: false,
    })
    other.pretend({ leader: { ...led, leading: false } })
    expect(await server.get('/readiness')).toMatchObject({
      status: 503,
      json: { leader: false, reasons: ['leader: another replica leads, and this one has a store of its own'] },
    })
    other.pretend({ leader: { ...led, leading: false, problem: 'create leases: forbidden' } })
    expect((await server.get('/readiness')).json.reasons).toEqual(['leader: create leases: forbidden'])
  })

  it('health, readiness, version', async () => {
    expect((await api.get('/health')).json).toEqual({ status: 'healthy' })
    expect((await api.get('/readiness')).json).toEqual({ status: 'ready', store: 'available' })
    expect((await api.get('/version')).json).toMatchObject({ version: '1.2.3', commit: 'abc', build_date: '2026-01-01T00:00:00Z' })
    expect((await api.call('POST', '/health')).status).toBe(405)
    expect((await api.get('/metrics')).status).toBe(404)
  })

  it('is not ready for a reason', async () => {
    await using other = await createSampleEngine()
    await using server = await startApi({ engine: other })
    other.pretend({ storeError: 'password authentication failed for user x', loaded: false, unbuilt: ['default'], unsynced: ['a', 'b'] })
    const answer = await server.get('/readiness')
    expect(answer).toMatchObject({
      status: 503,
      json: {
        error: 'service not ready',
        code: 'unavailable',
        store: 'unavailable',
        reasons: ['store: the database does not answer', 'unbuilt: registries default', 'unsynced: sources a, b'],
      },
    })
    expect((await server.get('/health')).status, 'alive all the same').toBe(200)
    await using closed = await startApi({ engine: other, access: { ...openAccess, anonymous: false } })
    expect((await closed.get('/readiness')).json, 'names are for who may see them').toEqual({
      error: 'service not ready',
      code: 'unavailable',
      store: 'unavailable',
      reasons: ['store: the database does not answer', 'unbuilt: 1 registries', 'unsynced: 2 sources'],
    })
    other.pretend({ storeError: 'connection refused' })
    expect(await server.get('/readiness'), 'what is in memory is served').toMatchObject({
      status: 200,
      json: { status: 'ready', store: 'unavailable' },
    })
    other.pretend({ failed: ['a'] })
    expect((await server.get('/readiness')).status, 'a source that fails is no reason').toBe(200)
  })

  it('names few of many', () => {
    const status = {
      loaded: true,
      unbuilt: [],
      unsynced: ['1', '2', '3', '4', '5', '6', '7'],
      failed: [],
      revision: 0,
      syncs: { succeeded: 0, unchanged: 0, failed: 0 },
    }
    expect(notReadyReasons(status, { names: true })).toEqual(['unsynced: sources 1, 2, 3, 4, 5 and 2 more'])
  })

  it('not on the public address unless configured', async () => {
    await using inside = await startApi({ engine, http: { publicHealth: false } })
    expect((await inside.get('/health')).status).toBe(404)
  })

  it('answers the requests of the standard’s tools', async () => {
    expect((await api.get('/registry/default/v0/health')).json).toEqual({ status: 'ok' })
    expect((await api.get('/registry/default/v0/ping')).json).toEqual({ pong: true })
    expect((await api.get('/registry/default/v0.1/version')).json).toEqual({
      version: '1.2.3',
      git_commit: 'abc',
      build_time: '2026-01-01T00:00:00Z',
    })
    const token = await api.call('POST', '/registry/default/v0/auth/none')
    expect(token).toMatchObject({ status: 200, json: { registry_token: 'anonymous', expires_at: expect.any(Number) } })
    expect((await api.get('/registry/nope/v0/health')).status).toBe(404)
    expect(await api.get('/v1/me')).toMatchObject({ status: 401, json: { error: 'authentication required' } })
  })

  it('counts answers and shows the engine', () => {
    const metrics = createMetrics()
    const count = addRegistryMetrics(metrics, { status: { ...engine.status, failed: ['x'], revision: 7 } })
    for (const status of [200, 204, 404]) count('listServers', { status } as never)
    count('', { status: 404 } as never)
    const page = metrics.render()
    expect(page).toContain('thv_registry_requests_total{operation="listServers",status="2xx"} 2')
    expect(page).toContain('thv_registry_requests_total{operation="none",status="4xx"} 1')
    expect(page).toContain('thv_registry_failed_sources 1')
    expect(page).toContain('thv_registry_revision 7')
    expect(page).toContain('thv_registry_store_up 1')
  })
})

describe('the OpenAPI document', () => {
  it('has every route, and every reference leads somewhere', async () => {
    const { json, text } = await api.get('/openapi.json')
    for (const route of routes)
      expect(json.paths[route.path]?.[route.method.toLowerCase()]?.operationId, route.path).toBe(route.operationId)
    const ids = Object.values<Record<string, { operationId: string }>>(json.paths).flatMap((path) =>
      Object.values(path).map((one) => one.operationId),
    )
    expect(new Set(ids).size).toBe(ids.length)
    for (const [, name = ''] of text.matchAll(/#\/components\/schemas\/(\w+)/g)) expect(json.components.schemas).toHaveProperty(name)
    expect(Object.keys(json.components.schemas)).toEqual([...componentNames])
    expect(json.info.version).toBe('1.2.3')
    expect(json.servers).toEqual([{ url: '/' }])
    expect((await api.get('/registry/default/openapi.json')).json.servers, 'seen from the document').toEqual([{ url: '.' }])
  })

  it('is the same in YAML', async () => {
    const { json } = await api.get('/openapi.json')
    const yaml = await api.get('/openapi.yaml')
    expect(yaml.headers['content-type']).toBe('application/yaml')
    expect(parse(yaml.text)).toEqual(json)
  })

  it('of one registry has the standard’s paths, and the paths that ToolHive (Go) requests', async () => {
    const document = parse((await api.get('/registry/default/openapi.yaml')).text)
    expect(Object.keys(document.paths)).toContain('/v0.1/servers/{serverName}/versions/{version}')
    expect(document.info.version).toBe('1.0.0')
    expect(document.info.description).toContain('https://github.com/modelcontextprotocol/registry')
    expect(JSON.stringify(document)).not.toContain('registryName')
    expect((await api.get('/registry/nope/openapi.json')).status).toBe(404)
  })

  it('names the errors that follow from what a route takes', () => {
    const find = (id: string) => routes.find((route) => route.operationId === id)
    const publish = find('publishServer')
    expect(publish && errorsOf(publish)).toEqual([400, 401, 403, 404, 408, 409, 413, 415, 422, 501, 503])
    const open = find('openApiJson')
    expect(open && errorsOf(open)).toEqual([400])
  })

  it('is the reference that people read', () => {
    expect(readFileSync(new URL('../../../../docs/reference/registry-api.md', import.meta.url), 'utf8')).toBe(renderApiReference())
  })
})
