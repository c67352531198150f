import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { isIP } from 'node:net'
import { bitString, boolean, context, derTime, integer, octetString, oid, sequence, set, utf8String } from './der.ts'

/** A certificate with its private key, both PEM: EC P-256, SHA-256. Node can read certificates but not make them. */
export interface Certificate {
  readonly certPem: string
  readonly keyPem: string
}

export interface CertificateOptions {
  readonly commonName: string
  /** Kubernetes reads these as the groups of a client certificate's user. */
  readonly organizations?: readonly string[]
  /** DNS names and IP addresses a server certificate is good for. */
  readonly hosts?: readonly string[]
  /** May sign others. */
  readonly ca?: boolean
  /** Self-signed when absent. */
  readonly issuer?: Certificate
  readonly notBefore?: Date
  readonly notAfter?: Date
}

const hour = 3_600_000

export function createCertificate(options: CertificateOptions): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const issuer = options.issuer ? readIssuer(options.issuer) : { name: distinguishedName(options), key: privateKey, publicKey }
  const { notBefore = new Date(Date.now() - hour), notAfter = new Date(Date.now() + 10 * 24 * hour) } = options
  const algorithm = sequence(oid('1.2.840.10045.4.3.2')) // ecdsa-with-SHA256
  // RFC 5280 §4.1: TBSCertificate, version 3
  const content = sequence(
    context(0, integer(2)),
    integer(serialNumber()),
    algorithm,
    issuer.name,
    sequence(derTime(notBefore), derTime(notAfter)),
    distinguishedName(options),
    spki(publicKey),
    context(3, sequence(...extensions(options, publicKey, issuer.publicKey))),
  )
  const signature = sign('sha256', content, issuer.key)
  const der = sequence(content, algorithm, bitString(signature))
  return { certPem: pem('CERTIFICATE', der), keyPem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
}

function distinguishedName({ commonName, organizations = [] }: Pick<CertificateOptions, 'commonName' | 'organizations'>): Buffer {
  const attribute = (id: string, value: string) => set(sequence(oid(id), utf8String(value)))
  return sequence(...organizations.map((name) => attribute('2.5.4.10', name)), attribute('2.5.4.3', commonName))
}

function extensions(options: CertificateOptions, subject: KeyObject, issuer: KeyObject): Buffer[] {
  const { ca = false, hosts = [] } = options
  const extension = (id: string, critical: boolean, value: Buffer) =>
    critical ? sequence(oid(id), boolean(true), octetString(value)) : sequence(oid(id), octetString(value))
  // §4.2.1.3: all sign handshakes (bit 0), a CA signs certificates too (bit 5)
  const usage = ca ? bitString(Buffer.of(0x84), 2) : bitString(Buffer.of(0x80), 7)
  const list = [
    extension('2.5.29.19', true, ca ? sequence(boolean(true)) : sequence()),
    extension('2.5.29.15', true, usage),
    extension('2.5.29.14', false, octetString(keyId(subject))),
    extension('2.5.29.35', false, sequence(context(0, keyId(issuer), { primitive: true }))),
  ]
  if (!ca) list.push(extension('2.5.29.37', false, sequence(oid('1.3.6.1.5.5.7.3.1'), oid('1.3.6.1.5.5.7.3.2'))))
  if (hosts.length > 0) list.push(extension('2.5.29.17', false, sequence(...hosts.map(generalName))))
  return list
}

/** §4.2.1.6: iPAddress [7] holds the bytes of the address, dNSName [2] its text. */
function generalName(host: string): Buffer {
  if (isIP(host) === 4) return context(7, Buffer.from(host.split('.').map(Number)), { primitive: true })
  if (isIP(host) === 6) return context(7, ipv6Bytes(host), { primitive: true })
  return context(2, Buffer.from(host, 'ascii'), { primitive: true })
}

function ipv6Bytes(address: string): Buffer {
  const [head = '', tail] = address.split('::')
  const words = (text: string) => (text === '' ? [] : text.split(':').map((word) => Number.parseInt(word, 16)))
  const [front, back] = [words(head), words(tail ?? '')]
  const all = [...front, ...Array<number>(8 - front.length - back.length).fill(0), ...back]
  return Buffer.from(all.flatMap((word) => [word >> 8, word & 0xff]))
}

function readIssuer(issuer: Certificate): { name: Buffer; key: KeyObject; publicKey: KeyObject } {
  const publicKey = createPublicKey(issuer.certPem)
  return { name: subjectOf(issuer.certPem), key: createPrivateKey(issuer.keyPem), publicKey }
}

/** The subject's own bytes: the issuer field must repeat them exactly. Reads only what createCertificate writes. */
function subjectOf(certPem: string): Buffer {
  const der = Buffer.from(certPem.replace(/-----[^-]+-----|\s/g, ''), 'base64')
  let rest = inside(inside(der))
  for (let skipped = 0; skipped < 5; skipped++) rest = rest.subarray(elementLength(rest)) // version … validity
  return rest.subarray(0, elementLength(rest))
}

function inside(der: Buffer): Buffer {
  const total = elementLength(der)
  return der.subarray(headerLength(der), total)
}

function headerLength(der: Buffer): number {
  const first = der.readUInt8(1)
  return first < 0x80 ? 2 : 2 + (first & 0x7f)
}

function elementLength(der: Buffer): number {
  const first = der.readUInt8(1)
  return headerLength(der) + (first < 0x80 ? first : der.readUIntBE(2, first & 0x7f))
}

function serialNumber(): Buffer {
  const bytes = randomBytes(16)
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40 // positive, and no leading zero
  return bytes
}

function keyId(key: KeyObject): Buffer {
  return createHash('sha1').update(spki(key)).digest()
}

function spki(key: KeyObject): Buffer {
  return key.export({ type: 'spki', format: 'der' })
}

function pem(label: string, der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n')
}
