import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Daemon, within } from './daemon.ts'

export interface PortStart {
  readonly start: (port: number) => Promise<Daemon>
  /** True when the program that answers is ready *and is ours*: until ours fails to bind, a stranger may answer. Throws while unreachable. */
  readonly ready: (port: number) => Promise<boolean>
  readonly limitMs: number
  /** Loopback when absent. */
  readonly address?: string
  /** A restart must keep its port; otherwise a free one is chosen. */
  readonly port?: number | undefined
}

const attempts = 6
const pollMs = 50

/** Starts a server program. Between finding a port free and binding it anybody may take it, so a failed bind is tried again. */
export async function startOnPort({ start, ready, limitMs, address, port: fixed }: PortStart): Promise<{ daemon: Daemon; port: number }> {
  for (let attempt = 1; ; attempt++) {
    const port = fixed ?? (await freePort(address))
    const daemon = await start(port)
    const problem = await waitUntilReady(daemon, () => ready(port), limitMs)
    if (!problem) return { daemon, port }
    const log = daemon.logTail()
    await daemon.kill()
    if (!/address already in use/i.test(log) || attempt === attempts) throw new Error(`${problem}; its last lines:\n${log}`)
    await sleep(attempt * 200 * (0.5 + Math.random()))
  }
}

/** Undefined when ready, else what is wrong. */
async function waitUntilReady(daemon: Daemon, ready: () => Promise<boolean>, limitMs: number): Promise<string | undefined> {
  const deadline = performance.now() + limitMs
  let last = 'no answer yet'
  while (performance.now() < deadline) {
    if (!daemon.running) return await daemon.ended
    try {
      if (await ready()) return undefined
      last = 'it answers, but is not ready'
    } catch (error) {
      last = (error as Error).message
    }
    await within(pollMs, daemon.ended)
  }
  return `${daemon.name} was not ready within ${limitMs} ms (${last})`
}

/**
 * A free port below the range from which the system takes the ports of outgoing connections: otherwise one of those could
 * occupy a server's port between kill and restart. Also below the node ports of a cluster.
 */
export async function freePort(address = '127.0.0.1'): Promise<number> {
  for (let attempt = 0; attempt < 50; attempt++) {
    const port = 20_000 + Math.floor(Math.random() * 10_000)
    if (await canBind(port, address)) return port
  }
  throw new Error(`no free port between 20000 and 30000 on ${address}`)
}

async function canBind(port: number, address: string): Promise<boolean> {
  const server = createServer()
  try {
    server.listen(port, address)
    await once(server, 'listening')
    return (server.address() as AddressInfo).port === port
  } catch (error) {
    if (['EADDRINUSE', 'EACCES'].includes((error as NodeJS.ErrnoException).code ?? '')) return false
    throw error
  } finally {
    server.close()
  }
}
