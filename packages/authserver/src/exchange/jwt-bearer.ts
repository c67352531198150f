import { createHash, randomUUID } from 'node:crypto'
import { parseDuration } from '@thv/kernel/duration'
import type { JwtBearerGrantConfig } from '@thv/runconfig/auth-server-config'
import { GrantRefused } from './grant-refused.ts'
import { signedToken } from './issued-token.ts'
import type { ExchangeDeps } from './token-exchange.ts'
import { audiencesOf, foreignSubject, type TrustedToken } from './trusted-issuers.ts'

/** As long as clocks may differ. */
const SKEW_SECONDS = 60
const MAX_ID = 512

/** A token for the subject of an assertion of a trusted issuer (RFC 7523 §2.1, §3). Throws GrantRefused. */
export async function redeemAssertion(
  params: URLSearchParams,
  deps: ExchangeDeps,
): Promise<{ readonly answer: Readonly<Record<string, unknown>>; readonly subject: string }> {
  const { config, store, clock, keys } = deps
  for (const name of new Set(params.keys()))
    if (params.getAll(name).length > 1) throw new GrantRefused('invalid_request', `${name} must be given once`)
  const assertion = params.get('assertion')
  if (assertion === null || assertion === '') throw new GrantRefused('invalid_request', 'assertion is required')
  const trusted = await deps.issuers.verify(assertion)
  const { jwt_bearer_grant: grant } = trusted.issuer
  if (grant === undefined) throw new GrantRefused('invalid_grant', 'the issuer of the assertion may not use this grant')
  const now = Math.floor(clock.now() / 1_000)
  const { id, goodUntil } = judge(trusted, grant, { issuer: config.issuer, now })
  const binding = grant.subject_bindings.find(({ subject }) => subject === trusted.subject)
  if (binding === undefined) throw new GrantRefused('invalid_grant', 'the subject of the assertion may not use this grant')
  const possible = binding.allowed_resources.filter((resource) => config.allowed_audiences.includes(resource))
  const resource = params.get('resource') ?? (possible.length === 1 ? possible[0] : undefined)
  if (resource === undefined) throw new GrantRefused('invalid_target', 'resource is required')
  if (!possible.includes(resource)) throw new GrantRefused('invalid_target', 'the subject may not get a token for this resource')
  const scopes =
    params
      .get('scope')
      ?.split(' ')
      .filter((scope) => scope !== '') ?? config.scopes_supported
  if (scopes.some((scope) => !config.scopes_supported.includes(scope)))
    throw new GrantRefused('invalid_scope', 'requested scope is not supported')

  // Last: a request that is wrong in another way may be sent again.
  const mark = createHash('sha256')
    .update(JSON.stringify([trusted.issuer.issuer_url, id]))
    .digest('base64url')
  if (!(await store.addOnce('assertion', mark, (goodUntil - now) * 1_000)))
    throw new GrantRefused('invalid_grant', 'the assertion was used before')
  const subject = foreignSubject(trusted)
  const expiresAt = now + Math.floor(parseDuration(config.delegation_token_lifespan) / 1_000)
  const token = { subject, clientId: subject, audience: resource, scopes, issuedAt: now, expiresAt, family: randomUUID() }
  return {
    subject,
    answer: {
      access_token: await signedToken(token, { issuer: config.issuer, keys: keys() }),
      token_type: 'Bearer',
      expires_in: expiresAt - now,
      ...(scopes.length > 0 && { scope: scopes.join(' ') }),
    },
  }
}

/** The signature, the issuer and the end have been checked. `goodUntil`: how long its id has to be remembered. */
function judge(
  { claims, expiresAt }: TrustedToken,
  grant: JwtBearerGrantConfig,
  { issuer, now }: { issuer: string; now: number },
): { id: string; goodUntil: number } {
  const { jti, iat } = claims
  const refused = (reason: string) => new GrantRefused('invalid_grant', 'the assertion is not valid', reason)
  const accepted = grant.accepted_audiences.length > 0 ? grant.accepted_audiences : [issuer]
  if (!audiencesOf(claims).some((audience) => accepted.includes(audience))) throw refused('for another audience')
  if (typeof jti !== 'string' || jti === '' || jti.length > MAX_ID) throw refused('without jti')
  const maxAge = parseDuration(grant.max_assertion_age) / 1_000
  if (typeof iat !== 'number' || now - iat > maxAge + SKEW_SECONDS) throw refused('too old')
  // It would be good for longer than its greatest age.
  if (iat - now > SKEW_SECONDS) throw refused('issued in the future')
  return { id: jti, goodUntil: Math.min(expiresAt, iat + maxAge) + 2 * SKEW_SECONDS }
}
