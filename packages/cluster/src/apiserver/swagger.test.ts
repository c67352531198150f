import { createHash } from 'node:crypto'
import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { request } from '@thv/testkit/cluster/http-request'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type EmbeddedApiServer, startApiServer } from './api-server.ts'
import { at } from './objects/served-kind.ts'
import { gizmos } from './testing/gizmos.ts'

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const GIZMO = 'com.example.v1.Gizmo'

describe('OpenAPI v2', () => {
  let server: EmbeddedApiServer
  beforeAll(async () => {
    server = await startApiServer()
  })
  afterAll(() => server.close())

  const send = (path: string, more: { method?: string; body?: JsonObject; headers?: Record<string, string> } = {}) =>
    request(`${server.url}${path}`, {
      caPem: server.caPem,
      ...more,
      headers: { authorization: `Bearer ${server.adminToken}`, ...more.headers },
    })
  const swagger = async () => JSON.parse((await send('/openapi/v2')).text) as JsonObject

  it('has all built-in kinds, and only references that lead somewhere', async () => {
    const document = await swagger()
    const definitions = document['definitions'] as Readonly<Record<string, JsonObject>>
    expect(document['swagger']).toBe('2.0')
    expect(definitions['io.k8s.api.core.v1.ReplicationController']?.['x-kubernetes-group-version-kind']).toEqual([
      { group: '', version: 'v1', kind: 'ReplicationController' },
    ])
    const targets = [...JSON.stringify(document).matchAll(/"\$ref":"#\/definitions\/([^"]+)"/g)].map(([, name = '']) => name)
    expect(targets.length).toBeGreaterThan(100)
    expect([...new Set(targets)].filter((name) => definitions[name] === undefined)).toEqual([])
  })

  it('follows definitions, in the words that Swagger has', async () => {
    const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties: { x: { type: 'string' } } }
    const choice: JsonObject = {
      type: 'object',
      required: ['n', 'm'],
      properties: {
        n: { type: 'string', nullable: true },
        m: open,
        l: { type: 'array', items: { type: 'string', anyOf: [{ minLength: 1 }] } },
      },
    }
    expect((await send(CRDS, { method: 'POST', body: gizmos({ type: 'string', description: 'An a.' }, choice) })).status).toBe(201)
    const found = at(await swagger(), 'definitions', GIZMO)
    expect(at(found, 'properties', 'a')).toEqual({ type: 'string', description: 'An a.' })
    expect(at(found, 'properties', 'b')).toEqual({
      type: 'object',
      required: ['m'],
      properties: { n: {}, m: { 'x-kubernetes-preserve-unknown-fields': true }, l: { type: 'array', items: { type: 'string' } } },
    })
    expect(at(found, 'properties', 'metadata', '$ref')).toBe('#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta')
    expect((await send(`${CRDS}/gizmos.example.com`, { method: 'DELETE' })).status).toBe(200)
    expect(at(await swagger(), 'definitions', GIZMO)).toBeUndefined()
  })

  it('is answered with 304 to a client that has it, and with 406 to one that accepts no form of it', async () => {
    const digest = createHash('sha256')
      .update((await send('/openapi/v2')).text)
      .digest('hex')
      .toUpperCase()
    expect((await send('/openapi/v2', { headers: { 'if-none-match': `"${digest}"` } })).status).toBe(304)
    for (const accept of ['application/vnd.kubernetes.protobuf', 'text/html, application/yaml'])
      expect((await send('/openapi/v2', { headers: { accept } })).status).toBe(406)
  })
})
