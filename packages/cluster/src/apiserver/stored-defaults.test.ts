import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { request } from '@thv/testkit/cluster/http-request'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type EmbeddedApiServer, startApiServer } from './api-server.ts'
import { gizmos } from './testing/gizmos.ts'

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const GIZMOS = '/apis/example.com/v1/gizmos'

describe('custom objects that are older than their definition', () => {
  let server: EmbeddedApiServer
  beforeEach(async () => {
    server = await startApiServer()
    await send('POST', CRDS, gizmos({ type: 'string' }))
    await send('POST', GIZMOS, { apiVersion: 'example.com/v1', kind: 'Gizmo', metadata: { name: 'old' }, b: 'kept' })
  })
  afterEach(() => server.close())

  async function send(method: string, path: string, body?: Json, type = 'application/json'): Promise<JsonObject> {
    const answer = await request(`${server.url}${path}`, {
      method,
      caPem: server.caPem,
      ...(body === undefined ? {} : { body }),
      headers: { authorization: `Bearer ${server.adminToken}`, 'content-type': type },
    })
    expect(answer.status).toBeLessThan(300)
    return JSON.parse(answer.text.split('\n', 1)[0] ?? '') as JsonObject
  }
  const redefine = (a: JsonObject, b?: JsonObject) =>
    send('PATCH', `${CRDS}/gizmos.example.com`, { spec: { versions: at(gizmos(a, b)) } }, 'application/merge-patch+json')
  const at = (crd: JsonObject): Json => (crd['spec'] as JsonObject)['versions'] ?? []

  it('have the new defaults wherever they are read, and stay as they are in the store', async () => {
    const before = await send('GET', `${GIZMOS}/old`)
    expect(before['a']).toBeUndefined()
    await redefine({ type: 'string', default: 'A' })
    const read = await send('GET', `${GIZMOS}/old`)
    expect([read['a'], read['b']]).toEqual(['A', 'kept'])
    expect((read['metadata'] as JsonObject)['resourceVersion']).toBe((before['metadata'] as JsonObject)['resourceVersion'])
    expect((await send('GET', GIZMOS))['items']).toEqual([expect.objectContaining({ a: 'A' })])
    const event = await send('GET', `${GIZMOS}?watch=true&timeoutSeconds=1`)
    expect(event['object']).toEqual(expect.objectContaining({ a: 'A' }))
    expect(server.store.get('gizmos.example.com', 'old')?.body['a']).toBeUndefined()
  })

  it('keep a default that was stored when another takes its place', async () => {
    await redefine({ type: 'string', default: 'A' })
    await send('PATCH', `${GIZMOS}/old`, { metadata: { labels: { written: 'again' } } }, 'application/merge-patch+json')
    await redefine({ type: 'string', default: 'other' }, { type: 'string', default: 'B' })
    const read = await send('GET', `${GIZMOS}/old`)
    expect([read['a'], read['b']]).toEqual(['A', 'kept'])
  })

  it('lose what the definition no longer knows', async () => {
    await redefine({ type: 'string' }, { type: 'object', properties: { c: { type: 'string' } } })
    expect((await send('GET', `${GIZMOS}/old`))['b']).toBe('kept') // pruning knows names, not types
    const spec = gizmos({ type: 'string' })['spec'] as JsonObject
    const [version] = spec['versions'] as JsonObject[]
    const versions = [{ ...version, schema: { openAPIV3Schema: { type: 'object', properties: { a: { type: 'string' } } } } }]
    await send('PATCH', `${CRDS}/gizmos.example.com`, { spec: { versions } }, 'application/merge-patch+json')
    expect((await send('GET', `${GIZMOS}/old`))['b']).toBeUndefined()
  })
})
