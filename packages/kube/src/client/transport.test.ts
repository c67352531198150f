import { createSecureServer as createH2Server } from 'node:http2'
import { syncBuiltinESMExports } from 'node:module'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import tls from 'node:tls'
import { createCertificate } from '@thv/testkit/cluster/identity/certificate'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { configMaps } from '../objects/resource-types.ts'
import { eventually, type LoopbackServer, sendJson, startLoopback } from '../testing/loopback-server.ts'
import { createKubeClient, type KubeClient } from './client.ts'
import { bearerToken, noAuth, type TlsSettings } from './connection.ts'

const key = { namespace: 'team', name: 'web' }
const ours = certificate()
const other = certificate()

function certificate(host = '127.0.0.1', commonName = 'test'): { cert: string; key: string } {
  const { certPem, keyPem } = createCertificate({ commonName, hosts: [host], ca: true })
  return { cert: certPem, key: keyPem }
}

describe('TLS', () => {
  const clients: KubeClient[] = []
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()))
    syncBuiltinESMExports() // after a spy
  })
  const start = (tls: { cert: string; key: string; ca?: string } = ours) =>
    startLoopback((_request, response) => sendJson(response, 200, { metadata: { name: 'answer' } }), tls)
  const get = (server: LoopbackServer, tls: TlsSettings) => {
    const client = createKubeClient({ server: server.url, tls, auth: bearerToken('s3cret') }, { retry: { baseMs: 1, maxMs: 1 } })
    clients.push(client)
    return client.get(configMaps, key)
  }

  it('trusts the CA it was given, and no other', async () => {
    await using server = await start()
    expect(await get(server, { ca: ours.cert })).toMatchObject({ metadata: { name: 'answer' } })
    await expect(get(server, { ca: other.cert })).rejects.toMatchObject({ code: 'kube_unreachable' })
    await expect(get(server, {})).rejects.toMatchObject({ code: 'kube_unreachable', details: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' } })
    // Refused certificates are not tried again, and no token reaches such a server.
    expect(server.requests).toHaveLength(1)
  })

  it('reads its certificates once for all connections', async () => {
    await using server = await start()
    const client = createKubeClient({ server: server.url, tls: { ca: ours.cert }, auth: noAuth })
    clients.push(client)
    // Node calls it too, for a connection that has none.
    using made = vi.spyOn(tls, 'createSecureContext')
    syncBuiltinESMExports()
    await Promise.all(Array.from({ length: 5 }, () => client.get(configMaps, key)))
    expect(server.requests).toHaveLength(5)
    expect(made).toHaveBeenCalledTimes(1)
  })

  it('says that the server cannot be reached with certificates that are none', async () => {
    await using server = await start()
    for (const settings of [{ ca: ours.cert, cert: 'none', key: ours.key }, { ca: 'none' }])
      await expect(get(server, settings)).rejects.toMatchObject({ code: 'kube_unreachable' })
  })

  it('insecureSkipVerify trusts anybody', async () => {
    await using server = await start()
    expect(await get(server, { insecureSkipVerify: true })).toMatchObject({ metadata: { name: 'answer' } })
  })

  it('serverName is what the certificate is checked against', async () => {
    const named = certificate('api.internal')
    await using server = await start(named)
    expect(await get(server, { ca: named.cert, serverName: 'api.internal' })).toMatchObject({ metadata: { name: 'answer' } })
    await expect(get(server, { ca: named.cert })).rejects.toMatchObject({ details: { code: 'ERR_TLS_CERT_ALTNAME_INVALID' } })
  })

  it('shows its client certificate', async () => {
    const me = certificate('me.test', 'me')
    await using server = await start({ ...ours, ca: me.cert })
    expect(await get(server, { ca: ours.cert, cert: me.cert, key: me.key })).toMatchObject({ metadata: { name: 'answer' } })
    await expect(get(server, { ca: ours.cert })).rejects.toMatchObject({ code: 'kube_unreachable' })
  })

  it('goes on with the client certificate before one that is none, when that is put right', async () => {
    const me = certificate('me.test', 'me')
    await using server = await start({ ...ours, ca: me.cert })
    let shown = me
    const auth = { ...noAuth, certificate: async () => shown }
    const client = createKubeClient({ server: server.url, tls: { ca: ours.cert }, auth }, { retry: { baseMs: 1, maxMs: 1 } })
    clients.push(client)
    expect(await client.get(configMaps, key)).toMatchObject({ metadata: { name: 'answer' } })
    shown = { cert: 'half of a file', key: me.key }
    await expect(client.get(configMaps, key)).rejects.toMatchObject({ code: 'kube_unreachable' })
    shown = me
    expect(await client.get(configMaps, key)).toMatchObject({ metadata: { name: 'answer' } })
  })

  it('uses HTTP/1.1 for calls and watches, also with a server that would rather speak h2', async () => {
    const versions: string[] = []
    const server = createH2Server({ ...ours, allowHTTP1: true }, (request, response) => {
      versions.push(request.httpVersion)
      response.end(request.url.includes('watch=true') ? '' : '{}')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const client = createKubeClient({ server: `https://127.0.0.1:${port}`, tls: { ca: ours.cert }, auth: noAuth })
    await client.get(configMaps, key)
    for await (const event of client.watch(configMaps, { resourceVersion: '1' })) throw new Error(`unexpected ${event.type}`)
    expect(versions).toEqual(['1.1', '1.1'])
    await client.close()
    await new Promise((resolve) => server.close(resolve))
  })

  it('an abort does not wait for a handshake that never comes', async () => {
    const sockets: Socket[] = []
    const mute = createServer((socket) => {
      sockets.push(socket)
      socket.on('error', () => {})
    })
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
    const { port } = mute.address() as AddressInfo
    const client = createKubeClient({ server: `https://127.0.0.1:${port}`, tls: {}, auth: noAuth })
    const controller = new AbortController()
    const call = client.get(configMaps, key, { signal: controller.signal })
    await eventually(() => sockets.length === 1)
    controller.abort(new Error('enough'))
    const winner = await Promise.race([
      call.catch((error: Error) => error.message),
      new Promise((resolve) => setTimeout(resolve, 8_000, 'waited').unref()),
    ])
    expect(winner).toBe('enough')
    await client.close()
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => mute.close(resolve))
  })
})
