import { KINDS } from '@thv/resources/kinds/kinds'
import { crdOf } from '@thv/resources/schema/crd'
import { fixturesOf } from '@thv/resources/testing/fixtures'
import { type Answer, request } from '@thv/testkit/cluster/http-request'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type EmbeddedApiServer, startApiServer } from './api-server.ts'

describe('our own kinds on the embedded API server', () => {
  const errors: unknown[] = []
  let server: EmbeddedApiServer

  const send = (method: string, path: string, body?: unknown): Promise<Answer> =>
    request(`${server.url}${path}`, { method, body, caPem: server.caPem, headers: { authorization: `Bearer ${server.adminToken}` } })

  beforeAll(async () => {
    server = await startApiServer({ onError: (error) => errors.push(error) })
  })
  afterAll(async () => {
    await server.close()
    expect(errors).toEqual([])
  })

  it.each(KINDS)('$kind: the definition is established at once', async (definition) => {
    const made = await send('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', crdOf(definition))
    expect(made.status, made.text).toBe(201)
    const { status } = made.json<{ status: { conditions: { type: string; status: string }[] } }>()
    expect(status.conditions.map((condition) => [condition.type, condition.status])).toEqual([
      ['NamesAccepted', 'True'],
      ['Established', 'True'],
    ])
  })

  it.each(KINDS.map(({ plural }) => plural))('takes all manifests of %s, under both versions', async (plural) => {
    for (const { manifest } of fixturesOf(plural)) {
      const { name, namespace = 'default' } = manifest.metadata
      await send('POST', '/api/v1/namespaces', { metadata: { name: namespace } })
      const made = await send('POST', `/apis/${manifest.apiVersion}/namespaces/${namespace}/${plural}?fieldValidation=Strict`, manifest)
      expect(made.status, made.text).toBe(201)
      const [group] = manifest.apiVersion.split('/')
      for (const version of ['v1alpha1', 'v1beta1']) {
        const found = await send('GET', `/apis/${group}/${version}/namespaces/${namespace}/${plural}/${name}`)
        expect(found.json()).toMatchObject({ apiVersion: `${group}/${version}`, kind: manifest.kind })
      }
    }
  })
})
