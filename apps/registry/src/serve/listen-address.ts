import { isIP } from 'node:net'
import { ThvError } from '@thv/kernel/errors'

export interface ListenOn {
  readonly host: string
  readonly port: number
}

/** `:8080`, `127.0.0.1:8080`, `[::1]:8080` or `localhost:8080`; `what` is the flag or variable that says it. Throws `usage`. */
export function listenAddress(what: string, text: string): ListenOn {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:]*)):(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  if (!match || port > 65_535) throw new ThvError('usage', `${what}: ${JSON.stringify(text)} is not HOST:PORT or :PORT`)
  const host = match[1] ?? match[2] ?? ''
  if (host === '') return { host: '0.0.0.0', port }
  if (host === 'localhost') return { host: '127.0.0.1', port }
  if (isIP(host) === 0)
    throw new ThvError('usage', `${what}: ${JSON.stringify(host)} is not an address of this machine; give its IP address`)
  return { host, port }
}

export function isLoopback(host: string): boolean {
  return host.startsWith('127.') || host === '::1'
}
