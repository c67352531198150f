import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { isThvError } from '@thv/kernel/errors'
import { createKubeClient, type KubeClient } from '@thv/kube/client/client'
import { bearerToken } from '@thv/kube/client/connection'
import { isExpired } from '@thv/kube/client/kube-api-error'
import { configMaps } from '@thv/kube/objects/resource-types'
import type { KubeObject } from '@thv/kube/objects/types'
import { type Answer, type RequestOptions, request } from '@thv/testkit/cluster/http-request'
import { afterEach, describe, expect, it } from 'vitest'
import { type ApiServerOptions, type EmbeddedApiServer, startApiServer } from './api-server.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const cleanups: (() => unknown)[] = []
const errors: unknown[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
  expect(errors.splice(0)).toEqual([])
})

async function start(options: ApiServerOptions = {}): Promise<EmbeddedApiServer> {
  const server = await startApiServer({ onError: (error) => errors.push(error), ...options })
  cleanups.push(() => server.close())
  return server
}

function call(server: EmbeddedApiServer, path: string, options: RequestOptions & { token?: string } = {}): Promise<Answer> {
  const authorization = `Bearer ${options.token ?? server.adminToken}`
  return request(`${server.url}${path}`, { ...options, caPem: server.caPem, headers: { authorization, ...options.headers } })
}

function clientOf(server: EmbeddedApiServer): KubeClient {
  const client = createKubeClient({ server: server.url, tls: { ca: server.caPem }, auth: bearerToken(server.adminToken) })
  cleanups.push(() => client.close())
  return client
}

const map = (name: string, data: Record<string, string> = {}) => ({ metadata: { name, namespace: 'default' }, data })
const create = (server: EmbeddedApiServer, name: string, data: Record<string, string> = {}) =>
  call(server, MAPS, { method: 'POST', body: map(name, data) })

describe('the embedded API server', () => {
  it('takes its own tokens only, but tells everyone that it lives', async () => {
    const server = await start({ users: { 'another-good-token': { name: 'someone', groups: [] } } })
    expect((await call(server, MAPS)).status).toBe(200)
    expect((await call(server, MAPS, { token: 'another-good-token' })).status).toBe(200)
    const forged = await call(server, MAPS, { token: `${server.adminToken}x` })
    expect([forged.status, forged.json()['reason']]).toEqual([401, 'Unauthorized'])
    expect((await request(`${server.url}${MAPS}`, { caPem: server.caPem })).status).toBe(401)
    expect((await request(`${server.url}/livez`, { caPem: server.caPem })).text).toBe('ok')
    expect((await request(`${server.url}/version`, { caPem: server.caPem })).json()['gitVersion']).toBe('v1.34.1+thv')
  })

  it('has a page with metrics for those who have a token, if it is given one', async () => {
    expect((await call(await start(), '/metrics')).status).toBe(404)
    const server = await start({ metricsPage: () => 'answers_total 1\n' })
    const page = await call(server, '/metrics')
    expect([page.status, page.text]).toEqual([200, 'answers_total 1\n'])
    expect((await request(`${server.url}/metrics`, { caPem: server.caPem })).status).toBe(401)
  })

  it('refuses to act as somebody else, since it could not say what they may do', async () => {
    const server = await start()
    const answer = await call(server, MAPS, { headers: { 'impersonate-user': 'bob' } })
    expect([answer.status, answer.json()['message']]).toEqual([501, 'impersonation is not implemented by this server'])
  })

  it('refuses bodies that are too large, too deep or of another form', async () => {
    const server = await start()
    const large = await create(server, 'large', { a: 'x'.repeat(3 << 20) })
    expect([large.status, large.json()['reason']]).toEqual([413, 'RequestEntityTooLarge'])
    const deep = `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`
    expect((await call(server, MAPS, { method: 'POST', body: deep, headers: { 'content-type': 'application/json' } })).status).toBe(400)
    const other = await call(server, MAPS, {
      method: 'POST',
      body: 'k8s',
      headers: { 'content-type': 'application/cbor' },
    })
    expect([other.status, other.json()['reason']]).toEqual([415, 'UnsupportedMediaType'])
    expect((await call(server, '/api/v1/namespaces/%zz/configmaps')).status).toBe(400)
    expect((await call(server, `${MAPS}/..%2f..%2fsecrets`)).status).toBe(404)
  })

  it('says so when something of Kubernetes is not there', async () => {
    const server = await start()
    const exec = await call(server, '/api/v1/namespaces/default/pods/x/exec')
    expect([exec.status, exec.json()['message']]).toEqual([501, 'pods/exec is not implemented by this server'])
  })

  it('shows a watcher what was there, what comes, and ends when it should', async () => {
    const server = await start()
    const client = clientOf(server)
    await client.create(configMaps, map('a'))
    const seen: string[] = []
    for await (const { type, object } of client.watch(configMaps, { namespace: 'default', resourceVersion: '', timeoutSeconds: 30 })) {
      seen.push(`${type} ${object.metadata.name}`)
      if (seen.length === 1) {
        await client.update(configMaps, { ...object, data: { x: '1' } })
        await client.create(configMaps, map('b'))
        await client.delete(configMaps, { namespace: 'default', name: 'a' })
      }
      if (seen.length === 4) break
    }
    expect(seen).toEqual(['ADDED a', 'MODIFIED a', 'ADDED b', 'DELETED a'])
    const short = await call(server, `${MAPS}?watch=true&timeoutSeconds=1&allowWatchBookmarks=true`)
    const events = short.text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string; object: KubeObject })
    expect(events.map(({ type }) => type)).toEqual(['ADDED', 'BOOKMARK'])
    expect(events[1]?.object.metadata.resourceVersion).toBe(String(server.store.revision))
  })

  it('turns what a selector sees into its own events', async () => {
    const server = await start()
    const client = clientOf(server)
    const made = await client.create(configMaps, { ...map('s'), metadata: { ...map('s').metadata, labels: { on: 'no' } } })
    const from = String(made.metadata.resourceVersion)
    const merge = (body: object) => client.patch(configMaps, { namespace: 'default', name: 's' }, { kind: 'merge', body })
    const label = (on: string) => merge({ metadata: { labels: { on } } })
    await label('yes')
    await merge({ data: { a: '1' } })
    await label('no')
    const answer = await call(server, `${MAPS}?watch=1&timeoutSeconds=1&labelSelector=on%3Dyes&resourceVersion=${from}`)
    const events = answer.text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string; object: KubeObject })
    expect(events.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'DELETED'])
    expect(events[2]?.object.metadata).toMatchObject({ labels: { on: 'yes' }, resourceVersion: String(server.store.revision) })
  })

  it('lets nobody watch or page from a state it has forgotten', async () => {
    const server = await start({ history: { maxChanges: 5 } })
    const client = clientOf(server)
    const first = await client.create(configMaps, map('first'))
    const page = (await call(server, `${MAPS}?limit=1`)).json<{ metadata: { continue?: string } }>()
    for (let number = 0; number < 10; number++) await client.create(configMaps, map(`m${number}`))
    const rest = await call(server, `${MAPS}?limit=5`)
    const token = rest.json<{ metadata: { continue: string } }>().metadata.continue
    expect((await call(server, `${MAPS}?limit=500&continue=${token}`)).json<{ items: unknown[] }>().items).toHaveLength(6)
    expect(page.metadata.continue).toBeUndefined()

    for (let number = 0; number < 10; number++) await client.delete(configMaps, { namespace: 'default', name: `m${number}` })
    const gone = await call(server, `${MAPS}?limit=500&continue=${token}`)
    expect([gone.status, gone.json()['reason']]).toEqual([410, 'Expired'])
    const next = gone.json<{ metadata: { continue: string } }>().metadata.continue
    expect((await call(server, `${MAPS}?continue=${next}`)).status).toBe(200)
    const watch = async () => {
      for await (const _ of client.watch(configMaps, { namespace: 'default', resourceVersion: String(first.metadata.resourceVersion) }))
        break
    }
    expect(await watch().catch((error: unknown) => error)).toSatisfy(isExpired)
  })

  it('cuts a watcher off that never reads, and keeps nothing for it', async () => {
    const server = await start({ history: { maxChanges: 20 } })
    const { hostname, port } = new URL(server.url)
    const socket = connect({ host: hostname, port: Number(port), ca: server.caPem })
    socket.on('error', () => undefined)
    socket.write(`GET ${MAPS}?watch=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.adminToken}\r\n\r\n`)
    await new Promise((resolve) => socket.once('data', resolve))
    socket.pause()
    const total = 64
    for (let number = 0; number < total; number++) await create(server, `big${number}`, { a: 'x'.repeat(512 << 10) })
    let bytes = 0
    socket.on('data', (chunk) => {
      bytes += chunk.length
    })
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.resume()
    await closed
    expect(bytes).toBeLessThan((total * (512 << 10)) / 2)
  })

  it('is the same after a restart, and refuses a folder in use', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'thv-api-'))
    cleanups.push(() => rmSync(folder, { recursive: true, force: true }))
    const first = await start({ folder })
    const before = (await create(first, 'kept', { a: '1' })).json<{ metadata: { uid: string; resourceVersion: string } }>()
    const second = await startApiServer({ folder }).catch((error: unknown) => error)
    expect(isThvError(second, 'data_folder_in_use')).toBe(true)
    await first.close()
    const again = await start({ folder })
    const after = (await call(again, `${MAPS}/kept`)).json<typeof before>()
    expect(after).toEqual(before)
    expect((await create(again, 'kept')).status).toBe(409)
  })

  it('says when its port is taken', async () => {
    const server = await start()
    const other = await startApiServer({ port: Number(new URL(server.url).port) }).catch((error: unknown) => error)
    expect(isThvError(other, 'listen_failed')).toBe(true)
  })

  it('serves the kinds of a definition until it and they are gone', async () => {
    const server = await start()
    const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
    const schema = { type: 'object', properties: { spec: { type: 'object', properties: { a: { type: 'string' } } } } }
    const crd = {
      metadata: { name: 'toys.example.com' },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { kind: 'Toy', plural: 'toys' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
      },
    }
    expect((await call(server, crds, { method: 'POST', body: crd })).status).toBe(201)
    const toys = '/apis/example.com/v1/namespaces/default/toys'
    const toy = { apiVersion: 'example.com/v1', kind: 'Toy', metadata: { name: 't', finalizers: ['example.com/hold'] }, spec: { a: 'x' } }
    expect((await call(server, toys, { method: 'POST', body: toy })).status).toBe(201)
    expect((await call(server, `${crds}/toys.example.com`, { method: 'DELETE' })).json()['kind']).toBe('CustomResourceDefinition')
    expect((await call(server, toys, { method: 'POST', body: { ...toy, metadata: { name: 'u' } } })).status).toBe(403)
    const release = {
      method: 'PATCH',
      body: { metadata: { finalizers: null } },
      headers: { 'content-type': 'application/merge-patch+json' },
    }
    expect((await call(server, `${toys}/t`, release)).status).toBe(200)
    expect((await call(server, `${crds}/toys.example.com`)).status).toBe(404)
    expect((await call(server, toys)).status).toBe(404)
  })

  it('deletes a namespace only when it is finalized', async () => {
    const server = await start()
    await call(server, '/api/v1/namespaces', { method: 'POST', body: { metadata: { name: 'gone' } } })
    const deleted = (await call(server, '/api/v1/namespaces/gone', { method: 'DELETE' })).json<{ status: { phase: string } }>()
    expect(deleted.status.phase).toBe('Terminating')
    const refused = await call(server, '/api/v1/namespaces/gone/configmaps', { method: 'POST', body: { metadata: { name: 'x' } } })
    expect([refused.status, refused.json<{ details: { causes: { reason: string }[] } }>().details.causes[0]?.reason]).toEqual([
      403,
      'NamespaceTerminating',
    ])
    const body = { ...deleted, spec: { finalizers: [] } }
    expect((await call(server, '/api/v1/namespaces/gone/finalize', { method: 'PUT', body })).status).toBe(200)
    expect((await call(server, '/api/v1/namespaces/gone')).status).toBe(404)
  })
})
