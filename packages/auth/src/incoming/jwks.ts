import { createPublicKey, type KeyObject } from 'node:crypto'

type Jwk = { readonly [name: string]: unknown }

export interface VerificationKey {
  readonly id: string | undefined
  /** The only algorithm it may be used with, if it says one. */
  readonly alg: string | undefined
  readonly type: KeyType
  readonly key: KeyObject
}

type KeyType = 'RSA' | 'P-256' | 'P-384' | 'P-521' | 'Ed25519'

/** Which key fits which algorithm. What is not here is not accepted: no `none`, and nothing with a shared secret. */
const KEY_TYPES: ReadonlyMap<string, KeyType> = new Map([
  ['RS256', 'RSA'],
  ['RS384', 'RSA'],
  ['RS512', 'RSA'],
  ['PS256', 'RSA'],
  ['PS384', 'RSA'],
  ['PS512', 'RSA'],
  ['ES256', 'P-256'],
  ['ES384', 'P-384'],
  ['ES512', 'P-521'],
  ['EdDSA', 'Ed25519'],
  ['Ed25519', 'Ed25519'],
])

export const SIGNATURE_ALGORITHMS: readonly string[] = [...KEY_TYPES.keys()]

const MAX_KEYS = 100
/** Of a token without `kid`, or of a provider that gives one `kid` to several keys. */
const MAX_CANDIDATES = 4
const RSA_BITS = { min: 2_048, max: 8_192 }

/** The usable keys of a JWK Set, undefined if it is none. One bad key never costs the others. */
export function parseJwks(json: { readonly [name: string]: unknown }): readonly VerificationKey[] | undefined {
  const keys = json['keys']
  if (!Array.isArray(keys)) return undefined
  return keys.slice(0, MAX_KEYS).flatMap((jwk: unknown) => verificationKey(jwk) ?? [])
}

/** Those that may have signed a token with this header. */
export function matchingKeys(keys: readonly VerificationKey[], header: { alg: string; kid?: string | undefined }): VerificationKey[] {
  const type = KEY_TYPES.get(header.alg)
  const fits = (key: VerificationKey) =>
    key.type === type && (key.alg === undefined || key.alg === header.alg) && (header.kid === undefined || key.id === header.kid)
  return keys.filter(fits).slice(0, MAX_CANDIDATES)
}

function verificationKey(value: unknown): VerificationKey | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const jwk = value as Jwk
  const { kty, use, key_ops: ops, kid, alg } = jwk
  if (kty !== 'RSA' && kty !== 'EC' && kty !== 'OKP') return undefined
  if (use !== undefined && use !== 'sig') return undefined
  if (ops !== undefined && !(Array.isArray(ops) && ops.includes('verify'))) return undefined
  const key = publicKey(jwk)
  const type = key && keyType(key, jwk)
  if (key === undefined || type === undefined) return undefined
  return { id: typeof kid === 'string' ? kid : undefined, alg: typeof alg === 'string' ? alg : undefined, type, key }
}

function publicKey({ kty, crv, x, y, n, e }: Jwk): KeyObject | undefined {
  const parts = Object.fromEntries(Object.entries({ kty, crv, x, y, n, e }).filter(([, part]) => typeof part === 'string'))
  try {
    return createPublicKey({ key: parts, format: 'jwk' })
  } catch {
    return undefined // of a curve we do not have, or damaged: as if it were not there
  }
}

function keyType(key: KeyObject, { kty, crv }: Jwk): KeyType | undefined {
  if (kty === 'RSA') {
    const bits = key.asymmetricKeyDetails?.modulusLength ?? 0
    return bits >= RSA_BITS.min && bits <= RSA_BITS.max ? 'RSA' : undefined
  }
  return crv === 'P-256' || crv === 'P-384' || crv === 'P-521' || crv === 'Ed25519' ? crv : undefined
}
