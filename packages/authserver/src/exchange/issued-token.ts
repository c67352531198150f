import { randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import type { SigningKeys } from '../keys/signing-keys.ts'

export interface IssuedToken {
  readonly subject: string
  readonly clientId: string
  readonly audience: string
  readonly scopes: readonly string[]
  /** Epoch seconds, as is the end. */
  readonly issuedAt: number
  readonly expiresAt: number
  /** Ends with its revocation. */
  readonly family: string
  readonly claims?: Readonly<Record<string, unknown>>
}

/** Signs an access token (RFC 9068) beside the library, which issues only what a user has logged in for. */
export async function signedToken(token: IssuedToken, { issuer, keys }: { issuer: string; keys: SigningKeys }): Promise<string> {
  const { subject, clientId, audience, scopes, issuedAt, expiresAt, family, claims = {} } = token
  return await new SignJWT({ ...claims, client_id: clientId, tsid: family, ...(scopes.length > 0 && { scope: scopes.join(' ') }) })
    .setProtectedHeader({ alg: keys.alg, kid: keys.kid, typ: 'at+jwt' })
    .setIssuer(issuer)
    .setSubject(subject)
    .setAudience(audience)
    .setJti(randomUUID())
    .setIssuedAt(issuedAt)
    .setExpirationTime(expiresAt)
    .sign(keys.privateKey)
}
