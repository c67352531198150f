import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import { jwtVerify } from 'jose'
import { claimProblem, LEEWAY_SECONDS, subjectProblem, type TokenClaims } from './claim-checks.ts'
import { identityOf } from './identity.ts'
import type { IncomingProvider } from './incoming-provider.ts'
import { SIGNATURE_ALGORITHMS } from './jwks.ts'
import type { KeySet } from './key-set.ts'
import type { Verdict } from './verdict.ts'

/** Claims of a token before any check. None of them is proven. */
export interface UnverifiedJwt {
  readonly token: string
  readonly header: { readonly alg: string; readonly kid?: string | undefined; readonly typ?: unknown }
  readonly claims: TokenClaims
}

const PARTS = /^([\w-]+)\.([\w-]+)\.([\w-]*)$/

/** Undefined: not a signed JWT, so perhaps an opaque token. */
export function readJwt(token: string): UnverifiedJwt | undefined {
  const [, head = '', body = ''] = PARTS.exec(token) ?? []
  const header = jsonPart(head)
  const claims = jsonPart(body)
  if (header === undefined || claims === undefined || typeof header['alg'] !== 'string') return undefined
  const { alg, kid, typ } = header
  return { token, header: { alg, kid: typeof kid === 'string' ? kid : undefined, typ }, claims }
}

export interface JwtCheck {
  readonly provider: IncomingProvider
  readonly keys: KeySet
  readonly clock: Clock
}

/** The cheap checks come first, so that old and foreign tokens do not make us fetch keys. */
export async function verifyJwt(jwt: UnverifiedJwt, { provider, keys, clock }: JwtCheck): Promise<Verdict> {
  const { header, claims, token } = jwt
  if (!SIGNATURE_ALGORITHMS.includes(header.alg)) return rejected('signed with an algorithm that is not accepted')
  if (!isAccessTokenType(header.typ)) return rejected('of another type')
  const subject = claims['sub']
  const problem = claimProblem(claims, provider, { nowMs: clock.now(), demand: 'all' }) ?? subjectProblem(subject, provider)
  if (problem !== undefined) return rejected(problem)
  const identity = identityOf(claims, provider, String(subject))

  let reason = 'signed with an unknown key'
  for (const { key } of await keys.find(header)) {
    try {
      await jwtVerify(token, key, {
        algorithms: [header.alg],
        issuer: provider.issuer,
        ...(provider.audience !== undefined && { audience: provider.audience }),
        requiredClaims: ['exp', 'sub'],
        clockTolerance: LEEWAY_SECONDS,
        currentDate: new Date(clock.now()),
      })
      return { kind: 'accepted', identity }
    } catch (error) {
      reason = errorMessage(error)
    }
  }
  return rejected(reason)
}

/** RFC 8725 §3.11: a JWT that says it is something else (a logout or proof token) is no access token. */
function isAccessTokenType(typ: unknown): boolean {
  if (typ === undefined) return true
  return typeof typ === 'string' && /^(application\/)?(at\+)?jwt$/i.test(typ)
}

function rejected(reason: string): Verdict {
  return { kind: 'rejected', reason }
}

function jsonPart(part: string): TokenClaims | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as TokenClaims) : undefined
  } catch {
    return undefined // no JSON, so no JWT
  }
}
