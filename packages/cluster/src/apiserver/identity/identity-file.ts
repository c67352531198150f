import { createPrivateKey, X509Certificate } from 'node:crypto'
import { chmodSync, readFileSync } from 'node:fs'
import type { Certificate } from '@thv/http/tls/certificate'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { writePrivateFile } from './private-file.ts'

/** All by which clients know the server again. One file, so that certificates and their keys cannot fall apart. */
export interface IdentityRecord {
  readonly ca: Certificate
  readonly server: Certificate
  readonly adminToken: string
  /** PKCS #8, EC P-256. */
  readonly serviceAccountKeyPem: string
  /** Of the last start. */
  readonly port: number | undefined
}

const FORMAT = 1
const MIN_TOKEN_LENGTH = 16

/** Undefined when there is none yet; rejects a damaged one with `data_folder_failed`. */
export function readIdentity(file: string): IdentityRecord | undefined {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
    chmodSync(file, 0o600)
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined
    throw new ThvError('data_folder_failed', `cannot read ${file}`, { cause })
  }
  try {
    return parseIdentity(text)
  } catch (cause) {
    // Not as the cause: a parser may repeat what it read, and these are secrets.
    const why = cause instanceof SyntaxError ? 'it is not JSON' : errorMessage(cause)
    const hint = 'restore it, or delete it for a new one; all tokens and kubeconfig files from before are then void'
    throw new ThvError('data_folder_failed', `${file} is damaged (${why}): ${hint}`)
  }
}

export function writeIdentity(file: string, record: IdentityRecord): void {
  writePrivateFile(file, `${JSON.stringify({ format: FORMAT, ...record }, null, 2)}\n`)
}

function parseIdentity(text: string): IdentityRecord {
  const value = JSON.parse(text) as unknown
  if (!isRecord(value)) throw new Error('it is not an object')
  if (value['format'] !== FORMAT) throw new Error(`its format is not ${FORMAT}`)
  const { adminToken, serviceAccountKeyPem, port } = value
  if (typeof adminToken !== 'string' || adminToken.length < MIN_TOKEN_LENGTH || /[^\x21-\x7e]/.test(adminToken))
    throw new Error('adminToken is not a token')
  if (typeof serviceAccountKeyPem !== 'string' || !isSigningKey(serviceAccountKeyPem))
    throw new Error('serviceAccountKeyPem is not a private key on P-256')
  if (port !== undefined && !(Number.isInteger(port) && Number(port) > 0 && Number(port) < 65_536)) throw new Error('port is not a port')
  const ca = certificateOf(value, 'ca')
  const server = certificateOf(value, 'server')
  if (!new X509Certificate(ca.certPem).ca) throw new Error('ca is not an authority')
  return { ca, server, adminToken, serviceAccountKeyPem, port: port === undefined ? undefined : Number(port) }
}

function certificateOf(value: Record<string, unknown>, name: string): Certificate {
  const pair = value[name]
  if (!isRecord(pair)) throw new Error(`${name} is missing`)
  const { certPem, keyPem } = pair
  if (typeof certPem !== 'string' || typeof keyPem !== 'string' || !belongTogether(certPem, keyPem))
    throw new Error(`${name} is not a certificate with its private key`)
  return { certPem, keyPem }
}

function belongTogether(certPem: string, keyPem: string): boolean {
  try {
    return new X509Certificate(certPem).checkPrivateKey(createPrivateKey(keyPem))
  } catch {
    return false // not PEM: the caller names what is broken, without its content
  }
}

function isSigningKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyDetails?.namedCurve === 'prime256v1'
  } catch {
    return false // not PEM: the caller names what is broken, without its content
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
