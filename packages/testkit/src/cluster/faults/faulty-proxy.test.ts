import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type FaultyProxy, startFaultyProxy } from './faulty-proxy.ts'

let target: Server
let targetSockets: Socket[]
let proxy: FaultyProxy
let clients: Socket[]

beforeEach(async () => {
  targetSockets = []
  clients = []
  target = createServer({ allowHalfOpen: true }, (socket) => {
    targetSockets.push(socket)
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => socket.write(chunk))
    socket.on('end', () => socket.end('bye'))
  })
  target.listen(0, '127.0.0.1')
  await once(target, 'listening')
  proxy = await startFaultyProxy(`http://127.0.0.1:${(target.address() as AddressInfo).port}`)
})

afterEach(async () => {
  for (const client of clients) client.destroy()
  await proxy.close()
  target.close()
})

describe('faulty proxy', () => {
  test('passes bytes and the end of each direction, and counts', async () => {
    const client = await open()
    client.write('hello')
    await client.until('hello')
    client.end()
    await client.until('hellobye')
    await vi.waitFor(() => expect(proxy.counts).toEqual({ accepted: 1, open: 0, dropped: 0, bytesUp: 5, bytesDown: 8 }), 10_000)
  })

  test('keeps the order and every byte of a large stream', async () => {
    const client = await open()
    const sent = Buffer.alloc(5 << 20, 0)
    for (let i = 0; i < sent.length; i += 4) sent.writeUInt32BE(i, i)
    client.write(sent)
    await vi.waitFor(() => expect(client.received().length).toBe(sent.length), 10_000)
    expect(Buffer.compare(client.received(), sent)).toBe(0)
  })

  test('blackhole: nothing passes, not even an end or a reset; heal delivers what was held', async () => {
    const client = await open()
    client.write('a')
    await client.until('a')
    proxy.blackhole()
    client.write('b')
    const late = await open()
    late.write('c')
    targetSockets[0]?.resetAndDestroy()
    await quiet()
    expect(client.received().toString()).toBe('a')
    expect(late.received().toString()).toBe('')
    expect(client.ended()).toBe(false)
    expect(proxy.counts).toMatchObject({ open: 2, bytesUp: 1 })
    proxy.heal()
    await late.until('c')
    await vi.waitFor(() => expect(client.ended()).toBe(true), 10_000)
  })

  test('blackhole of existing connections leaves new ones alone', async () => {
    const client = await open()
    proxy.blackhole({ existingOnly: true })
    client.write('lost')
    const late = await open()
    late.write('fine')
    await late.until('fine')
    expect(client.received().toString()).toBe('')
  })

  test('dropAll resets, and a new connection works', async () => {
    const client = await open()
    client.write('x')
    await client.until('x')
    expect(proxy.dropAll()).toBe(1)
    await vi.waitFor(() => expect(client.error()).toMatchObject({ code: 'ECONNRESET' }), 10_000)
    const next = await open()
    next.write('y')
    await next.until('y')
    expect(proxy.counts).toMatchObject({ accepted: 2, dropped: 1 })
  })

  test('latency delays each direction and keeps the order', async () => {
    const client = await open()
    proxy.setLatency(40)
    const begin = performance.now()
    for (const part of ['1', '2', '3']) client.write(part)
    await client.until('123')
    // Less than this is impossible; how much more it takes is up to the machine.
    expect(performance.now() - begin).toBeGreaterThanOrEqual(79)
  })

  test('an unreachable target resets the client', async () => {
    target.close()
    await once(target, 'close')
    const client = await open()
    await vi.waitFor(() => expect(client.error()).toMatchObject({ code: 'ECONNRESET' }), 10_000)
  })
})

async function open() {
  const socket = connect(proxy.port, '127.0.0.1')
  clients.push(socket)
  const chunks: Buffer[] = []
  let error: Error | undefined
  let ended = false
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.on('error', (cause) => {
    error = cause
  })
  socket.on('close', () => {
    ended = true
  })
  await once(socket, 'connect')
  const received = () => Buffer.concat(chunks)
  return {
    write: (data: string | Buffer) => socket.write(data),
    end: () => socket.end(),
    received,
    error: () => error,
    ended: () => ended,
    until: (text: string) => vi.waitFor(() => expect(received().toString()).toBe(text), 10_000),
  }
}

/** Long enough for a wrongly passed byte to arrive. A slow machine can only hide a failure here, never make one. */
function quiet(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 100))
}
