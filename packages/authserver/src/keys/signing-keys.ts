import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { matchingKeys, parseJwks, type VerificationKey } from '@thv/auth/incoming/jwks'
import { ThvError } from '@thv/kernel/errors'
import { mountedPath } from '@thv/kernel/mounted-path'
import type { SigningKeyConfig } from '@thv/runconfig/auth-server-config'
import { calculateJwkThumbprint, type JWK } from 'jose'
import { consistently } from './consistent-files.ts'

/** The keys of an authorization server. The first signs; all are published. */
export interface SigningKeys {
  readonly alg: string
  readonly kid: string
  readonly privateKey: KeyObject
  /** Private JWKs, for the library. */
  readonly privateJwks: readonly JWK[]
  /** The JWK Set that everybody may read. */
  readonly published: { readonly keys: readonly JWK[] }
  /** For tokens of our own, without a network. */
  find(header: { alg: string; kid?: string | undefined }): readonly VerificationKey[]
}

const MIN_RSA_BITS = 2_048
const EC_ALGORITHMS: Readonly<Record<string, string>> = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' }

/** Reads the keys again, so that replaced files count. Throws `run_config_invalid` naming the file, never its content. */
export async function loadSigningKeys(config: SigningKeyConfig): Promise<SigningKeys> {
  const paths = [config.signing_key_file, ...config.fallback_key_files].map((file) => join(mountedPath(config.key_dir), file))
  return await signingKeys(await consistently(paths, () => Promise.all(paths.map(readKey))))
}

/** A key that lives as long as the process. */
export async function ephemeralSigningKeys(): Promise<SigningKeys> {
  return await signingKeys([generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey])
}

async function readKey(path: string): Promise<KeyObject> {
  let key: KeyObject
  try {
    key = createPrivateKey(await readFile(path))
  } catch (cause) {
    throw invalid(path, 'is not a readable private key in PEM form', cause)
  }
  if (algorithmOf(key) === undefined)
    throw invalid(path, 'must be an RSA key of at least 2048 bits, an EC key on P-256, P-384 or P-521, or Ed25519')
  return key
}

function invalid(path: string, problem: string, cause?: unknown): ThvError {
  return new ThvError('run_config_invalid', `embedded_auth_server_config.signing_key_config: ${path} ${problem}`, { cause })
}

async function signingKeys(keys: readonly KeyObject[]): Promise<SigningKeys> {
  const [first] = keys
  if (first === undefined) throw new RangeError('a server needs a key')
  const privateJwks = await Promise.all(keys.map(withId))
  const published = { keys: await Promise.all(keys.map((key) => withId(createPublicKey(key)))) }
  const verification = parseJwks(published) ?? []
  const { alg = '', kid = '' } = privateJwks[0] ?? {}
  return { alg, kid, privateKey: first, privateJwks, published, find: (header) => matchingKeys(verification, header) }
}

async function withId(key: KeyObject): Promise<JWK> {
  const jwk = key.export({ format: 'jwk' }) as JWK
  return { ...jwk, kid: await calculateJwkThumbprint(jwk, 'sha256'), alg: algorithmOf(key) ?? '', use: 'sig' }
}

function algorithmOf(key: KeyObject): string | undefined {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key
  if (type === 'rsa') return (details?.modulusLength ?? 0) >= MIN_RSA_BITS ? 'RS256' : undefined
  if (type === 'ec') return EC_ALGORITHMS[details?.namedCurve ?? '']
  return type === 'ed25519' ? 'EdDSA' : undefined
}
