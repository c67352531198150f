import { createCertificate } from '@thv/testkit/cluster/identity/certificate'
import { describe, expect, it } from 'vitest'
import { isHttpError } from '../http-errors.ts'
import { parseCaBundle, secureContextOf } from './ca-bundle.ts'

const first = createCertificate({ commonName: 'first', ca: true })
const second = createCertificate({ commonName: 'second', ca: true })
const old = createCertificate({ commonName: 'old', ca: true, notBefore: new Date(0), notAfter: new Date(86_400_000) })
const name = 'team/corp-ca'

function failure(pem: string): string {
  try {
    parseCaBundle(pem, { name })
  } catch (error) {
    if (isHttpError(error, 'ca_bundle_invalid')) return error.message
    throw error
  }
  throw new Error('was taken')
}

describe('parseCaBundle', () => {
  it('reads every certificate, and ignores what stands between', () => {
    const bundle = parseCaBundle(`# corporate root\n${first.certPem}\r\nSubject: second\n${second.certPem}`, { name })
    expect(bundle.certificates.map((pem) => pem.trim())).toEqual([first.certPem.trim(), second.certPem.trim()])
    expect(bundle.expired).toEqual([])
  })

  it('gives the same id to the same certificates', () => {
    const bundle = parseCaBundle(first.certPem + second.certPem, { name })
    expect(parseCaBundle(`x\n${first.certPem.replaceAll('\n', '\r\n')}\n\n${second.certPem}`, { name: 'other' }).id).toBe(bundle.id)
    expect(parseCaBundle(first.certPem, { name }).id).not.toBe(bundle.id)
  })

  it('names what has run out', () => {
    expect(parseCaBundle(old.certPem + first.certPem, { name }).expired).toEqual(['CN=old'])
    expect(parseCaBundle(old.certPem, { name, now: 0 }).expired).toEqual([])
  })

  it.each([
    ['nothing', '', 'CA bundle team/corp-ca: holds no certificate'],
    ['text', 'hello', 'holds no certificate'],
    ['DER in text', 'MIIBIjANBgkq', 'holds no certificate'],
    ['a certificate without end', first.certPem.replace(/-----END.*\n?/, ''), 'entry 1 (line 1) has no matching END line'],
    [
      'a second one that begins inside',
      first.certPem.replace(/-----END.*\n?/, '') + second.certPem,
      'entry 1 (line 1) has no matching END line',
    ],
    ['broken base64', `${first.certPem}\n${second.certPem.replace(/[A-Za-z0-9]{20}\n/, '!!\n')}`, 'entry 2 (line '],
    ['a truncated certificate', '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n', 'entry 1 (line 1) cannot be parsed'],
    ['a private key', first.certPem + first.keyPem, 'is a private key'],
    ['a request', first.certPem.replaceAll('CERTIFICATE', 'CERTIFICATE REQUEST'), 'is not a certificate but "CERTIFICATE REQUEST"'],
    ['too much', 'x'.repeat((1 << 20) + 1), 'larger than 1048576 bytes'],
    ['too many', first.certPem.repeat(513), 'more than 512 certificates'],
  ])('refuses %s', (_name, pem, message) => {
    expect(failure(pem)).toContain(message)
  })

  it('never quotes what it refuses', () => {
    const secret = first.keyPem.split('\n')[1] ?? ''
    expect(secret.length).toBeGreaterThan(10)
    expect(failure(first.keyPem)).not.toContain(secret)
  })

  it('stops at the first fault', () => {
    expect(failure('-----BEGIN CERTIFICATE-----\n'.repeat(37_000))).toContain('no matching END')
  })
})

describe('secureContextOf', () => {
  it('is made once per bundle', () => {
    const bundle = parseCaBundle(first.certPem, { name })
    expect(secureContextOf(bundle)).toBe(secureContextOf(bundle))
    expect(secureContextOf(parseCaBundle(second.certPem, { name }))).not.toBe(secureContextOf(bundle))
  })
})
