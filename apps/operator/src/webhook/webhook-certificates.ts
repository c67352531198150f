import { createPrivateKey, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { type Certificate, createCertificate } from '@thv/http/tls/certificate'

/** The content of the webhook's Secret. */
export interface WebhookCertificates {
  /** Signs the serving certificate. */
  readonly authority: Certificate
  /** Signs in its place later: API servers trust it for months before they meet a certificate of it. */
  readonly nextAuthority?: Certificate
  /** The authority before: a replica may show a certificate of it until it has read the Secret. */
  readonly formerAuthority?: string
  readonly serving: Certificate
}

const HOUR = 3_600_000
const DAY = 24 * HOUR
const SERVING_LIFE = 90 * DAY
const AUTHORITY_LIFE = 730 * DAY
/** For clocks that are behind. */
const BACKDATED = HOUR

/** The certificates that should stand now: the same object while nothing is due. Pure but for the keys it makes. */
export function dueCertificates(
  current: WebhookCertificates | undefined,
  { hosts, now }: { readonly hosts: readonly string[]; readonly now: number },
): WebhookCertificates {
  if (current === undefined || !holds(current.authority.certPem, now)) return fresh(hosts, now)
  let next = current
  if (next.formerAuthority !== undefined && !holds(next.formerAuthority, now)) next = without(next, 'formerAuthority')
  if (next.nextAuthority !== undefined && !holds(next.nextAuthority.certPem, now)) next = without(next, 'nextAuthority')
  if (next.nextAuthority === undefined && isDue(next.authority.certPem, now)) next = { ...next, nextAuthority: newAuthority(now) }
  // A serving certificate must not outlive the authority that signed it.
  if (next.nextAuthority !== undefined && new X509Certificate(next.authority.certPem).validToDate.getTime() - now <= SERVING_LIFE) {
    const formerAuthority = next.authority.certPem
    next = { ...without(next, 'nextAuthority'), authority: next.nextAuthority, formerAuthority }
  }
  const isSound = serves(next.serving, next.authority, hosts) && holds(next.serving.certPem, now) && !isDue(next.serving.certPem, now)
  return isSound ? next : { ...next, serving: newServing(next.authority, hosts, now) }
}

/** All authorities that a client has to trust, PEM. */
export function trustedAuthorities({ authority, nextAuthority, formerAuthority }: WebhookCertificates): string {
  return [authority.certPem, nextAuthority?.certPem, formerAuthority].filter((pem) => pem !== undefined).join('')
}

const KEYS = {
  authority: ['ca.crt', 'ca.key'],
  nextAuthority: ['next-ca.crt', 'next-ca.key'],
  serving: ['tls.crt', 'tls.key'],
} as const
const FORMER = 'former-ca.crt'

/** As the `data` of a Secret. */
export function secretData(certificates: WebhookCertificates): Record<string, string> {
  const data: Record<string, string> = {}
  for (const [name, [cert, key]] of Object.entries(KEYS)) {
    const pair = certificates[name as keyof typeof KEYS]
    if (pair === undefined) continue
    data[cert] = encoded(pair.certPem)
    data[key] = encoded(pair.keyPem)
  }
  if (certificates.formerAuthority !== undefined) data[FORMER] = encoded(certificates.formerAuthority)
  return data
}

/** Undefined where the data cannot be used: the leader then makes new ones. */
export function readSecretData(data: Readonly<Record<string, string>> | undefined): WebhookCertificates | undefined {
  const [authority, nextAuthority, serving] = [KEYS.authority, KEYS.nextAuthority, KEYS.serving].map((keys) => readPair(data, keys))
  if (!authority || !serving) return undefined
  const former = decoded(data?.[FORMER])
  return {
    authority,
    serving,
    ...(nextAuthority && { nextAuthority }),
    ...(former !== undefined && isCertificate(former) && { formerAuthority: former }),
  }
}

function readPair(data: Readonly<Record<string, string>> | undefined, [cert, key]: readonly [string, string]): Certificate | undefined {
  const [certPem, keyPem] = [decoded(data?.[cert]), decoded(data?.[key])]
  if (certPem === undefined || keyPem === undefined) return undefined
  try {
    return new X509Certificate(certPem).checkPrivateKey(createPrivateKey(keyPem)) ? { certPem, keyPem } : undefined
  } catch {
    return undefined
  }
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).ca
  } catch {
    return false
  }
}

function fresh(hosts: readonly string[], now: number): WebhookCertificates {
  const authority = newAuthority(now)
  return { authority, serving: newServing(authority, hosts, now) }
}

function newAuthority(now: number): Certificate {
  return createCertificate({ commonName: 'toolhive-operator webhook authority', ca: true, ...lasting(AUTHORITY_LIFE, now) })
}

function newServing(issuer: Certificate, hosts: readonly string[], now: number): Certificate {
  return createCertificate({ commonName: 'toolhive-operator webhook', hosts, issuer, ...lasting(SERVING_LIFE, now) })
}

function lasting(life: number, now: number): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(now - BACKDATED), notAfter: new Date(now + life) }
}

/** Two thirds of its life have passed. */
function isDue(pem: string, now: number): boolean {
  const { validFromDate, validToDate } = new X509Certificate(pem)
  return now >= validFromDate.getTime() + ((validToDate.getTime() - validFromDate.getTime()) * 2) / 3
}

function holds(pem: string, now: number): boolean {
  const { validFromDate, validToDate } = new X509Certificate(pem)
  return now >= validFromDate.getTime() && now < validToDate.getTime()
}

function serves({ certPem }: Certificate, authority: Certificate, hosts: readonly string[]): boolean {
  const certificate = new X509Certificate(certPem)
  const issuer = new X509Certificate(authority.certPem)
  const isNamed = (host: string) => (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host)) !== undefined
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey) && hosts.every(isNamed)
}

function without<K extends 'formerAuthority' | 'nextAuthority'>(
  certificates: WebhookCertificates,
  member: K,
): Omit<WebhookCertificates, K> {
  const { [member]: _, ...rest } = certificates
  return rest
}

function encoded(text: string): string {
  return Buffer.from(text).toString('base64')
}

function decoded(text: string | undefined): string | undefined {
  return text === undefined ? undefined : Buffer.from(text, 'base64').toString()
}
