import { createServer, type RequestListener } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterEach, expect, it } from 'vitest'
import { plainCall } from './plain-call.ts'

const open: (() => Promise<void>)[] = []
const never = new AbortController().signal

afterEach(async () => {
  await Promise.all(open.splice(0).map((close) => close()))
})

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push(
    () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/path`
}

it('sends method, headers and body, and gives status and headers', async () => {
  let seen: unknown
  const url = await serve(async (request, response) => {
    seen = { method: request.method, url: request.url, said: request.headers['x-said'], body: await text(request) }
    response.writeHead(202, { 'x-answer': 'yes' }).end('something')
  })
  const answer = await plainCall(url, { method: 'POST', headers: { 'x-said': 'this' }, body: 'körper', signal: never, until: 'end' })
  expect(seen).toEqual({ method: 'POST', url: '/path', said: 'this', body: 'körper' })
  expect(answer).toMatchObject({ status: 202, headers: { 'x-answer': 'yes' } })
})

it('does not wait for the end of a stream when the head is enough, and closes it', async () => {
  let closed: (() => void) | undefined
  const gone = new Promise<void>((resolve) => {
    closed = resolve
  })
  const url = await serve((_, response) => {
    response.once('close', () => closed?.())
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': open\n\n')
  })
  expect(await plainCall(url, { signal: never, until: 'head' })).toMatchObject({ status: 200 })
  await gone
})

it('rejects when the port is closed, when the signal fires, and when the answer breaks off', async () => {
  const url = await serve((request, response) => {
    if (request.method === 'DELETE') response.writeHead(200).write('half', () => response.destroy())
  })
  await expect(plainCall('http://127.0.0.1:1/', { signal: never, until: 'end' })).rejects.toThrow('ECONNREFUSED')
  const stop = new AbortController()
  const waiting = plainCall(url, { signal: stop.signal, until: 'end' })
  stop.abort()
  await expect(waiting).rejects.toThrow('aborted')
  await expect(plainCall(url, { method: 'DELETE', signal: never, until: 'end' })).rejects.toThrow()
})
