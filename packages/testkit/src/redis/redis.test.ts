import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, it } from 'vitest'
import { send } from './redis.ts'

it.each([
  ['at once', ['+OK\r\n+OK\r\n']],
  ['one after the other', ['+OK\r\n', '+OK\r\n']],
  ['in pieces', ['+O', 'K\r\n', '+OK\r\n']],
])('a command with a password gets its own reply when the replies come %s', async (_, chunks) => {
  const server = createServer(async (socket) => {
    socket.setNoDelay(true).on('error', () => socket.destroy())
    await once(socket, 'data')
    for (const chunk of chunks) {
      socket.write(chunk)
      await new Promise((resolve) => setTimeout(resolve, 20)) // most likely arrives on its own; the reply is the same otherwise
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    expect(await send({ port: (server.address() as AddressInfo).port, password: 'p' }, ['FLUSHALL'])).toBe('+OK\r\n')
  } finally {
    server.close()
  }
})
