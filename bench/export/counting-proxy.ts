import { once } from 'node:events'
import { createServer, Agent as HttpsAgent, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { createCertificate } from '@thv/testkit/cluster/identity/certificate'

/** An HTTPS proxy before the API server that counts what a program asks. Leases are left out: they tell nothing of the work. */
export interface CountingProxy extends AsyncDisposable {
  readonly url: string
  readonly caPem: string
  /** `GET /path?query`, since the last call. */
  taken(): readonly string[]
}

export async function startCountingProxy(target: { readonly url: string; readonly caPem: string }): Promise<CountingProxy> {
  const certificate = createCertificate({ commonName: 'counting proxy', hosts: ['127.0.0.1', 'localhost'], ca: true })
  // No limit of sockets: an operator of six namespaces keeps more than 128 watches open.
  const agent = new HttpsAgent({ keepAlive: true })
  let seen: string[] = []
  const listener = createServer({ cert: certificate.certPem, key: certificate.keyPem }, (incoming, response) => {
    const { method = 'GET', url = '/' } = incoming
    if (!url.includes('/leases')) seen.push(`${method} ${url}`)
    const { host: _, connection: __, ...headers } = incoming.headers
    const outgoing = request(`${target.url}${url}`, { method, ca: target.caPem, agent, headers }, (answer) => {
      const { 'transfer-encoding': ___, connection: ____, 'keep-alive': _____, ...passed } = answer.headers
      response.writeHead(answer.statusCode ?? 502, passed)
      response.flushHeaders()
      answer.pipe(response)
      answer.on('error', () => response.destroy())
    })
    outgoing.on('error', () => response.destroy())
    response.on('close', () => outgoing.destroy())
    incoming.pipe(outgoing)
  })
  listener.requestTimeout = 0 // watches
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  return {
    url: `https://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    caPem: certificate.certPem,
    taken() {
      const all = seen
      seen = []
      return all
    },
    async [Symbol.asyncDispose]() {
      const closed = once(listener, 'close')
      listener.close()
      listener.closeAllConnections()
      await closed
      agent.destroy()
    },
  }
}

/** A question that is asked once and stays open is no work per change. */
export function isWatch(line: string): boolean {
  return line.includes('watch=')
}

export function isWrite(line: string): boolean {
  return !line.startsWith('GET ') && !line.includes('/events')
}
