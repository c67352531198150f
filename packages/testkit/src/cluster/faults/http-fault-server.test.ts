import { once } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http'
import { createServer, type Server, request as send } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createCertificate } from '../identity/certificate.ts'
import { type Fault, type HttpFaultServer, startHttpFaultServer } from './http-fault-server.ts'

const certificate = createCertificate({ commonName: 'target', hosts: ['127.0.0.1'], ca: true })
const items = JSON.stringify({ items: 'x'.repeat(1000) })
let target: Server
let reached: string[]
let faults: HttpFaultServer

beforeAll(async () => {
  target = createServer({ cert: certificate.certPem, key: certificate.keyPem }, async (incoming, response) => {
    let body = ''
    for await (const chunk of incoming) body += chunk
    reached.push(`${incoming.method} ${incoming.url} ${incoming.headers['x-mark'] ?? ''} ${body}`)
    if (incoming.url === '/watch') {
      response.write('{"n":1}\n')
      setTimeout(() => response.end('{"n":2}\n'), 20)
    } else response.writeHead(201, { 'content-type': 'application/json', 'content-length': items.length, 'x-answer': 'yes' }).end(items)
  })
  target.listen(0, '127.0.0.1')
  await once(target, 'listening')
})
afterAll(() => {
  target.closeAllConnections()
  target.close()
})
beforeEach(async () => {
  reached = []
  faults = await startHttpFaultServer({ url: `https://127.0.0.1:${(target.address() as AddressInfo).port}`, caPem: certificate.certPem })
})
afterEach(() => faults.close())

describe('http fault server', () => {
  test('forwards method, path, headers and body, and the whole answer', async () => {
    const answer = await call('/a?b=c', { method: 'PATCH', body: 'data', headers: { 'x-mark': 'm' } })
    expect(reached).toEqual(['PATCH /a?b=c m data'])
    expect(answer).toMatchObject({ status: 201, body: items, complete: true, headers: { 'x-answer': 'yes' } })
    expect(faults.counts).toEqual({ requests: 1, forwarded: 1, faults: 0 })
    expect(faults.seen).toEqual([{ method: 'PATCH', url: '/a?b=c', status: 201 }])
  })

  test('forwards a body of unknown length with DELETE', async () => {
    await call('/a', { method: 'DELETE', body: 'chunked', headers: { 'transfer-encoding': 'chunked' } })
    expect(reached).toEqual(['DELETE /a  chunked'])
  })

  test('answers the next N matching requests and forwards the others', async () => {
    const fault: Fault = { kind: 'status', status: 429, retryAfter: '7' }
    const rule = faults.inject({ fault, times: 2, matches: ({ method, url }) => method === 'GET' && url.startsWith('/api') })
    const statuses: number[] = []
    for (const path of ['/other', '/api/1', '/api/2', '/api/3']) statuses.push((await call(path)).status)
    expect(statuses).toEqual([201, 429, 429, 201])
    expect(rule.applied).toBe(2)
    expect(faults.counts).toEqual({ requests: 4, forwarded: 2, faults: 2 })
    expect(faults.seen[1]).toEqual({ method: 'GET', url: '/api/1', status: 429, fault: 'status' })
  })

  test('429 carries Retry-After and a Status', async () => {
    faults.inject({ fault: { kind: 'status', status: 429, retryAfter: '7' } })
    const answer = await call('/')
    expect(answer.headers['retry-after']).toBe('7')
    expect(JSON.parse(answer.body)).toMatchObject({ kind: 'Status', status: 'Failure', code: 429, reason: 'TooManyRequests' })
    expect(reached).toEqual([])
  })

  test('a removed rule is not applied', async () => {
    faults.inject({ fault: { kind: 'status', status: 500 } }).remove()
    expect((await call('/')).status).toBe(201)
  })

  test('cut: a part of the body, then no proper end', async () => {
    faults.inject({ fault: { kind: 'cut', afterBytes: 100 } })
    const answer = await call('/')
    expect(answer).toMatchObject({ status: 201, body: items.slice(0, 100), complete: false })
  })

  test('cut in a stream of unknown length', async () => {
    faults.inject({ fault: { kind: 'cut', afterBytes: 11 } })
    expect(await call('/watch')).toMatchObject({ body: '{"n":1}\n{"n', complete: false })
  })

  test('garbage instead of the answer, and inside it', async () => {
    faults.inject({ fault: { kind: 'garbage' } })
    faults.inject({ fault: { kind: 'garbage', afterBytes: 8, bytes: '<html>\n' } })
    const instead = await call('/')
    expect(() => JSON.parse(instead.body)).toThrow(SyntaxError)
    expect(reached).toEqual([])
    expect(await call('/watch')).toMatchObject({ body: '{"n":1}\n<html>\n{"n":2}\n', complete: true })
  })

  test('reset: no answer, and the target never saw the request', async () => {
    faults.inject({ fault: { kind: 'reset' } })
    await expect(call('/')).rejects.toThrow(/reset|hang up/i)
    expect(reached).toEqual([])
    expect(faults.seen).toEqual([{ method: 'GET', url: '/', status: 0, fault: 'reset' }])
  })

  test('delay: forwarded later, other requests are not held up', async () => {
    faults.inject({ fault: { kind: 'delay', ms: 400 }, matches: ({ url }) => url === '/slow' })
    const order: string[] = []
    await Promise.all(['/slow', '/fast'].map((path) => call(path).then(() => order.push(path))))
    expect(order).toEqual(['/fast', '/slow'])
  })

  test('close ends delayed requests', async () => {
    faults.inject({ fault: { kind: 'delay', ms: 60_000 } })
    const pending = call('/')
    const outcome = expect(pending).rejects.toThrow()
    while (faults.counts.requests === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    await faults.close()
    await outcome
  })
})

interface Call {
  readonly method?: string
  readonly body?: string
  readonly headers?: Record<string, string>
}

function call(path: string, { method = 'GET', body, headers = {} }: Call = {}) {
  return new Promise<{ status: number; headers: IncomingHttpHeaders; body: string; complete: boolean }>((resolve, reject) => {
    const outgoing = send(`${faults.url}${path}`, { method, ca: faults.caPem, agent: false, headers }, (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (chunk) => {
        text += chunk
      })
      const settle = () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: text, complete: answer.complete })
      answer.on('error', settle)
      answer.on('end', settle)
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}
