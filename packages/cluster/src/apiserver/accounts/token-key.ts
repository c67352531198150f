import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { isObject } from '../objects/served-kind.ts'

/** Far more than the claims of any of our tokens need. */
const MAX_TOKEN_LENGTH = 8_192

/** Signs and reads JSON Web Tokens (RFC 7515) in one form only: ES256 with this one key. */
export interface TokenKey {
  /** As a member of a JSON Web Key Set. */
  readonly jwk: JsonObject
  sign(claims: JsonObject): string
  /** The claims; undefined for everything that this key has not signed. Does not look at the time. */
  verify(token: string): JsonObject | undefined
}

/** `privateKey` is an EC key on P-256. */
export function createTokenKey(privateKey: KeyObject): TokenKey {
  const publicKey = createPublicKey(privateKey)
  const kid = createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64url')
  const header = encode({ alg: 'ES256', kid })
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
  return {
    jwk: { use: 'sig', kty: 'EC', kid, crv: 'P-256', alg: 'ES256', x, y },
    sign(claims) {
      const content = `${header}.${encode(claims)}`
      const signature = sign('sha256', Buffer.from(content), { key: privateKey, dsaEncoding: 'ieee-p1363' })
      return `${content}.${signature.toString('base64url')}`
    },
    verify(token) {
      if (token.length > MAX_TOKEN_LENGTH) return undefined
      const [head, body, signature, ...more] = token.split('.')
      if (head === undefined || body === undefined || signature === undefined || more.length > 0) return undefined
      const { alg, kid: named, crit } = decode(head) ?? {}
      // The algorithm is ours to choose, never the token's; extensions that must be understood are not.
      if (alg !== 'ES256' || named !== kid || crit !== undefined) return undefined
      const bytes = bytesOf(signature)
      if (bytes === undefined) return undefined
      const isSigned = verify('sha256', Buffer.from(`${head}.${body}`), { key: publicKey, dsaEncoding: 'ieee-p1363' }, bytes)
      return isSigned ? decode(body) : undefined
    },
  }
}

function encode(value: JsonObject): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function decode(part: string): JsonObject | undefined {
  const bytes = bytesOf(part)
  if (bytes === undefined) return undefined
  try {
    const value: unknown = JSON.parse(bytes.toString())
    return isObject(value) ? value : undefined
  } catch {
    return undefined // no JSON: no token
  }
}

/** Node ignores characters that are not base64url; one token must have one form only. */
function bytesOf(part: string): Buffer | undefined {
  const bytes = Buffer.from(part, 'base64url')
  return bytes.length > 0 && bytes.toString('base64url') === part ? bytes : undefined
}
