import { type Clock, systemClock } from '@thv/kernel/clock'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { configMaps } from '../objects/resource-types.ts'
import { type Handler, type LoopbackServer, sendJson, sendStatus, startLoopback } from '../testing/loopback-server.ts'
import { createKubeClient, type KubeClient, type RetryOptions } from './client.ts'
import type { AuthSource } from './connection.ts'

const key = { namespace: 'team', name: 'web' }
const object = { metadata: { ...key } }
type Act = (client: KubeClient) => Promise<unknown>
const reads: [string, Act][] = [
  ['get', (c) => c.get(configMaps, key)],
  ['list', (c) => c.list(configMaps)],
  ['raw GET', (c) => c.raw('GET', '/version')],
]
const writes: [string, Act][] = [
  ['create', (c) => c.create(configMaps, object)],
  ['update', (c) => c.update(configMaps, object)],
  ['patch', (c) => c.patch(configMaps, key, { kind: 'merge', body: {} })],
  ['apply', (c) => c.apply(configMaps, object, { fieldManager: 'me' })],
  ['delete', (c) => c.delete(configMaps, key)],
  ['deleteCollection', (c) => c.deleteCollection(configMaps, { namespace: 'team' })],
  ['raw POST', (c) => c.raw('POST', '/x')],
]

describe('retries', () => {
  let handler: Handler
  let server: LoopbackServer
  let sleeps: number[]
  const clients: KubeClient[] = []
  const newClient = (retry: RetryOptions = {}, auth?: AuthSource) => {
    const clock: Clock = {
      ...systemClock,
      async sleep(ms, signal) {
        signal?.throwIfAborted()
        sleeps.push(ms)
      },
    }
    const client = createKubeClient(server.connection(auth), { clock, retry: { baseMs: 100, maxMs: 400, random: () => 0, ...retry } })
    clients.push(client)
    return client
  }
  const ok: Handler = (_request, response) => sendJson(response, 200, { metadata: {}, items: [] })
  const failing =
    (times: number, fail: Handler): Handler =>
    (request, response, index) =>
      index < times ? fail(request, response, index) : ok(request, response, index)
  const refuse =
    (status: number, retryAfter?: string): Handler =>
    (_request, response) =>
      sendStatus(response, status, { ...(retryAfter !== undefined && { headers: { 'retry-after': retryAfter } }) })
  const reset: Handler = (_request, response) => void response.socket?.resetAndDestroy()

  beforeEach(async () => {
    sleeps = []
    server = await startLoopback((...args) => handler(...args))
  })
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()))
    await server[Symbol.asyncDispose]()
  })

  it.each([...reads, ...writes])('%s: 429 and 503 with Retry-After are tried again', async (_name, act) => {
    for (const status of [429, 503]) {
      server.requests.length = 0
      handler = failing(2, refuse(status, '1'))
      await act(newClient())
      expect(server.requests).toHaveLength(3)
      expect(new Set(server.requests.map((request) => request.method + request.url + request.body)).size).toBe(1)
    }
    expect(sleeps).toEqual([1_100, 1_200, 1_100, 1_200])
  })

  it.each([
    ['no Retry-After', 429, undefined],
    ['no Retry-After', 503, undefined],
    ['nonsense', 429, 'soon'],
    ['a negative one', 503, '-1'],
    ['a senseless number', 503, '9'.repeat(30)],
    ['another status', 500, '1'],
    ['another status', 504, '1'],
    ['another status', 409, '1'],
    ['another status', 403, '1'],
  ])('%s (%i) goes to the caller at once', async (_name, status, retryAfter) => {
    handler = refuse(status, retryAfter)
    await expect(newClient().get(configMaps, key)).rejects.toMatchObject({ status })
    expect(server.requests).toHaveLength(1)
    expect(sleeps).toEqual([])
  })

  it('caps Retry-After, in seconds or as a date, and never spins on 0', async () => {
    const inAnHour = new Date(Date.now() + 3_600_000).toUTCString()
    for (const [retryAfter, wait] of [
      ['3600', 2_100],
      [inAnHour, 2_100],
      ['Thu, 01 Jan 1970 00:00:00 GMT', 100],
      ['0', 100],
    ] as const) {
      sleeps = []
      server.requests.length = 0
      handler = failing(1, refuse(429, retryAfter))
      await newClient({ retryAfterCapMs: 2_000 }).get(configMaps, key)
      expect(sleeps).toEqual([wait])
    }
  })

  it('gives up after its attempts with the last answer', async () => {
    handler = refuse(429, '1')
    await expect(newClient({ maxAttempts: 3 }).get(configMaps, key)).rejects.toMatchObject({ status: 429, retryAfterSeconds: 1 })
    expect(server.requests).toHaveLength(3)
  })

  it('does not begin a wait that goes beyond the time limit', async () => {
    handler = refuse(429, '8')
    await expect(newClient().get(configMaps, key, { timeoutMs: 5_000 })).rejects.toMatchObject({ status: 429 })
    expect(sleeps).toEqual([])
  })

  it.each(reads)('%s: a broken connection is tried again, with growing waits', async (_name, act) => {
    handler = failing(3, reset)
    await act(newClient())
    expect(server.requests).toHaveLength(4)
    expect(sleeps).toEqual([100, 200, 400])
  })

  it.each(writes)('%s: a broken connection goes to the caller: it may have had its effect', async (_name, act) => {
    handler = reset
    await expect(act(newClient())).rejects.toMatchObject({ code: 'kube_unreachable', cause: expect.any(Error) })
    expect(server.requests).toHaveLength(1)
    expect(sleeps).toEqual([])
  })

  it('an answer that breaks off is tried again', async () => {
    handler = failing(1, (_request, response) => {
      response.writeHead(200, { 'content-length': 1000 }).write('{"metadata"')
      setTimeout(() => response.socket?.destroy(), 10)
    })
    await newClient().get(configMaps, key)
    expect(server.requests).toHaveLength(2)
  })

  it('a server that is not there: all attempts, then kube_unreachable with the code', async () => {
    handler = ok
    await server[Symbol.asyncDispose]()
    await expect(newClient({ maxAttempts: 4 }).get(configMaps, key)).rejects.toMatchObject({
      code: 'kube_unreachable',
      details: { code: 'ECONNREFUSED' },
    })
    expect(sleeps).toHaveLength(3)
    server = await startLoopback((...args) => handler(...args))
  })

  it('does not retry a body that is not JSON', async () => {
    handler = (_request, response) => void response.end('oops')
    await expect(newClient().get(configMaps, key)).rejects.toMatchObject({ code: 'kube_response_malformed' })
    expect(server.requests).toHaveLength(1)
  })

  it('abort ends the waiting', async () => {
    handler = refuse(429, '5')
    const controller = new AbortController()
    const client = createKubeClient(server.connection())
    clients.push(client)
    const call = client.get(configMaps, key, { signal: controller.signal })
    setTimeout(() => controller.abort(new Error('enough')), 50)
    await expect(call).rejects.toThrow('enough')
  })

  function changingToken(tokens: string[]): AuthSource & { invalidated: number } {
    return {
      invalidated: 0,
      async header() {
        return `Bearer ${tokens[this.invalidated]}`
      },
      invalidate() {
        this.invalidated++
      },
    }
  }

  it.each([...reads, ...writes])('%s: a 401 renews the token and is tried once more', async (_name, act) => {
    handler = (request, response, index) =>
      request.headers.authorization === 'Bearer new' ? ok(request, response, index) : sendStatus(response, 401)
    const auth = changingToken(['old', 'new'])
    await act(newClient({ maxAttempts: 1 }, auth))
    expect(server.requests.map((request) => request.headers.authorization)).toEqual(['Bearer old', 'Bearer new'])
    expect(auth.invalidated).toBe(1)
    expect(sleeps).toEqual([])
  })

  it('a second 401 goes to the caller', async () => {
    handler = refuse(401)
    await expect(newClient({}, changingToken(['a', 'b', 'c'])).get(configMaps, key)).rejects.toMatchObject({ status: 401 })
    expect(server.requests).toHaveLength(2)
  })

  it('an auth source that fails is reported as it is', async () => {
    const failure = new Error('no token')
    const auth: AuthSource = { header: () => Promise.reject(failure), invalidate: () => {} }
    await expect(newClient({}, auth).get(configMaps, key)).rejects.toBe(failure)
    expect(server.requests).toHaveLength(0)
  })
})
