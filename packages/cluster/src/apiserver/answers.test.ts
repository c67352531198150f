import { type Answer, type RequestOptions, request } from '@thv/testkit/cluster/http-request'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type EmbeddedApiServer, startApiServer } from './api-server.ts'
import { widgetDefinition } from './parity/custom-rows.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const WIDGETS = '/apis/parity.example.com/v1/namespaces/default/widgets'

/** Cases that the table of parity cannot hold: the real server answers them in a form of its own, or only after a while. */
describe('answers', () => {
  const errors: unknown[] = []
  let server: EmbeddedApiServer

  beforeAll(async () => {
    server = await startApiServer({ onError: (error) => errors.push(error) })
  })
  afterAll(async () => {
    await server.close()
    expect(errors).toEqual([])
  })

  function call(path: string, options: RequestOptions = {}): Promise<Answer> {
    const authorization = `Bearer ${server.adminToken}`
    return request(`${server.url}${path}`, { ...options, caPem: server.caPem, headers: { authorization, ...options.headers } })
  }

  const form = (as: string, version = 'v1') => `application/json;as=${as};v=${version};g=meta.k8s.io`

  it.each(['text/html', 'application/*', form('Nothing'), form('Table', 'v2'), 'application/json;as=Table'])(
    'are refused to who takes %s only, and nothing is done',
    async (accept) => {
      const answer = await call(MAPS, { method: 'POST', body: { metadata: { name: 'refused' } }, headers: { accept } })
      expect([answer.status, answer.json()['reason']]).toEqual([406, 'NotAcceptable'])
      expect((await call(`${MAPS}/refused`)).status).toBe(404)
    },
  )

  it.each([
    '',
    '*/*',
    'application/json;q=0.5',
    'text/html, */*',
    'application/vnd.kubernetes.protobuf',
    `${form('Nothing')},application/json`,
  ])('are JSON for who sends Accept: %s', async (accept) => {
    const answer = await call(MAPS, { headers: { accept } })
    expect([answer.status, answer.json()['kind']]).toEqual([200, 'ConfigMapList'])
  })

  it('are refused in the form of a list for one object, and the other way round', async () => {
    await call(MAPS, { method: 'POST', body: { metadata: { name: 'one' } } })
    const list = await call(MAPS, { headers: { accept: form('PartialObjectMetadata') } })
    expect([list.status, list.json()['message']]).toEqual([
      406,
      'you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)',
    ])
    const one = await call(`${MAPS}/one`, { headers: { accept: form('PartialObjectMetadataList') } })
    expect([one.status, one.json()['message']]).toEqual([
      406,
      'you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)',
    ])
  })

  it('refuse a new object of a kind that is about to go', async () => {
    const widget = (name: string, metadata = {}) => ({
      method: 'POST',
      body: { apiVersion: 'parity.example.com/v1', kind: 'Widget', metadata: { name, ...metadata }, spec: { size: 3 } },
    })
    await call(CRDS, { method: 'POST', body: widgetDefinition })
    expect((await call(WIDGETS, widget('held', { finalizers: ['example.com/hold'] }))).status).toBe(201)
    await call(`${CRDS}/widgets.parity.example.com`, { method: 'DELETE' })
    const answer = await call(WIDGETS, widget('late'))
    expect([answer.status, answer.json()['reason'], answer.json()['message']]).toEqual([
      403,
      'Forbidden',
      'widgets.parity.example.com "late" is forbidden: create not allowed while custom resource definition is terminating',
    ])
  })

  it('an apply with very many mistakes is refused with the first of them', async () => {
    const wrong = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'many', finalizers: Array.from({ length: 90_000 }, () => 1) } }
    const headers = { 'content-type': 'application/apply-patch+yaml' }
    const answer = await call(`${MAPS}/many?fieldManager=me`, { method: 'PATCH', headers, body: JSON.stringify(wrong) })
    const message = String(answer.json()['message'])
    expect(answer.status).toBe(500)
    expect(message).toContain('.metadata.finalizers[=1]: expected string')
    expect(message.split('\n').length).toBeLessThan(110)
  })
})
