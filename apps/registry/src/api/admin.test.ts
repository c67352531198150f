import { describe, expect, it } from 'vitest'
import { sampleApi } from './testing/sample-api.ts'

const { api } = await sampleApi()

const file = { file: { url: 'https://example.com/registry.json' }, syncPolicy: { interval: '30m' } }
const put = (path: string, body: unknown) => api.call('PUT', path, { body })

describe('/v1/sources', () => {
  it('lists what there is, with the state of the last sync and without passwords', async () => {
    const { json, text } = await api.get('/v1/sources')
    const catalog = json.sources.find(({ name }: { name: string }) => name === 'catalog')
    expect(catalog).toMatchObject({
      type: 'file',
      sourceType: 'file',
      creationType: 'CONFIG',
      sourceConfig: { path: '/srv/registry.json' },
      filterConfig: { tags: { exclude: ['beta'] } },
      syncSchedule: '30m0s',
      syncStatus: { phase: 'complete', attemptCount: 0, serverCount: 45, problemCount: 0, problems: [] },
    })
    expect(text).not.toContain('secret')
    expect((await api.get('/v1/sources/mirror')).json.sourceConfig.repository).toBe('https://git.example.com/servers.git')
    expect((await api.get('/v1/sources/none')).status).toBe(404)
    await put('/v1/sources/signed', { ...file, file: { url: 'https://example.com/r.json?token=secret' } })
    expect((await api.get('/v1/sources/signed')).json.sourceConfig.url).toBe('https://example.com/r.json?…')
    expect((await api.get('/v1/sources')).text).not.toContain('secret')
    await api.call('DELETE', '/v1/sources/signed')
  })

  it('makes, changes and deletes', async () => {
    expect(await put('/v1/sources/made', file)).toMatchObject({
      status: 201,
      json: { name: 'made', creationType: 'API', syncSchedule: '30m0s' },
    })
    expect((await put('/v1/sources/made', { ...file, syncPolicy: { interval: '1h' } })).status).toBe(200)
    expect((await api.get('/v1/sources/made')).json.syncSchedule).toBe('1h0m0s')
    expect((await api.call('DELETE', '/v1/sources/made')).status).toBe(204)
    expect((await api.call('DELETE', '/v1/sources/made')).status).toBe(404)
  })

  it('inline documents are shown alone, not in lists', async () => {
    const data = '{"servers":[]}'
    await put('/v1/sources/inline', { file: { data }, syncPolicy: { interval: '1h' } })
    expect((await api.get('/v1/sources')).text).not.toContain('servers\\":[]')
    expect((await api.get('/v1/sources/inline')).json.sourceConfig.data).toBe(data)
  })

  it.each([
    ['Not a label', file, 400, /DNS label/],
    ['two-types', { ...file, managed: {} }, 400, /exactly one of/],
    ['unknown', { ...file, intervall: '1s' }, 400, /is not known here/],
    ['named', { name: 'other', ...file }, 400, /stands in the path/],
    ['short', { ...file, syncPolicy: { interval: '1ms' } }, 400, /at least 1s/],
    ['kube', { kubernetes: {} }, 400, /cannot be given through the admin API/],
    ['list', [], 400, /must be an object/],
    ['catalog', file, 403, /config-created|configuration/],
    ['another', { managed: {} }, 409, /managed/],
  ])('%s → refused', async (name, body, status, error) => {
    const answer = await put(`/v1/sources/${encodeURIComponent(name)}`, body)
    expect(answer.json.error).toMatch(name.includes(' ') ? /whitespace/ : error)
    expect(answer.status).toBe(status)
  })

  it('types do not change', async () => {
    await put('/v1/sources/typed', file)
    const other = await put('/v1/sources/typed', { api: { endpoint: 'https://example.com' }, syncPolicy: { interval: '1h' } })
    expect(other).toMatchObject({ status: 400, json: { error: expect.stringMatching(/^changing source type is not allowed/) } })
    const path = await put('/v1/sources/typed', { file: { path: '/allowed/x' }, syncPolicy: { interval: '1h' } })
    expect(path).toMatchObject({ status: 400, json: { error: expect.stringMatching(/from url to path/) } })
  })

  it('syncs on demand', async () => {
    expect((await api.call('POST', '/v1/sources/catalog/sync')).status).toBe(202)
    expect((await api.call('POST', '/v1/sources/own/sync')).status).toBe(400)
    expect((await api.call('POST', '/v1/sources/none/sync')).status).toBe(404)
  })

  it('gives the entries of a source, by name', async () => {
    const { json } = await api.get('/v1/sources/own/entries')
    expect(json.entries[0]).toMatchObject({
      entryType: 'MCP',
      name: 'com.example/mine',
      versions: [{ version: '0.1.0' }, { version: '0.2.0' }],
    })
    expect(json.entries[0].versions[0]).toMatchObject({ createdAt: expect.any(String), updatedAt: expect.any(String), status: 'active' })
    expect((await api.get('/v1/sources/none/entries')).status).toBe(404)
  })
})

describe('/v1/registries', () => {
  it('makes, changes, serves and deletes', async () => {
    expect(await put('/v1/registries/team', { sources: ['catalog'] })).toMatchObject({
      status: 201,
      json: { name: 'team', sources: ['catalog'], creationType: 'API' },
    })
    expect((await api.get('/registry/team/v0.1/servers')).status).toBe(200)
    expect((await put('/v1/registries/team', { sources: ['own', 'catalog'] })).status).toBe(200)
    expect((await api.get('/v1/registries')).json.registries.map(({ name }: { name: string }) => name)).toEqual([
      'default',
      'readonly',
      'team',
    ])
    expect((await api.call('DELETE', '/v1/registries/team')).status).toBe(204)
    expect((await api.get('/v1/registries/team')).status).toBe(404)
    expect((await api.get('/registry/team/v0.1/servers')).status).toBe(404)
  })

  it.each([
    ['v0', { sources: ['own'] }, 400],
    ['x', { sources: ['own'] }, 400],
    ['Upper', { sources: ['own'] }, 400],
    ['a', { sources: ['none'] }, 400],
    ['a', { sources: ['own', 'own'] }, 400],
    ['a', { sources: [] }, 400],
    ['a', {}, 400],
    ['a', { sources: ['own'], claims: { team: 1 } }, 400],
    ['a', { sources: ['own'], claims: { team: [] } }, 400],
    ['default', { sources: ['own'] }, 403],
  ])('%s %o → %i', async (name, body, status) => {
    expect((await put(`/v1/registries/${name}`, body)).status).toBe(status)
  })

  it('a source in use is not deleted', async () => {
    await put('/v1/sources/used', file)
    await put('/v1/registries/user', { sources: ['used'] })
    expect((await api.call('DELETE', '/v1/sources/used')).status).toBe(409)
    await api.call('DELETE', '/v1/registries/user')
    expect((await api.call('DELETE', '/v1/sources/used')).status).toBe(204)
    expect((await api.call('DELETE', '/v1/registries/default')).status).toBe(403)
  })

  it('gives the entries of all its sources, hidden ones too', async () => {
    const { json } = await api.get('/v1/registries/default/entries')
    const shadow = json.entries.filter(({ name }: { name: string }) => name === 'com.example/shadow')
    expect(shadow).toMatchObject([
      { entryType: 'MCP', version: '3.0.0', sourceName: 'own', position: 0 },
      { entryType: 'MCP', version: '9.0.0', sourceName: 'catalog', position: 1 },
    ])
  })
})

describe('/v1/entries', () => {
  const server = (name: string, version = '1.0.0') => ({ name, description: 'd', version })
  const publish = (body: unknown) => api.call('POST', '/v1/entries', { body })

  it('publishes with claims, and answers with the document', async () => {
    const answer = await publish({ server: server('com.example/v1'), claims: { team: ['a', 'b'] } })
    expect(answer).toMatchObject({ status: 201, json: server('com.example/v1') })
    expect((await api.get('/v1/entries/server/com.example%2Fv1/claims')).json).toEqual({ claims: { team: ['a', 'b'] } })
    expect((await publish({ server: server('com.example/v1', '2.0.0') })).status, 'takes those of the name').toBe(201)
    expect(await publish({ server: server('com.example/v1', '3.0.0'), claims: { team: 'c' } })).toMatchObject({ status: 409 })
    expect((await publish({ server: server('com.example/v1', '3.0.0'), claims: { team: ['b', 'a'] } })).status).toBe(201)
    expect((await put('/v1/entries/server/com.example%2Fv1/claims', { claims: { team: 'z' } })).status).toBe(204)
    expect((await api.get('/v1/entries/server/com.example%2Fv1/claims')).json).toEqual({ claims: { team: 'z' } })
  })

  it('keeps the text of the document inside', async () => {
    await publish('{"claims":{"team":"a"}, "server":{ "version":"1.0.0","name":"com.example/text", "n": 1.50 ,"description":"d"}}')
    expect((await api.get('/registry/default/v0/servers/com.example%2Ftext/versions/latest')).text).toContain('"n":1.50')
  })

  it('deletes', async () => {
    await publish({ server: server('com.example/v1-delete') })
    const path = '/v1/entries/server/com.example%2Fv1-delete/versions/1.0.0'
    expect((await api.call('DELETE', path)).status).toBe(204)
    expect((await api.call('DELETE', path)).status).toBe(404)
    expect((await api.get('/v1/entries/server/com.example%2Fv1-delete/claims')).status).toBe(404)
  })

  it.each([
    ['POST', '/v1/entries', { skill: {} }, 400],
    ['POST', '/v1/entries', {}, 400],
    ['POST', '/v1/entries', { server: server('com.example/x'), extra: 1 }, 400],
    ['POST', '/v1/entries', { server: { name: 'x' } }, 422],
    ['DELETE', '/v1/entries/skill/com.example%2Fx/versions/1', undefined, 400],
    ['DELETE', '/v1/entries/thing/com.example%2Fx/versions/1', undefined, 400],
    ['DELETE', '/v1/entries/server/x/versions/1', undefined, 400],
    ['GET', '/v1/entries/server/com.example%2Fnone/claims', undefined, 404],
    ['PUT', '/v1/entries/server/com.example%2Fnone/claims', { claims: {} }, 404],
    ['PUT', '/v1/entries/server/com.example%2Fmine/claims', {}, 400],
    ['GET', '/registry/default/v0.1/x/dev.toolhive/skills', undefined, 404],
    ['GET', '/registry/default/v0.1/x/dev.toolhive/plugins', undefined, 404],
    ['GET', '/extension/v0/registries', undefined, 404],
  ])('%s %s %o → %i', async (method, path, body, status) => {
    expect((await api.call(method, path, body === undefined ? {} : { body })).status).toBe(status)
  })

  it('problems of the document point into the body', async () => {
    const { json } = await publish({ server: { ...server('com.example/x'), version: 'latest' } })
    expect(json.problems).toEqual([{ pointer: '/server/version', message: 'must be a specific version, not "latest"' }])
  })
})
