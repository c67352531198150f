import { describe, expect, it } from 'vitest'
import { startApi } from '../testing/api-server.ts'
import { sampleApi } from '../testing/sample-api.ts'
import { createSampleEngine } from '../testing/sample-engine.ts'

const { api, engine } = await sampleApi({ http: { maxBodyBytes: 20_000 } })

const OFFICIAL = 'io.modelcontextprotocol.registry/official'
const base = '/registry/default/v0.1'
const document = (name: string, version = '1.0.0', more = {}) => ({ name, description: 'A server.', version, ...more })
const publish = (body: unknown, headers = {}) => api.call('POST', `${base}/publish`, { body, headers })
const at = (name: string, version: string) => `${base}/servers/${encodeURIComponent(name)}/versions/${version}`

describe('publish', () => {
  it('answers with the entry and serves it at once, text as it came', async () => {
    const text = '{ "version": "1.0.0",\n "name": "com.example/published", "10": 1.10, "9": 12345678901234567890,\n"description": "d" }'
    const answer = await publish(text)
    expect(answer.status).toBe(200)
    const compact = '{"version":"1.0.0","name":"com.example/published","10":1.10,"9":12345678901234567890,"description":"d"}'
    expect(answer.text).toContain(`{"server":${compact},"_meta":`)
    expect(answer.json._meta[OFFICIAL]).toMatchObject({ status: 'active', isLatest: true })
    expect((await api.get(at('com.example/published', 'latest'))).text).toBe(answer.text)
  })

  it('isLatest is that of the highest version', async () => {
    await publish(document('com.example/latest', '2.0.0'))
    const older = await publish(document('com.example/latest', '1.0.0'))
    expect(older.json._meta[OFFICIAL].isLatest).toBe(false)
  })

  it('409 for a version that is there; a deleted one can be published again', async () => {
    await publish(document('com.example/twice'))
    expect(await publish(document('com.example/twice'))).toMatchObject({ status: 409, json: { code: 'version_exists' } })
    await api.call('DELETE', at('com.example/twice', '1.0.0'))
    expect((await publish(document('com.example/twice'))).status).toBe(200)
  })

  it('422 with all problems and their places', async () => {
    const answer = await publish({ name: 'nope', description: '', version: '^1.0', remotes: [{ type: 'sse' }] })
    expect(answer).toMatchObject({ status: 422, json: { code: 'document_invalid' } })
    const pointers = answer.json.problems.map(({ pointer }: { pointer: string }) => pointer)
    expect(pointers).toEqual(expect.arrayContaining(['/name', '/description', '/version', '/remotes/0/url']))
  })

  it.each([
    ['not JSON', '{"name":', {}, 400],
    ['nothing', '', {}, 400],
    ['bad UTF-8', Buffer.from([0x22, 0xff, 0x22]), {}, 400],
    ['a byte order mark', `\ufeff${JSON.stringify(document('a.b/c'))}`, {}, 400],
    ['a member twice', '{"name":"a.b/c","name":"a.b/d","version":"1.0.0","description":"x"}', {}, 400],
    ['a very long member name', `{"name":"a.b/c","version":"1.0.0","description":"x","${'n'.repeat(17_000)}":1}`, {}, 400],
    ['no object', '[]', {}, 422],
    ['an infinite number', '{"name":"a.b/c","version":"1.0.0","description":"x","n":1e999}', {}, 422],
    ['deep nesting', `{"name":"a.b/c","version":"1.0.0","description":"x","n":${'['.repeat(200)}${']'.repeat(200)}}`, {}, 422],
    ['text', JSON.stringify(document('a.b/c')), { 'content-type': 'text/plain' }, 415],
    ['another charset', JSON.stringify(document('a.b/c')), { 'content-type': 'application/json; charset=latin1' }, 415],
    ['a compressed body', JSON.stringify(document('a.b/c')), { 'content-encoding': 'gzip' }, 415],
    ['too much', JSON.stringify(document('a.b/c', '1.0.0', { x: 'y'.repeat(30_000) })), {}, 413],
  ])('%s → an error that says so', async (_, body, headers, status) => {
    const answer = await publish(body, headers)
    expect(answer.status).toBe(status)
    expect(typeof answer.json.error).toBe('string')
    expect((await api.get(at('a.b/c', '1.0.0'))).status).toBe(404)
  })

  it('501 without a managed source, and on the aggregated path the managed one', async () => {
    expect(await api.call('POST', '/registry/readonly/v0.1/publish', { body: document('a.b/x') })).toMatchObject({
      status: 501,
      json: { code: 'not_implemented' },
    })
    expect((await api.call('POST', '/registry/v0/publish', { body: document('com.example/all') })).status).toBe(200)
    expect((await api.get(at('com.example/all', 'latest'))).status).toBe(200)
    expect(api.logLines, 'a client’s mistake is no news').toEqual([])
  })
})

describe('changing what is published', () => {
  it('PUT replaces the document of a version that is there', async () => {
    await publish(document('com.example/edit'))
    const edited = document('com.example/edit', '1.0.0', { title: 'Edited' })
    const answer = await api.call('PUT', at('com.example/edit', '1.0.0'), { body: edited })
    expect(answer).toMatchObject({ status: 200, json: { server: edited } })
    expect((await api.get(at('com.example/edit', '1.0.0'))).json.server.title).toBe('Edited')
    expect((await api.call('PUT', at('com.example/edit', '9.0.0'), { body: document('com.example/edit', '9.0.0') })).status).toBe(404)
    const other = await api.call('PUT', at('com.example/edit', '1.0.0'), { body: document('com.example/other', '1.0.1') })
    expect(other).toMatchObject({ status: 400, json: { problems: [{ pointer: '/name' }, { pointer: '/version' }] } })
    expect((await api.call('PUT', at('com.example/edit', 'latest'), { body: edited })).status).toBe(400)
  })

  it('rejects changes of entries from other sources and says so', async () => {
    const answer = await api.call('DELETE', at('io.github.example/weather', '1.10.0'))
    expect(answer).toMatchObject({ status: 404, json: { error: expect.stringContaining('published here') } })
  })

  it('DELETE answers with the document and leaves a tombstone', async () => {
    await publish(document('com.example/delete'))
    const answer = await api.call('DELETE', at('com.example/delete', '1.0.0'))
    expect(answer).toMatchObject({ status: 200, json: { server: { name: 'com.example/delete' } } })
    expect(answer.json._meta[OFFICIAL]).toMatchObject({ status: 'deleted', isLatest: false })
    expect((await api.get(at('com.example/delete', '1.0.0'))).status).toBe(404)
    expect((await api.get(`${at('com.example/delete', '1.0.0')}?include_deleted=true`)).status).toBe(200)
    expect((await api.call('DELETE', at('com.example/delete', '1.0.0'))).status).toBe(404)
  })

  it('rejects names of another source', async () => {
    expect((await api.call('DELETE', at('io.github.example/weather', '1.9.0'))).status).toBe(404)
    expect((await api.get(at('io.github.example/weather', '1.9.0'))).status).toBe(200)
  })

  it('accepts one of many equal changes: the others receive that there is nothing to change', async () => {
    await publish(document('com.example/many'))
    const path = at('com.example/many', '1.0.0')
    const statuses = async (call: () => Promise<{ status: number }>) => {
      allLookFirst(6)
      return (await Promise.all(Array.from({ length: 6 }, call))).map(({ status }) => status).sort()
    }
    const patch = (where: string, body: object) => () => api.call('PATCH', `${where}/status`, { body })
    expect(await statuses(patch(path, { status: 'deprecated' }))).toEqual([200, 400, 400, 400, 400, 400])
    const all = `${base}/servers/com.example%2Fmany`
    expect(await statuses(patch(all, { status: 'active' }))).toEqual([200, 400, 400, 400, 400, 400])
    expect(await statuses(() => api.call('DELETE', path))).toEqual([200, 404, 404, 404, 404, 404])
    await api.call('PATCH', `${path}/status`, { body: { status: 'active' } })
    const entry = '/v1/entries/server/com.example%2Fmany/versions/1.0.0'
    expect(await statuses(() => api.call('DELETE', entry))).toEqual([204, 404, 404, 404, 404, 404])
  })

  it('PATCH sets the status of one version, and brings back what was deleted', async () => {
    await publish(document('com.example/status'))
    const path = `${at('com.example/status', '1.0.0')}/status`
    const patch = (body: unknown) => api.call('PATCH', path, { body })
    expect((await patch({ status: 'deprecated', statusMessage: 'old' })).json._meta[OFFICIAL]).toMatchObject({
      status: 'deprecated',
      statusMessage: 'old',
    })
    const same = await patch({ status: 'deprecated', statusMessage: 'old' })
    expect(same).toMatchObject({ status: 400, json: { error: 'no changes to apply: status is already deprecated' } })
    expect((await patch({ status: 'deleted' })).json._meta[OFFICIAL]).not.toHaveProperty('statusMessage')
    expect((await patch({ status: 'active' })).json._meta[OFFICIAL].status).toBe('active')
    expect((await api.get(at('com.example/status', 'latest'))).status).toBe(200)
    for (const body of [{}, { status: 'gone' }, { status: 'active', statusMessage: 'x' }, { status: 'deleted', why: 'x' }, [], 1])
      expect((await patch(body)).status, JSON.stringify(body)).toBe(400)
  })

  it('PATCH of all versions: all or none', async () => {
    for (const version of ['1.0.0', '1.1.0', '2.0.0']) await publish(document('com.example/every', version))
    const path = `${base}/servers/com.example%2Fevery/status`
    const answer = await api.call('PATCH', path, { body: { status: 'deprecated', statusMessage: 'use another' } })
    expect(answer).toMatchObject({ status: 200, json: { updatedCount: 3 } })
    expect(answer.json.servers.map((entry: never) => entry['_meta'][OFFICIAL]['isLatest'])).toEqual([false, false, true])
    const none = await api.call('PATCH', `${base}/servers/com.example%2Fnone/status`, { body: { status: 'deleted' } })
    expect(none.status).toBe(404)
  })
})

it('503 when the database is gone, without telling where it was; reads go on', async () => {
  await using other = await createSampleEngine()
  await using server = await startApi({ engine: other })
  other.loseStore()
  const answer = await server.call('POST', `${base}/publish`, { body: document('a.b/c') })
  expect(answer).toMatchObject({ status: 503, json: { error: 'the database does not answer', code: 'unavailable' } })
  expect(answer.headers['retry-after']).toBe('1')
  expect(server.logLines.join('')).toContain('request failed')
  expect((await server.get(`${base}/servers`)).status).toBe(200)
})

/** A barrier: continues when this many have read. */
function allLookFirst(count: number): void {
  const { versionsOf } = engine.admin
  const all = Promise.withResolvers<void>()
  let looked = 0
  const look: typeof versionsOf = async (source, name) => {
    const found = await versionsOf(source, name)
    if (++looked === count) {
      Object.assign(engine.admin, { versionsOf })
      all.resolve()
    }
    await all.promise
    return found
  }
  Object.assign(engine.admin, { versionsOf: look })
}
