import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { type Certificate, createCertificate } from '@thv/http/tls/certificate'
import type { Clock } from '@thv/kernel/clock'
import { type IdentityRecord, readIdentity, writeIdentity } from './identity-file.ts'

/** Certificates that the server shows to its clients, and keys by which it knows them. */
export interface ServerIdentity {
  readonly ca: Certificate
  readonly server: Certificate
  readonly adminToken: string
  /** Signs the tokens of ServiceAccounts. */
  readonly serviceAccountKey: KeyObject
  /** The port of the last start, when there was one. */
  readonly port: number | undefined
  /** To be asked for again at the next start. */
  keepPort(port: number): void
}

export interface IdentityOptions {
  /** Without it everything is new at every start. The caller is its only user. */
  readonly folder: string | undefined
  /** Names and addresses that the server certificate must be good for. */
  readonly hosts: readonly string[]
  readonly clock: Clock
}

const DAY_MS = 86_400_000
const CA_DAYS = 3_650
const SERVER_DAYS = 365
/** Time that a certificate must still be valid for at a start. */
const SERVER_DAYS_LEFT = 180

/** Kept in `folder`; certificates are renewed when they grow old or do not fit any more. Throws `data_folder_failed`. */
export function openIdentity({ folder, hosts, clock }: IdentityOptions): ServerIdentity {
  const file = folder === undefined ? undefined : join(folder, 'identity.json')
  const save = (next: IdentityRecord) => {
    if (file !== undefined) writeIdentity(file, next)
  }
  const kept = file === undefined ? undefined : readIdentity(file)
  const record = renewed(kept, hosts, clock)
  if (record !== kept) save(record)
  return {
    ca: record.ca,
    server: record.server,
    adminToken: record.adminToken,
    serviceAccountKey: createPrivateKey(record.serviceAccountKeyPem),
    port: record.port,
    keepPort(port) {
      if (port !== record.port) save({ ...record, port })
    },
  }
}

function renewed(kept: IdentityRecord | undefined, hosts: readonly string[], clock: Clock): IdentityRecord {
  const isKeptCa = kept !== undefined && isGoodFor(kept.ca, SERVER_DAYS, clock)
  const ca = isKeptCa ? kept.ca : createCertificate({ commonName: 'thv authority', ca: true, ...life(clock, CA_DAYS) })
  if (isKeptCa && isGoodFor(kept.server, SERVER_DAYS_LEFT, clock) && fits(kept.server, ca, hosts)) return kept
  const server = createCertificate({ commonName: 'thv-apiserver', hosts: [...new Set(hosts)], issuer: ca, ...life(clock, SERVER_DAYS) })
  if (kept !== undefined) return { ...kept, ca, server }
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const serviceAccountKeyPem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  return { ca, server, adminToken: randomBytes(24).toString('base64url'), serviceAccountKeyPem, port: undefined }
}

function isGoodFor({ certPem }: Certificate, days: number, clock: Clock): boolean {
  const { validFromDate, validToDate } = new X509Certificate(certPem)
  return validFromDate.getTime() <= clock.now() && validToDate.getTime() >= clock.now() + days * DAY_MS
}

function fits({ certPem }: Certificate, ca: Certificate, hosts: readonly string[]): boolean {
  const certificate = new X509Certificate(certPem)
  const isOurs = certificate.verify(new X509Certificate(ca.certPem).publicKey)
  return isOurs && hosts.every((host) => (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host)) !== undefined)
}

function life(clock: Clock, days: number): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(clock.now() - 3_600_000), notAfter: new Date(clock.now() + days * DAY_MS) }
}
