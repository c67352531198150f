/** Longer ones are not looked at. Header limits of servers are of this size. */
const MAX_TOKEN_CHARS = 16 << 10

const SCHEME = /^bearer +/i
const TOKEN = /^[\w.~+/-]+=*$/

export type BearerReading = { readonly token: string } | 'missing' | 'malformed' | 'too-long'

/** The token of an `Authorization` header (RFC 6750 §2.1; the scheme's case does not matter, RFC 9110 §11.1). */
export function readBearer(authorization: string | undefined): BearerReading {
  if (authorization === undefined || authorization === '') return 'missing'
  const scheme = SCHEME.exec(authorization.slice(0, 64))?.[0]
  if (scheme === undefined) return 'malformed'
  const token = authorization.slice(scheme.length)
  if (token.length > MAX_TOKEN_CHARS) return 'too-long'
  return TOKEN.test(token) ? { token } : 'malformed'
}
