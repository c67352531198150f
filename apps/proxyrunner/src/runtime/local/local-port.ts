import { connect, createServer } from 'node:net'
import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'

/** Where local servers listen. Never all addresses of the machine: they would be open to the network. */
export const LOOPBACK = '127.0.0.1'

/** Somebody else may take the port before it is used; the caller must handle that. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, LOOPBACK, () => {
      const address = server.address()
      const port = typeof address === 'object' && address !== null ? address.port : 0
      server.close(() => resolve(port))
    })
  })
}

const CONNECT_LIMIT_MS = 2_000

/** Whether somebody accepts connections there. */
export function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: LOOPBACK, port })
    const settle = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.setTimeout(CONNECT_LIMIT_MS, () => settle(false))
    socket.once('connect', () => settle(true))
    socket.once('error', () => settle(false))
  })
}

/** Resolves when somebody listens; rejects when the signal aborts. There is no other limit: the caller knows for what it waits. */
export async function waitForListener(port: number, signal: AbortSignal, clock: Clock): Promise<void> {
  const backoff = createBackoff({ baseMs: 25, maxMs: 1_000 })
  while (!(await isListening(port))) await clock.sleep(backoff.next(), signal)
  signal.throwIfAborted()
}
