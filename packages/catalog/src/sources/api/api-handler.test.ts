import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createOutbound } from '@thv/http/outbound/outbound'
import { type BackendHandler, startBackend } from '@thv/http/testing/backend'
import { systemClock } from '@thv/kernel/clock'
import { afterAll, describe, expect, it } from 'vitest'
import type { FetchState } from '../fetch/registry-handler.ts'
import type { ApiSource, SourceConfig } from '../fetch/source-config.ts'
import { documentText, failure, namesOf, testContext } from '../testing/fetch-context.ts'
import { startOtherRegistry } from '../testing/other-registry.ts'
import { createApiHandler } from './api-handler.ts'

const outbound = createOutbound()
const handler = createApiHandler({ outbound, backoff: { baseMs: 1, maxMs: 5 } })
const folder = mkdtempSync(join(tmpdir(), 'thv-api-source-'))
afterAll(async () => {
  await outbound.close()
  rmSync(folder, { recursive: true, force: true })
})

function source(endpoint: string, more: Partial<ApiSource> = {}): SourceConfig {
  return { name: 'other', api: { endpoint, ...more }, intervalMs: 60_000 }
}

const HOUR = 3_600_000
const LONG_AGO = '2025-01-01T00:00:00.000Z'

describe('another registry', () => {
  it('is read page by page, each entry as it is written there', async () => {
    await using other = await startOtherRegistry()
    for (let i = 0; i < 250; i += 1) other.put(`s${String(i).padStart(3, '0')}`, { updatedAt: LONG_AGO })
    const odd = '{"description":"A server","name":"io.example/zz","version":"1","9":1.0,"big":12345678901234567890}'
    other.put('zz', { text: odd, status: 'deprecated', statusMessage: 'old', updatedAt: LONG_AGO, publishedAt: '2024-01-01T00:00:00Z' })
    const result = await handler.fetchRegistry(source(`${other.url}/`), testContext())
    expect(result).toMatchObject({ kind: 'full', problems: [] })
    expect(namesOf(result)).toHaveLength(251)
    expect(result.kind === 'full' && result.entries.at(-1)).toMatchObject({
      text: odd,
      status: 'deprecated',
      statusMessage: 'old',
      publishedAt: '2024-01-01T00:00:00Z',
    })
    expect(other.queries).toEqual(['limit=100', 'limit=100&cursor=100', 'limit=100&cursor=200'])
  })

  it('is asked for what changed since, and what is deleted there', async () => {
    await using other = await startOtherRegistry()
    const now = Date.now()
    other.put('old', { updatedAt: LONG_AGO })
    other.put('gone', { updatedAt: LONG_AGO })
    other.put('recent', { updatedAt: new Date(now - HOUR).toISOString() })
    const first = await handler.fetchRegistry(source(other.url), testContext())
    const unchanged = await handler.fetchRegistry(source(other.url), testContext({ state: first.state }))
    expect(unchanged).toEqual({ kind: 'unchanged', hash: first.hash, state: first.state })
    const since = new Date(now - HOUR - 5 * 60_000).toISOString()
    expect(other.queries.at(-1)).toBe(new URLSearchParams({ limit: '100', updated_since: since, include_deleted: 'true' }).toString())

    other.put('new', { updatedAt: new Date(now - 1_000).toISOString() })
    other.put('gone', { status: 'deleted', updatedAt: new Date(now - 500).toISOString() })
    const delta = await handler.fetchRegistry(source(other.url), testContext({ state: first.state }))
    expect(delta.kind).toBe('delta')
    expect(namesOf(delta)).toEqual(['io.example/gone@1.0.0', 'io.example/new@1.0.0', 'io.example/recent@1.0.0'])
    expect(delta.kind === 'delta' && delta.entries[0]?.status).toBe('deleted')
    expect(delta.hash).not.toBe(first.hash)
    expect(await handler.fetchRegistry(source(other.url), testContext({ state: delta.state }))).toMatchObject({ kind: 'unchanged' })
  })

  it('is read whole once a day, after a change of the source, and after a clock that jumped back', async () => {
    await using other = await startOtherRegistry()
    other.put('a', { updatedAt: LONG_AGO })
    const { state } = await handler.fetchRegistry(source(other.url), testContext())
    other.remove('a') // without a trace
    other.put('b', { updatedAt: LONG_AGO })
    const at = async (changed: FetchState, more: Partial<SourceConfig> = {}) =>
      namesOf(await handler.fetchRegistry({ ...source(other.url), ...more }, testContext({ state: changed })))
    const shifted = (ms: number): FetchState => ({ ...state, fullAt: Number(state['fullAt']) + ms })
    expect(await at(state)).toEqual(['io.example/b@1.0.0'])
    expect(other.queries.at(-1)).toContain('updated_since')
    for (const [changed, more] of [
      [shifted(-25 * HOUR), {}],
      [shifted(HOUR), {}],
      [state, { filter: { tags: { include: ['x'] } } }],
    ] as const) {
      expect(await at(changed, more)).toEqual(['io.example/b@1.0.0'])
      expect(other.queries.at(-1)).toBe('limit=100')
    }
  })

  it('is read whole each time when it tells no times, and is unchanged when it has the same', async () => {
    await using other = await startOtherRegistry()
    other.put('a', { updatedAt: undefined })
    const { state, hash } = await handler.fetchRegistry(source(other.url), testContext())
    expect(await handler.fetchRegistry(source(other.url), testContext({ state }))).toMatchObject({ kind: 'unchanged', hash })
    expect(other.queries).toEqual(['limit=100', 'limit=100'])
  })

  it('may refuse or ignore the question what changed', async () => {
    await using other = await startOtherRegistry()
    other.put('a', { updatedAt: LONG_AGO })
    other.put('b', { updatedAt: new Date().toISOString() })
    const { state } = await handler.fetchRegistry(source(other.url), testContext())
    other.remove('a')
    other.put('c', { updatedAt: LONG_AGO })
    other.updatedSince = 'ignored'
    expect(await handler.fetchRegistry(source(other.url), testContext({ state }))).toMatchObject({ kind: 'full' })
    other.updatedSince = 'refused'
    const warnings: string[] = []
    const result = await handler.fetchRegistry(source(other.url), testContext({ state, warn: (message) => warnings.push(message) }))
    expect(namesOf(result)).toEqual(['io.example/b@1.0.0', 'io.example/c@1.0.0'])
    expect(warnings).toEqual(['other: the registry does not take updated_since (HTTP 400); everything is read instead'])
  })

  it('loses nothing by an answer that has older ones among what changed, and is not asked so again for a day', async () => {
    await using other = await startOtherRegistry()
    const ago = (minutes: number) => ({ updatedAt: new Date(Date.now() - minutes * 60_000).toISOString() })
    other.put('old', { updatedAt: LONG_AGO })
    other.put('rough', ago(20))
    other.put('recent', ago(1))
    const first = await handler.fetchRegistry(source(other.url), testContext())
    other.updatedSince = 'roughly'
    other.put('new', ago(0))
    const second = await handler.fetchRegistry(source(other.url), testContext({ state: first.state }))
    expect(second.kind).toBe('full')
    expect(namesOf(second)).toEqual(['new', 'old', 'recent', 'rough'].map((name) => `io.example/${name}@1.0.0`))
    const asked = () => other.queries.splice(0).filter((query) => query.includes('updated_since')).length
    expect(asked()).toBe(1)
    const third = await handler.fetchRegistry(source(other.url), testContext({ state: second.state }))
    const fourth = await handler.fetchRegistry(source(other.url), testContext({ state: third.state }))
    expect([third.kind, fourth.kind, asked()]).toEqual(['unchanged', 'unchanged', 0])
    const tomorrow = { ...systemClock, now: () => systemClock.now() + 25 * HOUR }
    const later = await handler.fetchRegistry(source(other.url), testContext({ state: fourth.state, clock: tomorrow }))
    await handler.fetchRegistry(source(other.url), testContext({ state: later.state, clock: tomorrow }))
    expect(asked()).toBe(1)
  })

  it('may mean whole seconds by a time', async () => {
    await using other = await startOtherRegistry()
    other.put('old', { updatedAt: LONG_AGO })
    other.put('recent', { updatedAt: new Date().toISOString() })
    const { state } = await handler.fetchRegistry(source(other.url), testContext())
    other.updatedSince = 'roughly'
    other.put('rounded', { updatedAt: new Date(Number(state['since']) - 700).toISOString() })
    const delta = await handler.fetchRegistry(source(other.url), testContext({ state }))
    expect(delta.kind).toBe('delta')
    expect(namesOf(delta)).toEqual(['io.example/recent@1.0.0', 'io.example/rounded@1.0.0'])
  })

  it('with a time that is yet to come hides nothing', async () => {
    await using other = await startOtherRegistry()
    other.put('a', { updatedAt: '9999-01-01T00:00:00Z' })
    const { state } = await handler.fetchRegistry(source(other.url), testContext())
    other.put('b', { updatedAt: new Date().toISOString() })
    const delta = await handler.fetchRegistry(source(other.url), testContext({ state }))
    expect(namesOf(delta)).toEqual(['io.example/a@1.0.0', 'io.example/b@1.0.0'])
  })

  it('loses no good entry to a bad one', async () => {
    await using other = await startOtherRegistry()
    other.put('a', { updatedAt: LONG_AGO })
    other.put('b', { text: '{"name":"nonsense"}', updatedAt: LONG_AGO })
    const result = await handler.fetchRegistry(source(other.url), testContext())
    expect(namesOf(result)).toEqual(['io.example/a@1.0.0'])
    expect(result).toMatchObject({
      problems: expect.arrayContaining([expect.objectContaining({ pointer: '/server/name', severity: 'dropped' })]),
    })
  })

  it.each([
    ['has a member whose name is very long', `{"${'x'.repeat(20_000)}":1}`],
    ['is broken inside its brackets', '{"server" 1}'],
  ])('loses no good entry to one that %s', async (_name, bad) => {
    await using backend = await startBackend(
      (_request, response) => void response.end(`{"servers":[${bad},{"server":${documentText('a')}}]}`),
    )
    const result = await handler.fetchRegistry(source(backend.url), testContext())
    expect(namesOf(result)).toEqual(['io.example/a@1.0.0'])
    expect(result).toMatchObject({ problems: [{ entry: 'servers/0', severity: 'dropped' }] })
  })

  it('sends the headers of a file, but not to an address that it redirects to', async () => {
    const headersFile = join(folder, 'headers')
    writeFileSync(headersFile, '# for the registry\nAuthorization: Bearer hunter2\r\n\nX-Team: a:b\n')
    await using stranger = await startBackend((_request, response) => void response.end('{"servers":[]}'))
    await using backend = await startBackend((_request, response) => void response.writeHead(307, { location: `${stranger.url}/x` }).end())
    await handler.fetchRegistry(source(backend.url, { headersFile }), testContext())
    expect(backend.requests[0]?.headers).toMatchObject({ authorization: 'Bearer hunter2', 'x-team': 'a:b', accept: 'application/json' })
    expect(stranger.requests[0]?.headers['authorization']).toBeUndefined()
    expect(stranger.requests[0]?.headers['x-team']).toBeUndefined()
  })

  it.each([
    ['Bearer hunter2', 'line 1 of FILE does not begin with the name of a header and a colon'],
    ['A: b\nHost: hunter2', 'line 2 of FILE sets host, which is not for a file to set'],
    ['A: hunter2\u0001', 'line 1 of FILE has no value that could be sent'],
  ])('is not asked with headers like %j', async (text, expected) => {
    const headersFile = join(folder, 'bad-headers')
    writeFileSync(headersFile, text)
    const message = await failure(handler.fetchRegistry(source('http://127.0.0.1:1', { headersFile }), testContext()))
    expect(message.replace(headersFile, 'FILE')).toBe(`source_failed: ${expected}`)
  })

  it('needs the file of headers', async () => {
    const missing = source('http://127.0.0.1:1', { headersFile: join(folder, 'missing') })
    expect(await failure(handler.fetchRegistry(missing, testContext()))).toContain('cannot be read (ENOENT)')
  })
})

describe('a registry that is busy', () => {
  function busyFor(times: number, status: number, headers: Record<string, string> = {}): BackendHandler {
    let left = times
    return (_request, response) => {
      left -= 1
      if (left >= 0) response.writeHead(status, headers).end('busy')
      else response.end(`{"servers":[{"server":${documentText('a')}}],"metadata":{}}`)
    }
  }

  it.each([429, 503, 502, 500])('is asked again after %d', async (status) => {
    await using backend = await startBackend(busyFor(2, status, { 'retry-after': '0' }))
    expect(namesOf(await handler.fetchRegistry(source(backend.url), testContext()))).toEqual(['io.example/a@1.0.0'])
    expect(backend.requests).toHaveLength(3)
  })

  it('is asked again after the time it names, by its clock or ours', async () => {
    const slept: number[] = []
    const clock = {
      ...testContext().clock,
      now: () => Date.parse('2026-01-01T00:00:00Z'),
      sleep: async (ms: number) => void slept.push(ms),
    }
    await using seconds = await startBackend(busyFor(1, 429, { 'retry-after': '7' }))
    await handler.fetchRegistry(source(seconds.url), testContext({ clock: { ...testContext().clock, ...clock } }))
    await using date = await startBackend(busyFor(1, 503, { 'retry-after': 'Thu, 01 Jan 2026 00:00:30 GMT' }))
    await handler.fetchRegistry(source(date.url), testContext({ clock: { ...testContext().clock, ...clock } }))
    expect(slept).toEqual([7_000, 30_000])
  })

  it('is left alone when it asks for long, and after a few tries', async () => {
    await using long = await startBackend(busyFor(9, 429, { 'retry-after': '3600' }))
    expect(await failure(handler.fetchRegistry(source(long.url), testContext()))).toBe(
      `source_failed: HTTP 429 for ${long.url}/v0.1/servers: it asks to wait (Retry-After: 3600)`,
    )
    expect(long.requests).toHaveLength(1)
    await using always = await startBackend(busyFor(99, 503))
    expect(await failure(handler.fetchRegistry(source(always.url), testContext()))).toBe(
      `source_failed: HTTP 503 for ${always.url}/v0.1/servers`,
    )
    expect(always.requests).toHaveLength(4)
  })

  it('may break a connection', async () => {
    let broken = 0
    await using backend = await startBackend((_request, response) => {
      broken += 1
      if (broken < 3) response.destroy()
      else response.end('{"servers":null,"metadata":{"count":0}}')
    })
    expect(await handler.fetchRegistry(source(backend.url), testContext())).toMatchObject({ kind: 'full', entries: [] })
  })
})

describe('a registry that is none', () => {
  const page = (name: string, cursor: unknown, version = '1.0.0') =>
    `{"servers":[{"server":${documentText(name, version)}}],"metadata":{"nextCursor":${JSON.stringify(cursor)}}}`

  it.each<[string, (n: number) => string, string]>([
    ['leads back to a cursor', (n) => page(`s${n}`, n % 2 === 0 ? 'x' : 'y'), 'leads in a circle: page 3 gives a cursor that came before'],
    ['sends the same page without end', (n) => page('a', `c${n}`), 'leads in a circle: 3 pages one after the other had nothing new'],
    ['sends empty pages without end', (n) => `{"servers":[],"metadata":{"nextCursor":"c${n}"}}`, 'leads in a circle: 3 pages'],
    ['sends the same nonsense without end', (n) => `{"servers":[{}],"metadata":{"nextCursor":"c${n}"}}`, 'leads in a circle: 3 pages'],
    ['has a cursor of another type', () => page('a', 7), 'the cursor of the page is no text'],
    ['sends no JSON', () => '<html>', 'the document is not JSON: it needs a value (byte 0) (content type: none)'],
    ['sends a list', () => '[]', 'the page is not an object'],
    ['sends something else', () => '{"items":[]}', 'the page has no servers'],
    ['sends servers of another type', () => '{"servers":{}}', 'the servers of the page are not a list'],
    ['sends nothing usable', () => '{"servers":[{"server":{}}]}', 'none of the 1 entries can be used'],
    ['nests ten thousand deep', () => `{"servers":[${'['.repeat(10_000)}${']'.repeat(10_000)}]}`, 'none of the 1 entries can be used'],
  ])('%s', async (_name, answer, expected) => {
    let n = -1
    await using backend = await startBackend((_request, response) => {
      n += 1
      response.end(answer(n))
    })
    const message = await failure(handler.fetchRegistry(source(backend.url), testContext()))
    expect(message).toMatch(/^source_failed: /)
    expect(message).toContain(expected)
    expect(n).toBeLessThan(5)
  })

  it('has no end', async () => {
    let n = 0
    await using backend = await startBackend((_request, response) => {
      n += 1
      response.end(page(`s${n}`, `c${n}`))
    })
    const limited = (limits: object) => failure(handler.fetchRegistry(source(backend.url), testContext({ limits })))
    expect(await limited({ maxPages: 4 })).toBe(`source_limit: ${backend.url} has more than 4 pages`)
    expect(await limited({ maxEntries: 5 })).toBe('source_limit: the source has more than 5 entries')
    expect(await limited({ maxWireBytes: 500 })).toContain('source_limit: ')
    expect(await limited({ timeoutMs: 50 })).toContain('source_limit: ')
  })

  it.each([
    [404, ': there is no MCP registry'],
    [401, ': it wants other credentials (headersFile)'],
    [418, ''],
  ])('answers %d', async (status, more) => {
    await using backend = await startBackend((_request, response) => void response.writeHead(status).end())
    expect(await failure(handler.fetchRegistry(source(backend.url), testContext()))).toBe(
      `source_failed: HTTP ${status} for ${backend.url}/v0.1/servers${more}`,
    )
    expect(backend.requests).toHaveLength(1)
  })

  it('hangs', async () => {
    await using backend = await startBackend(() => {})
    const message = await failure(handler.fetchRegistry(source(backend.url, { timeout: '50ms' }), testContext()))
    expect(message).toBe(`source_failed: ${backend.url}/v0.1/servers did not answer completely within 50ms`)
  })
})
