import { TestClock } from '@thv/kernel/clock'
import { isThvError } from '@thv/kernel/errors'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { configMaps, deployments, namespaces, serviceAccounts } from '../objects/resource-types.ts'
import { eventually, type Handler, type LoopbackServer, sendJson, sendStatus, startLoopback } from '../testing/loopback-server.ts'
import { createKubeClient, type KubeClient, type KubeClientOptions } from './client.ts'
import { bearerToken } from './connection.ts'
import { KubeApiError } from './kube-api-error.ts'

const key = { namespace: 'team', name: 'web' }
const object = { metadata: { ...key } }
const echo: Handler = (_request, response) => sendJson(response, 200, { metadata: { name: 'answer' }, items: [] })

describe('KubeClient', () => {
  let handler: Handler
  let server: LoopbackServer
  const clients: KubeClient[] = []
  const newClient = (options: KubeClientOptions = {}) => {
    const client = createKubeClient(server.connection(), { retry: { baseMs: 1, maxMs: 1, maxAttempts: 2 }, ...options })
    clients.push(client)
    return client
  }

  beforeEach(async () => {
    handler = echo
    server = await startLoopback((...args) => handler(...args))
  })
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()))
    await server[Symbol.asyncDispose]()
  })

  const ns = '/api/v1/namespaces/team/configmaps'
  it.each<[string, (client: KubeClient) => Promise<unknown>, string, string, unknown?]>([
    ['get', (c) => c.get(configMaps, key), 'GET', `${ns}/web`],
    ['get at a version', (c) => c.get(configMaps, key, { resourceVersion: '0' }), 'GET', `${ns}/web?resourceVersion=0`],
    [
      'get of a subresource',
      (c) => c.get(deployments, key, { subresource: 'scale' }),
      'GET',
      '/apis/apps/v1/namespaces/team/deployments/web/scale',
    ],
    ['list everywhere', (c) => c.list(configMaps), 'GET', '/api/v1/configmaps'],
    [
      'list with all options',
      (c) =>
        c.list(configMaps, {
          namespace: 'team',
          labelSelector: 'a in (b)',
          fieldSelector: 'metadata.name=x',
          limit: 3,
          continue: 'abc',
          resourceVersion: '9',
          resourceVersionMatch: 'NotOlderThan',
        }),
      'GET',
      `${ns}?labelSelector=a+in+%28b%29&fieldSelector=metadata.name%3Dx&limit=3&continue=abc&resourceVersion=9&resourceVersionMatch=NotOlderThan`,
    ],
    ['create', (c) => c.create(configMaps, object), 'POST', ns, { ...object, apiVersion: 'v1', kind: 'ConfigMap' }],
    [
      'create with options',
      (c) => c.create(configMaps, object, { fieldManager: 'me', dryRun: true, fieldValidation: 'Strict' }),
      'POST',
      `${ns}?fieldManager=me&dryRun=All&fieldValidation=Strict`,
      { ...object, apiVersion: 'v1', kind: 'ConfigMap' },
    ],
    [
      'create of a subresource',
      (c) =>
        c.create(serviceAccounts, { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', ...object }, { subresource: 'token' }),
      'POST',
      '/api/v1/namespaces/team/serviceaccounts/web/token',
      { ...object, apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest' },
    ],
    ['create of a cluster-wide object', (c) => c.create(namespaces, { metadata: { name: 'x' } }), 'POST', '/api/v1/namespaces'],
    ['update', (c) => c.update(configMaps, object), 'PUT', `${ns}/web`, { ...object, apiVersion: 'v1', kind: 'ConfigMap' }],
    [
      'update of the status',
      (c) => c.update(deployments, object, { subresource: 'status' }),
      'PUT',
      '/apis/apps/v1/namespaces/team/deployments/web/status',
    ],
    ['delete', (c) => c.delete(configMaps, key), 'DELETE', `${ns}/web`, { apiVersion: 'v1', kind: 'DeleteOptions' }],
    [
      'delete with options',
      (c) =>
        c.delete(configMaps, key, {
          preconditions: { uid: 'u', resourceVersion: '4' },
          propagationPolicy: 'Foreground',
          gracePeriodSeconds: 0,
          dryRun: true,
        }),
      'DELETE',
      `${ns}/web`,
      {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        preconditions: { uid: 'u', resourceVersion: '4' },
        propagationPolicy: 'Foreground',
        gracePeriodSeconds: 0,
        dryRun: ['All'],
      },
    ],
    [
      'deleteCollection',
      (c) => c.deleteCollection(configMaps, { namespace: 'team', labelSelector: 'a=b', propagationPolicy: 'Background' }),
      'DELETE',
      `${ns}?labelSelector=a%3Db`,
      { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background' },
    ],
    ['raw', (c) => c.raw('GET', '/version', { query: { timeout: 3 } }), 'GET', '/version?timeout=3'],
    ['raw with a JSON body', (c) => c.raw('POST', '/apis/x', { body: { a: 1 } }), 'POST', '/apis/x', { a: 1 }],
  ])('%s', async (_name, act, method, url, body) => {
    await act(newClient())
    expect(server.requests.map((request) => [request.method, request.url])).toEqual([[method, url]])
    if (body !== undefined) expect(JSON.parse(server.requests[0]?.body ?? '')).toEqual(body)
  })

  it.each([
    [
      'json',
      { kind: 'json', ops: [{ op: 'remove', path: '/data/a' }] },
      'application/json-patch+json',
      [{ op: 'remove', path: '/data/a' }],
      '',
    ],
    ['merge', { kind: 'merge', body: { data: { a: null } } }, 'application/merge-patch+json', { data: { a: null } }, ''],
    ['strategic', { kind: 'strategic', body: { data: {} } }, 'application/strategic-merge-patch+json', { data: {} }, ''],
    ['apply', { kind: 'apply', object, fieldManager: 'me' }, 'application/apply-patch+yaml', object, '?fieldManager=me'],
    [
      'apply',
      { kind: 'apply', object, fieldManager: 'me', force: true },
      'application/apply-patch+yaml',
      object,
      '?fieldManager=me&force=true',
    ],
  ] as const)('patch %s', async (_name, patch, contentType, body, query) => {
    await newClient().patch(configMaps, key, patch)
    const [request] = server.requests
    expect(request).toMatchObject({ method: 'PATCH', url: `${ns}/web${query}`, headers: { 'content-type': contentType } })
    expect(JSON.parse(request?.body ?? '')).toEqual(body)
  })

  it('apply takes its path from the object and completes it', async () => {
    await newClient().apply(deployments, object, { fieldManager: 'me', force: true, dryRun: true, subresource: 'status' })
    expect(server.requests[0]).toMatchObject({
      url: '/apis/apps/v1/namespaces/team/deployments/web/status?fieldManager=me&dryRun=All&force=true',
      body: JSON.stringify({ ...object, apiVersion: 'apps/v1', kind: 'Deployment' }),
    })
  })

  it('sends who it is and what it takes, and a content type only with a body', async () => {
    const client = createKubeClient(server.connection(bearerToken('s3cret')), { userAgent: 'thing/1' })
    clients.push(client)
    await client.get(configMaps, key)
    const headers = server.requests[0]?.headers
    expect(headers).toMatchObject({ accept: 'application/json', 'user-agent': 'thing/1', authorization: 'Bearer s3cret' })
    expect(headers).not.toHaveProperty('content-type')
  })

  it('honours a path in the server address', async () => {
    const client = createKubeClient({ ...server.connection(), server: `${server.url}/k8s/clusters/c1/` })
    clients.push(client)
    await client.get(configMaps, key)
    expect(server.requests[0]?.url).toBe(`/k8s/clusters/c1${ns}/web`)
  })

  it('rejects hostile names without sending, as a rejection and not as a throw', async () => {
    const client = newClient()
    const calls = [
      () => client.get(configMaps, { namespace: 'team', name: '../secrets' }),
      () => client.delete(configMaps, { namespace: '..', name: 'x' }),
      () => client.update(configMaps, { metadata: { namespace: 'team', name: 'a/b' } }),
      () => client.apply(configMaps, { metadata: { name: 'x' } }, { fieldManager: 'me' }),
      () => client.raw('GET', '/api/../x'),
      () => client.watch(configMaps, { namespace: 'a/b', resourceVersion: '1' })[Symbol.asyncIterator]().next(),
    ]
    for (const call of calls) await expect(call()).rejects.toBeInstanceOf(KubeApiError)
    expect(server.requests).toHaveLength(0)
  })

  it('names call and object in errors, with reason, causes and the time to wait', async () => {
    handler = (_request, response) =>
      sendJson(response, 422, {
        kind: 'Status',
        reason: 'Invalid',
        message: 'ConfigMap "web" is invalid',
        details: { retryAfterSeconds: 3, causes: [{ field: 'data', reason: 'FieldValueInvalid', message: 'bad' }] },
      })
    const error = await newClient()
      .update(configMaps, object)
      .catch((e: unknown) => e)
    expect(error).toMatchObject({
      code: 'kube_status',
      status: 422,
      reason: 'Invalid',
      retryAfterSeconds: 3,
      causes: [{ field: 'data', reason: 'FieldValueInvalid', message: 'bad' }],
      message: 'update configmaps team/web: ConfigMap "web" is invalid (422 Invalid)',
    })
  })

  it.each([
    ['HTML', '<html>\n <b>Bad   gateway</b></html>', '<html> <b>Bad gateway</b></html>'],
    ['nothing', '', 'empty response'],
    ['a long text', 'y'.repeat(5_000), `${'y'.repeat(200)}…`],
    ['an endless text', 'y'.repeat(3 << 20), `${'y'.repeat(200)}…`],
    ['another JSON', '{"error":"no"}', '{"error":"no"}'],
    ['a Status with wrong types', '{"kind":"Status","message":7,"details":{"causes":4,"retryAfterSeconds":"x"}}', '{"kind":"Status"'],
  ])('summarises an error body that is %s', async (_name, body, summary) => {
    handler = (_request, response) => void response.writeHead(502).end(body)
    const error = await newClient()
      .get(configMaps, key)
      .catch((e: unknown) => e)
    expect(error).toMatchObject({ status: 502, reason: '', causes: [], retryAfterSeconds: undefined })
    expect(String(error)).toContain(`get configmaps team/web: ${summary}`)
  })

  it('does not follow redirects', async () => {
    handler = (_request, response) => void response.writeHead(302, { location: '/other' }).end()
    await expect(newClient().get(configMaps, key)).rejects.toMatchObject({ status: 302 })
    expect(server.requests).toHaveLength(1)
  })

  it('tryGet gives undefined for 404 only', async () => {
    handler = (_request, response) => sendStatus(response, 404)
    expect(await newClient().tryGet(configMaps, key)).toBeUndefined()
    handler = (_request, response) => sendStatus(response, 403)
    await expect(newClient().tryGet(configMaps, key)).rejects.toMatchObject({ status: 403 })
  })

  it.each([
    ['not JSON', 'oh no', (c: KubeClient) => c.get(configMaps, key)],
    ['half JSON', '{"a":', (c: KubeClient) => c.get(configMaps, key)],
    ['empty', '', (c: KubeClient) => c.get(configMaps, key)],
    ['null', 'null', (c: KubeClient) => c.get(configMaps, key)],
    ['no list', '{"items":{}}', (c: KubeClient) => c.list(configMaps)],
    ['a list without metadata', '{"items":[]}', (c: KubeClient) => c.list(configMaps)],
    ['a list of numbers', '{"metadata":{},"items":[1]}', (c: KubeClient) => c.list(configMaps)],
  ])('an answer that is %s is kube_response_malformed', async (_name, body, act) => {
    handler = (_request, response) => void response.writeHead(200).end(body)
    await expect(act(newClient())).rejects.toMatchObject({ code: 'kube_response_malformed' })
  })

  it.each([true, false])('a body over the limit is cut off (content-length: %s)', async (withLength) => {
    const body = JSON.stringify({ metadata: { name: 'x' }, data: 'y'.repeat(200_000) })
    handler = (_request, response) => {
      response.writeHead(200, withLength ? { 'content-length': body.length } : {})
      response.write(body.slice(0, 1000))
      response.end(body.slice(1000))
    }
    await expect(newClient({ maxBodyBytes: 100_000 }).get(configMaps, key)).rejects.toMatchObject({ code: 'kube_response_too_large' })
    expect(await newClient({ maxBodyBytes: body.length }).get(configMaps, key)).toMatchObject({ metadata: { name: 'x' } })
    expect(server.requests).toHaveLength(2)
  })

  it('fills in apiVersion and kind of list items, and takes null for no items', async () => {
    handler = (_request, response) =>
      sendJson(response, 200, { metadata: { resourceVersion: '3' }, items: [object, { kind: 'Other', ...object }] })
    const list = await newClient().list(deployments, { namespace: 'team' })
    expect(list.items.map((item) => [item.apiVersion, item.kind])).toEqual([
      ['apps/v1', 'Deployment'],
      ['apps/v1', 'Other'],
    ])
    handler = (_request, response) => sendJson(response, 200, { metadata: {}, items: null })
    expect((await newClient().list(deployments)).items).toEqual([])
  })

  const page = (names: string[], token?: string) => ({
    metadata: { resourceVersion: '10', continue: token },
    items: names.map((name) => ({ metadata: { name } })),
  })

  it('pages with 500 at a time and pins the version by the token alone', async () => {
    handler = (_request, response, index) => sendJson(response, 200, index === 0 ? page(['a', 'b'], 'next') : page(['c']))
    const all = await newClient().listAll(configMaps, {
      namespace: 'team',
      resourceVersion: '5',
      resourceVersionMatch: 'Exact',
      labelSelector: 'x',
    })
    expect(all.items.map((item) => item.metadata.name)).toEqual(['a', 'b', 'c'])
    expect(all.metadata.resourceVersion).toBe('10')
    expect(server.requests.map((request) => request.url)).toEqual([
      `${ns}?labelSelector=x&limit=500&resourceVersion=5&resourceVersionMatch=Exact`,
      `${ns}?labelSelector=x&limit=500&continue=next`,
    ])
  })

  it('an expired token ends listPages with kube_watch_expired and turns listAll into one plain list', async () => {
    handler = (request, response) => {
      if (request.url.includes('continue=')) sendStatus(response, 410, { reason: 'Expired' })
      else sendJson(response, 200, request.url.includes('limit=') ? page(['a'], 'next') : page(['a', 'b']))
    }
    const client = newClient()
    const seen: number[] = []
    const walk = async () => {
      for await (const { items } of client.listPages(configMaps, { limit: 1 })) seen.push(items.length)
    }
    await expect(walk()).rejects.toSatisfy((error) => isThvError(error, 'kube_watch_expired'))
    expect(seen).toEqual([1])
    expect((await client.listAll(configMaps, { limit: 1 })).items).toHaveLength(2)
  })

  it('does not walk in circles with a server that repeats its token', async () => {
    handler = (_request, response) => sendJson(response, 200, page(['a'], 'same'))
    await expect(newClient().listAll(configMaps)).rejects.toMatchObject({ code: 'kube_response_malformed' })
    expect(server.requests).toHaveLength(2)
  })

  it('hands on warnings', async () => {
    handler = (_request, response) => sendJson(response, 200, object, { warning: '299 - "unknown field"' })
    const warnings: string[] = []
    await newClient({ onWarning: (text) => warnings.push(text) }).get(configMaps, key)
    expect(warnings).toEqual(['unknown field'])
  })

  it('gives raw answers with status, headers and body', async () => {
    handler = (request, response) => void response.writeHead(201, { 'x-a': 'b' }).end(request.body)
    const answer = await newClient().raw('POST', '/x', { body: 'plain', contentType: 'text/plain', accept: 'text/*' })
    expect(answer.status).toBe(201)
    expect(answer.headers['x-a']).toBe('b')
    expect(answer.text()).toBe('plain')
    expect(() => answer.json()).toThrow('not JSON')
    expect(server.requests[0]?.headers).toMatchObject({ 'content-type': 'text/plain', accept: 'text/*' })
  })

  it('aborts at once, with the reason, and closes the connection', async () => {
    handler = () => {} // never answers
    const controller = new AbortController()
    const call = newClient().get(configMaps, key, { signal: controller.signal })
    await eventually(() => server.requests.length === 1)
    const reason = new Error('enough')
    controller.abort(reason)
    await expect(call).rejects.toBe(reason)
    await eventually(() => server.sockets.size === 0)
  })

  it('aborts while the body is coming', async () => {
    handler = (_request, response) => void response.writeHead(200).write('{"metadata":')
    const controller = new AbortController()
    const call = newClient().get(configMaps, key, { signal: controller.signal })
    await eventually(() => server.requests.length === 1)
    setTimeout(() => controller.abort(new Error('enough')), 20)
    await expect(call).rejects.toThrow('enough')
  })

  it('limits the time of a call, by its own clock', async () => {
    handler = () => {}
    const clock = new TestClock()
    const call = newClient({ clock })
      .get(configMaps, key, { timeoutMs: 5_000 })
      .catch((error: unknown) => error)
    await eventually(() => server.requests.length === 1)
    await clock.advance(4_999)
    expect(clock.pending).toBe(1)
    await clock.advance(1)
    expect(await call).toMatchObject({ code: 'kube_unreachable', details: { timeoutMs: 5_000 } })
    expect(String(await call)).toContain('get configmaps team/web: no answer from')
  })

  it('leaves no timer behind', async () => {
    const clock = new TestClock()
    const client = newClient({ clock })
    await client.get(configMaps, key)
    handler = (_request, response) => sendStatus(response, 404)
    await client.tryGet(configMaps, key)
    expect(clock.pending).toBe(0)
  })

  it('close ends calls under way and refuses new ones; twice is fine', async () => {
    handler = () => {}
    const client = newClient()
    const call = client.get(configMaps, key).catch((error: unknown) => error)
    await eventually(() => server.requests.length === 1)
    await client.close()
    await client.close()
    expect(await call).toMatchObject({ code: 'aborted' })
    await expect(client.get(configMaps, key)).rejects.toMatchObject({ code: 'aborted' })
    await eventually(() => server.sockets.size === 0)
  })

  it.each(['http://10.0.0.1:8080', 'http://kubernetes.default.svc', 'http://127.0.0.1.evil.test'])(
    'sends no credentials to %s',
    async (address) => {
      const client = createKubeClient({ server: address, tls: {}, auth: bearerToken('s3cret') })
      clients.push(client)
      await expect(client.get(configMaps, key)).rejects.toMatchObject({
        code: 'kubeconfig_invalid',
        message: expect.not.stringContaining('s3cret'),
      })
    },
  )

  it.each(['', 'nonsense', 'ftp://x', 'https://user:s3cret@x', 'https://x/?a=b', 'https://x/#a'])(
    'refuses the server address %j',
    (address) => {
      expect(() => createKubeClient({ ...server.connection(), server: address })).toThrow(
        expect.objectContaining({ code: 'kubeconfig_invalid', message: expect.not.stringContaining('s3cret') }),
      )
    },
  )

  it('shares at most 16 connections among its calls', async () => {
    let most = 0
    handler = async (_request, response) => {
      most = Math.max(most, server.sockets.size)
      await new Promise((resolve) => setTimeout(resolve, 5))
      sendJson(response, 200, object)
    }
    const client = newClient()
    await Promise.all(Array.from({ length: 100 }, () => client.get(configMaps, key)))
    expect(most).toBeLessThanOrEqual(16)
    expect(most).toBeGreaterThan(1)
  })
})
