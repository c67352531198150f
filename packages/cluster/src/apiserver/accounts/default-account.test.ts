import { request } from '@thv/testkit/cluster/http-request'
import { expect, it } from 'vitest'
import { type EmbeddedApiServer, startApiServer } from '../api-server.ts'

const create = ({ url, caPem, adminToken }: EmbeddedApiServer, path: string, body: object) =>
  request(`${url}/api/v1/namespaces${path}`, { method: 'POST', body, caPem, headers: { authorization: `Bearer ${adminToken}` } })

it('a pod waits for the default account of its new namespace', async () => {
  await using server = await startApiServer()
  const send = (path: string, body: object) => create(server, path, body)
  await send('', { metadata: { name: 'fresh' } })
  const pod = (name: string) => ({ metadata: { name }, spec: { containers: [{ name: 'c', image: 'i:1' }] } })
  const waiting = [send('/fresh/pods', pod('a')), send('/fresh/pods', pod('b'))]
  await send('/fresh/serviceaccounts', { metadata: { name: 'other' } })
  await send('/fresh/serviceaccounts', { metadata: { name: 'default' } })
  for (const { status } of await Promise.all(waiting)) expect(status).toBe(201)
})

it('it is refused when that does not come', async () => {
  await using server = await startApiServer()
  const body = { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'i:1' }] } }
  const { status, text } = await create(server, '/default/pods', body)
  expect(status).toBe(403)
  expect(text).toContain('error looking up service account default/default: serviceaccount \\"default\\" not found')
})
