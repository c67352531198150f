import { type KeyObject, randomUUID, sign } from 'node:crypto'

export const serviceAccountIssuer = 'https://kubernetes.default.svc.cluster.local'

export interface TokenOptions {
  /** system:serviceaccount:NAMESPACE:NAME. Another subject gives a well-signed token that the API server refuses. */
  readonly subject: string
  /** Of the ServiceAccount object. The API server accepts the token only when the account exists with this uid. */
  readonly uid?: string
  /** From now; negative for one that has expired. The API server accepts an expired token for about a minute more. */
  readonly expiresInSeconds: number
  /** The API server's own audience when absent. */
  readonly audiences?: readonly string[]
  /** Becomes a `groups` claim for other readers of the token; the API server derives an account's groups from its subject. */
  readonly groups?: readonly string[]
}

/** A token like those of the TokenRequest API, but with any life time. */
export function mintServiceAccountToken(key: KeyObject, options: TokenOptions): string {
  const content = `${encode({ alg: 'ES256', typ: 'JWT' })}.${encode(tokenClaims(options))}`
  // RFC 7518 §3.4: r and s side by side, not DER.
  const signature = sign('sha256', Buffer.from(content), { key, dsaEncoding: 'ieee-p1363' })
  return `${content}.${signature.toString('base64url')}`
}

/** The claims of such a token. */
export function tokenClaims(options: TokenOptions) {
  const now = Math.floor(Date.now() / 1000)
  const exp = now + options.expiresInSeconds
  const iat = Math.min(now, exp) - 1
  const [, , namespace = '', name = ''] = options.subject.split(':')
  return {
    iss: serviceAccountIssuer,
    sub: options.subject,
    aud: [...(options.audiences ?? [serviceAccountIssuer])],
    exp,
    iat,
    nbf: iat,
    jti: randomUUID(),
    ...(options.groups ? { groups: [...options.groups] } : {}),
    'kubernetes.io': { namespace, serviceaccount: { name, ...(options.uid === undefined ? {} : { uid: options.uid }) } },
  }
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
