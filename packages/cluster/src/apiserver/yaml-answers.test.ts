import { request } from '@thv/testkit/cluster/http-request'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type EmbeddedApiServer, startApiServer } from './api-server.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'

describe('answers in YAML', () => {
  let server: EmbeddedApiServer
  beforeAll(async () => {
    server = await startApiServer()
    server.store.create('configmaps', 'default/a', {
      metadata: { name: 'a', namespace: 'default', creationTimestamp: '2026-01-01T00:00:00Z' },
      data: { yes: 'no', number: '1', lines: 'x\ny\n' },
    })
  })
  afterAll(() => server.close())
  const get = (path: string, accept: string) =>
    request(`${server.url}${path}`, { caPem: server.caPem, headers: { authorization: `Bearer ${server.adminToken}`, accept } })

  it('have sorted members, and quotes where a text could be taken for something else', async () => {
    const { status, text } = await get(`${MAPS}/a`, 'application/yaml')
    const revision = server.store.get('configmaps', 'default/a')?.revision
    expect([status, text]).toEqual([
      200,
      `apiVersion: v1
data:
  lines: |
    x
    y
  number: "1"
  "yes": "no"
kind: ConfigMap
metadata:
  creationTimestamp: "2026-01-01T00:00:00Z"
  name: a
  namespace: default
  resourceVersion: "${revision}"
`,
    ])
  })

  it('are given for lists and errors too, when nothing else comes first', async () => {
    expect((await get(MAPS, 'text/html,application/yaml')).text).toContain('kind: ConfigMapList\n')
    expect((await get(`${MAPS}/none`, 'application/yaml')).text).toContain('message: configmaps "none" not found\n')
    expect((await get(MAPS, 'application/json,application/yaml')).text).toMatch(/^\{/)
  })

  it('are refused for watches', async () => {
    expect((await get(`${MAPS}?watch=true&timeoutSeconds=1`, 'application/yaml')).status).toBe(406)
  })
})
