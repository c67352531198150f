import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer, type TLSSocket, type TlsOptions } from 'node:tls'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Certificate, createCertificate } from './certificate.ts'
import { derTime, integer, octetString, oid } from './der.ts'

const day = 86_400_000
const ca = createCertificate({ commonName: 'test authority', ca: true })

describe('createCertificate', () => {
  test('a client that trusts the authority talks to a server with a certificate of it', async () => {
    const server = createCertificate({ commonName: 'server', hosts: ['127.0.0.1', 'localhost'], issuer: ca })
    expect(await handshake(server, { ca: ca.certPem })).toMatchObject({ authorized: true })
  })

  test('a self-signed server certificate is trusted as its own authority', async () => {
    const server = createCertificate({ commonName: 'alone', hosts: ['127.0.0.1'], ca: true })
    expect(await handshake(server, { ca: server.certPem })).toMatchObject({ authorized: true })
  })

  test.each([
    [
      'another authority',
      { hosts: ['127.0.0.1'], issuer: createCertificate({ commonName: 'test authority', ca: true }) },
      /unable to verify/,
    ],
    ['another host', { hosts: ['10.0.0.1', 'localhost'], issuer: ca }, /127\.0\.0\.1/],
    [
      'an issuer that is no authority',
      { hosts: ['127.0.0.1'], issuer: createCertificate({ commonName: 'leaf', issuer: ca }) },
      /issuer|CA/i,
    ],
    ['its end passed', { hosts: ['127.0.0.1'], issuer: ca, notAfter: new Date(Date.now() - 1000) }, /expired/],
    ['its begin to come', { hosts: ['127.0.0.1'], issuer: ca, notBefore: new Date(Date.now() + day) }, /not yet valid/],
  ])('refused: %s', async (_, options, message) => {
    const server = createCertificate({ commonName: 'server', ...options })
    await expect(handshake(server, { ca: ca.certPem })).rejects.toThrow(message)
  })

  test('a client certificate carries user and groups', async () => {
    const server = createCertificate({ commonName: 'server', hosts: ['127.0.0.1'], issuer: ca })
    const client = createCertificate({ commonName: 'alice', organizations: ['dev', 'système'], issuer: ca })
    const seen = await handshake(server, { ca: ca.certPem, cert: client.certPem, key: client.keyPem })
    expect(seen.peer).toEqual({ CN: 'alice', O: ['dev', 'système'] })
  })

  test('node reads back what was asked for', () => {
    const hosts = ['localhost', '127.0.0.1', '::1', '2001:db8::8:800:200c:417a', 'a.example']
    const notAfter = new Date('2060-01-02T03:04:05Z')
    const made = new X509Certificate(createCertificate({ commonName: 'x', hosts, issuer: ca, notAfter }).certPem)
    expect(made.subjectAltName).toBe(
      'DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, IP Address:2001:DB8:0:0:8:800:200C:417A, DNS:a.example',
    )
    expect(made.validToDate).toEqual(notAfter)
    expect(made.ca).toBe(false)
    expect(made.checkIssued(new X509Certificate(ca.certPem))).toBe(true)
    expect(made.verify(createPublicKey(ca.certPem))).toBe(true)
  })

  test('any name survives, however long', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 300, unit: fc.constantFrom('a', 'é', '漢', ' ', '-') }), (commonName) => {
        const issuer = createCertificate({ commonName, ca: true })
        const leaf = new X509Certificate(createCertificate({ commonName: 'leaf', issuer }).certPem)
        expect(leaf.verify(createPublicKey(issuer.certPem))).toBe(true)
        expect(leaf.issuer).toBe(new X509Certificate(issuer.certPem).subject)
      }),
      { numRuns: 30 },
    )
  })

  test('the key belongs to the certificate', () => {
    const made = createCertificate({ commonName: 'x' })
    expect(new X509Certificate(made.certPem).checkPrivateKey(createPrivateKey(made.keyPem))).toBe(true)
    expect(new X509Certificate(made.certPem).checkPrivateKey(createPrivateKey(ca.keyPem))).toBe(false)
  })
})

describe('DER', () => {
  test.each([
    ['an object identifier', oid('1.2.840.10045.4.3.2'), '06082a8648ce3d040302'],
    ['the last UTCTime', derTime(new Date('2049-12-31T23:59:59.999Z')), '170d3439313233313233353935395a'],
    ['the first GeneralizedTime', derTime(new Date('2050-01-01T00:00:00Z')), '180f32303530303130313030303030305a'],
    ['a length of two bytes', octetString(Buffer.alloc(200)).subarray(0, 3), '0481c8'],
    ['a length of three bytes', octetString(Buffer.alloc(70_000)).subarray(0, 5), '0483011170'],
  ])('%s', (_, bytes, hex) => expect(bytes.toString('hex')).toBe(hex))

  test('an integer that would need a second byte is refused', () => expect(() => integer(128)).toThrow(RangeError))
})

async function handshake(server: Certificate, client: { ca: string; cert?: string; key?: string }) {
  const options: TlsOptions = { cert: server.certPem, key: server.keyPem, requestCert: true, rejectUnauthorized: false, ca: ca.certPem }
  const listener = createServer(options)
  listener.on('tlsClientError', () => undefined)
  const peer = new Promise<unknown>((resolve) =>
    listener.once('secureConnection', (socket: TLSSocket) => {
      resolve({ ...socket.getPeerCertificate().subject })
      socket.on('error', () => undefined)
      socket.end()
    }),
  )
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const socket = connect({ host: '127.0.0.1', port: (listener.address() as AddressInfo).port, ...client })
  try {
    await once(socket, 'secureConnect')
    return { authorized: socket.authorized, peer: await peer }
  } finally {
    socket.destroy()
    listener.close()
  }
}
