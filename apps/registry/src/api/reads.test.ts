import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { startApi } from './testing/api-server.ts'
import { sampleApi } from './testing/sample-api.ts'
import { createSampleEngine } from './testing/sample-engine.ts'
import { losslessText } from './testing/sample-registry.ts'

const { api } = await sampleApi()

const OFFICIAL = 'io.modelcontextprotocol.registry/official'
const base = '/registry/default/v0.1'
const weather = `${base}/servers/io.github.example%2Fweather/versions`
const namesOf = (answer: { json: { servers: { server: { name: string; version: string } }[] } }) =>
  answer.json.servers.map(({ server }) => `${server.name}@${server.version}`)

describe('GET …/servers', () => {
  it('pages through everything exactly once, by name and then version', async () => {
    const seen: string[] = []
    let cursor = ''
    for (let page = 0; page < 50; page++) {
      const answer = await api.get(`${base}/servers?limit=7${cursor}`)
      expect(answer.status).toBe(200)
      expect(answer.json.metadata.count).toBe(answer.json.servers.length)
      seen.push(...namesOf(answer))
      if (answer.json.metadata.nextCursor === undefined) break
      cursor = `&cursor=${encodeURIComponent(answer.json.metadata.nextCursor)}`
    }
    expect(seen.slice(0, 5)).toEqual([
      'com.example/mine@0.1.0',
      'com.example/mine@0.2.0',
      'com.example/new@1.0.0+build.5',
      'com.example/old@0.9.0',
      'com.example/shadow@3.0.0',
    ])
    expect(seen.slice(5, 7)).toEqual(['io.github.example/weather@1.9.0', 'io.github.example/weather@1.10.0'])
    expect(seen).toHaveLength(47)
    expect(new Set(seen).size).toBe(47)
  })

  it('a client that pages while others write sees each lasting entry once', async () => {
    const before = namesOf(await api.get(`${base}/servers?limit=1000`))
    const seen: string[] = []
    let cursor = ''
    for (let page = 0; page < 100; page++) {
      const { json } = await api.get(`${base}/servers?limit=3${cursor}`)
      seen.push(...namesOf({ json }))
      const body = (name: string) => ({ name, description: 'x', version: `1.0.${page}` })
      for (const name of ['aaa.example/first', 'net.example/server-05a', 'zzz.example/last'])
        expect((await api.call('POST', `${base}/publish`, { body: body(name) })).status).toBe(200)
      await api.call('DELETE', `${base}/servers/aaa.example%2Ffirst/versions/1.0.${page - 1}`)
      if (json.metadata.nextCursor === undefined) break
      cursor = `&cursor=${json.metadata.nextCursor}`
    }
    expect(new Set(seen).size).toBe(seen.length)
    for (const name of before) expect(seen).toContain(name)
    for (const name of ['aaa.example%2Ffirst', 'net.example%2Fserver-05a', 'zzz.example%2Flast'])
      await api.call('PATCH', `${base}/servers/${name}/status`, { body: { status: 'deleted' } })
  })

  it('gives the documents as they came, with a filled official block', async () => {
    const { text, json } = await api.get(`${base}/servers?search=WEATHER&version=latest`)
    expect(text).toContain(`{"server":${losslessText},"_meta":`)
    expect(Object.keys(json.servers[0]._meta[OFFICIAL])).toEqual(['status', 'statusChangedAt', 'publishedAt', 'updatedAt', 'isLatest'])
    expect(json.servers[0]._meta[OFFICIAL]).toMatchObject({ status: 'active', isLatest: true, publishedAt: '2025-03-01T00:00:00Z' })
  })

  it('filters: search, version, deleted, changes', async () => {
    expect(namesOf(await api.get(`${base}/servers?search=the%20new`))).toEqual(['com.example/new@1.0.0+build.5'])
    expect(namesOf(await api.get(`${base}/servers?search=weather&include_deleted=true`))).toHaveLength(3)
    expect(namesOf(await api.get(`${base}/servers?version=0.1.0`))).toEqual(['com.example/mine@0.1.0'])
    expect((await api.get(`${base}/servers?search=nothing-like-this`)).json).toEqual({ servers: [], metadata: { count: 0 } })
    const all = await api.get(`${base}/servers?updated_since=2020-01-01T00:00:00Z&limit=1000`)
    const deleted = all.json.servers.filter((entry: never) => entry[`_meta`][OFFICIAL]['status'] === 'deleted')
    expect(deleted.length, 'changes have deleted entries among them').toBeGreaterThan(2)
    const newest = all.json.servers
      .map((entry: never) => entry['_meta'][OFFICIAL]['updatedAt'])
      .sort()
      .at(-1)
    expect((await api.get(`${base}/servers?updated_since=${newest}`)).json.servers, 'strictly newer').toEqual([])
  })

  it.each([
    ['limit=0', 'limit must be an integer from 1 to 1000'],
    ['limit=1001', 'limit must be an integer from 1 to 1000'],
    ['limit=-1', 'limit must be an integer from 1 to 1000'],
    ['limit=abc', 'Invalid limit parameter: must be an integer'],
    ['cursor=garbage', 'cursor is not one that this registry gave'],
    ['updated_since=yesterday', 'updated_since must be RFC 3339, for example 2025-08-07T13:15:04.280Z'],
    ['updated_since=2020-01-01T00:00:00Z&include_deleted=false', 'include_deleted cannot be false together with updated_since'],
    ['serach=x', 'unknown query parameter "serach"; known are cursor, limit, search, updated_since, version, include_deleted'],
    [`search=${'x'.repeat(257)}`, 'search must not be longer than 256 characters'],
  ])('%s → 400', async (query, error) => {
    const answer = await api.get(`${base}/servers?${query}`)
    expect(answer.json).toEqual({ error, code: 'bad_request' })
    expect(answer.status).toBe(400)
  })

  it('refuses a cursor of another question', async () => {
    const { json } = await api.get(`${base}/servers?limit=1`)
    const answer = await api.get(`${base}/servers?limit=1&search=example&cursor=${json.metadata.nextCursor}`)
    expect(answer.json).toEqual({ error: 'cursor belongs to a list with other filters', code: 'bad_request' })
  })

  it('has the aggregated paths and the /v0 alias', async () => {
    const all = await api.get('/registry/v0.1/servers?limit=1000')
    expect(namesOf(all)).toContain('org.example/mirrored@1.0.0')
    expect(namesOf(all)).toContain('com.example/mine@0.1.0')
    expect((await api.get('/registry/v0/servers?limit=1000')).text).toBe(all.text)
    const name = 'org.example%2Fmirrored'
    for (const path of [
      '/servers?limit=1000',
      `/servers/${name}/versions`,
      `/servers/${name}/versions/latest`,
      '/servers?limit=x',
      '/nothing',
    ])
      for (const version of ['/v0.1', '/v0']) {
        const [atRoot, below] = await Promise.all([api.get(`${version}${path}`), api.get(`/registry${version}${path}`)])
        expect([path, atRoot.status, atRoot.text]).toEqual([path, below.status, below.text])
      }
    expect(namesOf(await api.get('/v0.1/servers?limit=1000'))).toEqual(namesOf(all))
    expect((await api.get('/registry/default/v0/servers')).text).toBe((await api.get(`${base}/servers`)).text)
  })
})

describe('GET …/versions', () => {
  it('newest publication first', async () => {
    expect(namesOf(await api.get(weather))).toEqual(['io.github.example/weather@1.10.0', 'io.github.example/weather@1.9.0'])
    expect(namesOf(await api.get(`${weather}?include_deleted=true`))).toEqual([
      'io.github.example/weather@1.10.0',
      'io.github.example/weather@2.0.0',
      'io.github.example/weather@1.9.0',
    ])
  })

  it('latest is the highest that is not deleted; a deleted one shows only when asked for', async () => {
    expect((await api.get(`${weather}/latest`)).json.server.version).toBe('1.10.0')
    expect((await api.get(`${weather}/2.0.0`)).status).toBe(404)
    const deleted = await api.get(`${weather}/2.0.0?include_deleted=true`)
    expect(deleted.json._meta[OFFICIAL]).toMatchObject({ status: 'deleted', statusMessage: 'withdrawn', isLatest: false })
    expect((await api.get(`${base}/servers/com.example%2Fgone/versions/latest`)).status).toBe(404)
    expect((await api.get(`${base}/servers/com.example%2Fnew/versions/1.0.0%2Bbuild.5`)).status).toBe(200)
  })

  it.each([
    ['/registry/nope/v0.1/servers', 404, 'registry not found'],
    [`${base}/servers/com.example%2Fnone/versions`, 404, 'server not found'],
    [`${base}/servers/com.example%2Fgone/versions`, 404, 'server not found'],
    [`${base}/servers/com.example%2Fmine/versions/7`, 404, 'server version not found'],
    [
      `${base}/servers/fetch/versions`,
      400,
      "invalid server name format: server name must be in format 'dns-namespace/name' (e.g., 'com.example.api/server')",
    ],
    [`${base}/servers/com.example/mine/versions`, 404, 'there is nothing at this path; the slash in the name of a server is written %2F'],
  ])('%s → %i', async (target, status, error) => {
    expect(await api.get(target)).toMatchObject({ status, json: { error } })
  })
})

describe('ranked search', () => {
  const search = (query: string) => api.get(`${base}/x/dev.toolhive/search?${query}`)

  it('finds by tool and with typing errors, best first', async () => {
    expect(namesOf(await search('q=get_forecast'))).toEqual(['io.github.example/weather@1.10.0'])
    expect(namesOf(await search('q=wether&limit=1'))).toEqual(['io.github.example/weather@1.10.0'])
    expect(namesOf(await search('q=com.example/mine'))[0]).toBe('com.example/mine@0.2.0')
    expect((await search('q=server&limit=3')).json.metadata).toEqual({ count: 3 })
  })

  it('narrows by exact filters: any value of one, all of different ones', async () => {
    expect(namesOf(await search('q=example&tag=weather'))).toEqual(['io.github.example/weather@1.10.0'])
    expect(namesOf(await search('q=example&tag=Weather'))).toEqual([])
    expect(namesOf(await search('q=server&tool=get_forecast'))).toEqual([])
    expect(namesOf(await search('q=new&registry_type=npm&transport=stdio&status=active'))).toEqual(['com.example/new@1.0.0+build.5'])
    expect(namesOf(await search('q=new&registry_type=npm&transport=sse'))).toEqual([])
    expect(namesOf(await search('q=com.example/mine&status=deprecated'))).toEqual(['com.example/old@0.9.0'])
  })

  it('gives all that pass the filters, by name, where there are no words', async () => {
    expect(namesOf(await search('transport=streamable-http&transport=stdio'))).toEqual([
      'com.example/new@1.0.0+build.5',
      'io.github.example/weather@1.10.0',
    ])
    expect(namesOf(await search('q=&registry_type=remote'))).toEqual(['io.github.example/weather@1.10.0'])
    expect(namesOf(await search('status=active&limit=2'))).toEqual(['com.example/mine@0.2.0', 'com.example/new@1.0.0+build.5'])
    expect(namesOf(await search('status=active&status=deprecated&limit=100')), 'no deleted ones').toHaveLength(45)
    expect((await search('tag=unknown-tag')).json).toEqual({ servers: [], metadata: { count: 0 } })
  })

  it('a filter follows a change of status', async () => {
    const document = { name: 'com.example/turning', description: 'x', version: '1.0.0' }
    expect((await api.call('POST', `${base}/publish`, { body: document })).status).toBe(200)
    const found = async (status: string) => namesOf(await search(`q=turning&status=${status}`))
    await expect.poll(() => found('active')).toEqual(['com.example/turning@1.0.0'])
    const body = { status: 'deprecated' }
    expect((await api.call('PATCH', `${base}/servers/com.example%2Fturning/versions/1.0.0/status`, { body })).status).toBe(200)
    await expect.poll(() => found('deprecated')).toEqual(['com.example/turning@1.0.0'])
    expect(await found('active')).toEqual([])
    await api.call('DELETE', `${base}/servers/com.example%2Fturning/versions/1.0.0`)
  })

  it.each([
    '',
    'q=',
    'q=%20',
    `q=${'x'.repeat(300)}`,
    'q=a&limit=0',
    'q=a&limit=101',
    'q=a&cursor=x',
    'tag=',
    'q=a&transport=http',
    'q=a&transport=stdio,sse',
    'q=a&status=deleted',
    `tag=${'x'.repeat(257)}`,
    Array(17).fill('tool=x').join('&'),
  ])('%s → 400', async (query) => {
    expect((await search(query)).status).toBe(400)
  })
})

describe('conditions and encodings', () => {
  it('304 for what the client has', async () => {
    const first = await api.get(`${base}/servers`)
    expect(first.headers).toMatchObject({ 'cache-control': 'public, no-cache', vary: 'Accept-Encoding' })
    const tag = String(first.headers['etag'])
    expect(tag).toMatch(/^W\/"[\w.-]+"$/)
    const again = await api.get(`${base}/servers`, { 'if-none-match': tag })
    expect(again).toMatchObject({ status: 304, text: '' })
    expect(again.headers['etag']).toBe(tag)
    expect((await api.get(`${base}/servers?limit=0`, { 'if-none-match': tag })).status, 'a wrong question stays wrong').toBe(400)
    expect((await api.get(`${base}/servers`, { 'if-none-match': '"other"' })).status).toBe(200)
  })

  it('another tag after a change', async () => {
    const tag = String((await api.get(`${base}/servers`)).headers['etag'])
    const document = { name: 'com.example/tagged', description: 'x', version: '1.0.0' }
    expect((await api.call('POST', `${base}/publish`, { body: document })).status).toBe(200)
    const after = await api.get(`${base}/servers`, { 'if-none-match': tag })
    expect(after.status).toBe(200)
    expect(namesOf(after)).toContain('com.example/tagged@1.0.0')
    expect((await api.call('DELETE', `${base}/servers/com.example%2Ftagged/versions/1.0.0`)).status).toBe(200)
  })

  it('gzip where it is taken and worth it, the same bytes inside', async () => {
    const plain = await api.get(`${base}/servers`)
    for (const round of [1, 2]) {
      const packed = await api.get(`${base}/servers`, { 'accept-encoding': 'br, gzip' })
      expect(packed.headers['content-encoding'], `round ${round}`).toBe('gzip')
      expect(packed.headers['etag']).toBe(plain.headers['etag'])
      expect(gunzipSync(packed.bytes).equals(plain.bytes)).toBe(true)
      expect(packed.bytes.length).toBe(Number(packed.headers['content-length']))
    }
    const small = await api.get(`${weather}/1.9.0`, { 'accept-encoding': 'gzip' })
    expect(small.headers['content-encoding']).toBeUndefined()
  })

  it('HEAD has the headers and no body', async () => {
    for (const target of [`${base}/servers`, `${weather}/latest`, '/openapi.json', '/v1/sources']) {
      const head = await api.call('HEAD', target)
      const get = await api.get(target)
      expect(head, target).toMatchObject({ status: 200, text: '' })
      expect(head.headers['content-length']).toBe(get.headers['content-length'])
    }
  })
})

it('503 with Retry-After while a registry is not built', async () => {
  await using other = await createSampleEngine()
  await using server = await startApi({ engine: other })
  other.forgetViews()
  const answer = await server.get(`${base}/servers`)
  expect(answer).toMatchObject({ status: 503, json: { error: 'the registry is not loaded yet', code: 'unavailable' } })
  expect(answer.headers['retry-after']).toBe('1')
})
