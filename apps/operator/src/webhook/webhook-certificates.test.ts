import { X509Certificate } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { dueCertificates, readSecretData, secretData, trustedAuthorities, type WebhookCertificates } from './webhook-certificates.ts'

const DAY = 86_400_000
const START = Date.parse('2026-01-01T00:00:00Z')
const hosts = ['hook.team.svc', '127.0.0.1']
const at = (days: number, current?: WebhookCertificates, names = hosts) =>
  dueCertificates(current, { hosts: names, now: START + days * DAY })
const read = (pem: string) => new X509Certificate(pem)
const trusts = (certificates: WebhookCertificates, serving: string) =>
  trustedAuthorities(certificates)
    .split(/(?<=-----END CERTIFICATE-----\n)/)
    .some((authority) => read(serving).verify(read(authority).publicKey))

describe('dueCertificates', () => {
  it('begins with an authority for two years and a certificate for 90 days, for every host', () => {
    const { authority, serving, ...rest } = at(0)
    expect(rest).toEqual({})
    expect(read(authority.certPem).validToDate.getTime()).toBe(START + 730 * DAY)
    expect(read(serving.certPem).validToDate.getTime()).toBe(START + 90 * DAY)
    expect(read(serving.certPem).checkHost('hook.team.svc')).toBe('hook.team.svc')
    expect(read(serving.certPem).checkIP('127.0.0.1')).toBe('127.0.0.1')
    expect(read(serving.certPem).verify(read(authority.certPem).publicKey)).toBe(true)
  })

  it('renews the certificate after two thirds of its life, not before, and keeps the authority', () => {
    const first = at(0)
    expect(at(59, first)).toBe(first)
    const second = at(61, first)
    expect(second.authority).toBe(first.authority)
    expect(second.serving).not.toEqual(first.serving)
    expect(at(62, second)).toBe(second)
  })

  it('renews it when it is called by another name, and when it has expired', () => {
    const first = at(0)
    expect(at(1, first, ['other.svc']).serving).not.toEqual(first.serving)
    expect(read(at(100, first).serving.certPem).validToDate.getTime()).toBe(START + 190 * DAY)
  })

  it('at every moment of four years clients that know the bundle of a month ago trust what is served', () => {
    let current = at(0)
    let aMonthAgo = current
    for (let day = 0; day < 1_500; day += 30) {
      aMonthAgo = current
      current = at(day, current)
      const serving = read(current.serving.certPem)
      expect(serving.validToDate.getTime()).toBeLessThanOrEqual(read(current.authority.certPem).validToDate.getTime())
      expect(serving.validToDate.getTime()).toBeGreaterThan(START + day * DAY)
      expect(trusts(aMonthAgo, current.serving.certPem)).toBe(true)
      expect(trusts(current, aMonthAgo.serving.certPem)).toBe(true)
    }
  })

  it('makes a new authority when the authority has expired, or the clock stands before its beginning', () => {
    const first = at(0)
    expect(at(800, first).authority).not.toEqual(first.authority)
    expect(at(-2, first).authority).not.toEqual(first.authority)
  })
})

describe('the Secret', () => {
  it('gives back what was written, with all authorities', () => {
    const first = at(0)
    const withNext = at(500, first)
    const withFormer = at(650, withNext)
    expect(withNext.nextAuthority).toBeDefined()
    expect(withFormer.formerAuthority).toBe(first.authority.certPem)
    for (const certificates of [first, withNext, withFormer]) expect(readSecretData(secretData(certificates))).toEqual(certificates)
  })

  it.each<[string, (data: Record<string, string>) => void]>([
    ['without a key', (data) => delete data['tls.key']],
    ['with somebody else’s key', (data) => Object.assign(data, { 'tls.key': secretData(at(0))['tls.key'] })],
    ['with text in place of a certificate', (data) => Object.assign(data, { 'ca.crt': Buffer.from('nonsense').toString('base64') })],
  ])('%s is of no use', (_, spoil) => {
    const data = secretData(at(0))
    spoil(data)
    expect(readSecretData(data)).toBeUndefined()
    expect(readSecretData(undefined)).toBeUndefined()
  })
})
