import { request as httpsRequest } from 'node:https'
import { afterEach, expect, it } from 'vitest'
import { type EmbeddedApiServer, startApiServer } from './api-server.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const servers: EmbeddedApiServer[] = []

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

/** Resolves with the first event of the watch; `ready` when the server has it. */
function watchOnce(server: EmbeddedApiServer): { ready: Promise<void>; event: Promise<string> } {
  const ready = Promise.withResolvers<void>()
  const event = Promise.withResolvers<string>()
  const headers = { authorization: `Bearer ${server.adminToken}` }
  const url = `${server.url}${MAPS}?watch=true&resourceVersion=${server.store.revision}`
  const call = httpsRequest(url, { ca: server.caPem, headers, agent: false }, (response) => {
    ready.resolve()
    response.once('data', (chunk: Buffer) => {
      event.resolve(chunk.toString())
      call.destroy()
    })
  })
  call.on('error', event.reject)
  call.end()
  return { ready: ready.promise, event: event.promise }
}

it('serialises an event once for all watchers of a version', async () => {
  const server = await startApiServer()
  servers.push(server)
  const before = server.store.revision
  const watches = Array.from({ length: 20 }, () => watchOnce(server))
  await Promise.all(watches.map(({ ready }) => ready))
  server.store.create('configmaps', 'default/x', { metadata: { name: 'x', namespace: 'default' } })
  const events = await Promise.all(watches.map(({ event }) => event))
  expect(new Set(events).size).toBe(1)
  expect(JSON.parse(events[0] ?? '')).toMatchObject({ type: 'ADDED', object: { kind: 'ConfigMap', metadata: { name: 'x' } } })
  expect(server.store.log('configmaps').next(before)?.encoded.size).toBe(1)
})
