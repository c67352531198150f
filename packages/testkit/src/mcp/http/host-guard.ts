import type { IncomingHttpHeaders } from 'node:http'

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Guards a server on loopback against DNS rebinding: the names a browser sends must be loopback names. No Origin is fine. */
export function isLocal({ host, origin }: IncomingHttpHeaders): boolean {
  return isLoopback(`http://${host}`) && (origin === undefined || isLoopback(origin))
}

function isLoopback(url: string): boolean {
  return URL.canParse(url) && LOOPBACK.has(new URL(url).hostname)
}
