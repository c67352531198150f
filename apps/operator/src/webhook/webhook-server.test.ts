import { once } from 'node:events'
import { type ClientRequest, request } from 'node:http'
import { createHttpServer, type HttpServer } from '@thv/http/server/server'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ADMISSION_PATH, admission } from './webhook-server.ts'

let server: HttpServer
let url: string
const open: ClientRequest[] = []

beforeAll(async () => {
  server = createHttpServer({ handler: admission(), onError: () => {} })
  url = (await server.listen({ host: '127.0.0.1', port: 0 })).url
})
afterAll(async () => {
  for (const each of open) each.destroy()
  await server[Symbol.asyncDispose]()
})

const post = async (body: string, path = ADMISSION_PATH) => await fetch(`${url}${path}`, { method: 'POST', body })
const REVIEW = JSON.stringify({ kind: 'AdmissionReview', request: { uid: 'u', object: null } })

it('answers reviews, and nothing else', async () => {
  expect(await (await post(REVIEW)).json()).toMatchObject({ kind: 'AdmissionReview', response: { uid: 'u', allowed: true } })
  expect((await post('{')).status).toBe(400)
  expect((await post(REVIEW, '/other')).status).toBe(404)
  expect((await fetch(`${url}${ADMISSION_PATH}`)).status).toBe(405)
  expect((await post(' '.repeat(5 << 20))).status).toBe(413)
})

it('takes eight reviews at a time', async () => {
  for (let count = 0; count < 8; count++) {
    const slow = request(`${url}${ADMISSION_PATH}`, { method: 'POST', headers: { 'content-length': '100' } })
    slow.on('error', () => {})
    slow.flushHeaders()
    await once(slow, 'socket')
    open.push(slow)
  }
  await expect.poll(() => server.stats.inFlight, { timeout: 30_000 }).toBe(8)
  expect((await post(REVIEW)).status).toBe(503)
  for (const each of open) each.destroy()
  await expect.poll(async () => (await post(REVIEW)).status, { timeout: 30_000 }).toBe(200)
})
