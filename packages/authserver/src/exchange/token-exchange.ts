import { randomUUID } from 'node:crypto'
import type { Clock } from '@thv/kernel/clock'
import { parseDuration } from '@thv/kernel/duration'
import { isObject } from '@thv/kernel/json'
import type { AuthServerConfig, DelegateClientConfig } from '@thv/runconfig/auth-server-config'
import type { AuthStore } from '@thv/store/auth/auth-store'
import type { SigningKeys } from '../keys/signing-keys.ts'
import { GrantRefused } from './grant-refused.ts'
import { signedToken } from './issued-token.ts'
import { ownClaims } from './own-tokens.ts'
import { audiencesOf, foreignSubject, scopesOf, type TrustedIssuers, type TrustedToken } from './trusted-issuers.ts'

export interface ExchangeDeps {
  readonly config: AuthServerConfig
  readonly store: AuthStore
  readonly keys: () => SigningKeys
  readonly issuers: TrustedIssuers
  readonly clock: Clock
}

/** Parameters of a request (RFC 8693 §2.1). */
export type ExchangeParams = Readonly<Record<string, string | undefined>>

/** The user, as the presented token proves it. */
interface Subject {
  readonly subject: string
  readonly scopes: readonly string[]
  /** Undefined: of another issuer, whose audiences are not ours. */
  readonly audiences: readonly string[] | undefined
  readonly expiresAt: number
  readonly family: string
  readonly claims: Readonly<Record<string, unknown>>
}

export const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'
const JWT = 'urn:ietf:params:oauth:token-type:jwt'
export const EXCHANGE_PARAMETERS = [
  ...['subject_token', 'subject_token_type', 'requested_token_type', 'actor_token', 'actor_token_type'],
  ...['audience', 'resource', 'scope'],
]

/** Exchanges the token of a user for one with which a delegate client acts for that user (RFC 8693 §1.1). Throws GrantRefused. */
export async function exchangeToken(
  params: ExchangeParams,
  client: DelegateClientConfig,
  deps: ExchangeDeps,
): Promise<{ readonly answer: Readonly<Record<string, unknown>>; readonly subject: string }> {
  const { config, clock, keys } = deps
  const token = params['subject_token']
  if (token === undefined || token === '') throw new GrantRefused('invalid_request', 'subject_token is required')
  if (![ACCESS_TOKEN, JWT].includes(params['subject_token_type'] ?? ''))
    throw new GrantRefused('invalid_request', 'subject_token_type must be that of an access token or of a JWT')
  if (![undefined, ACCESS_TOKEN, JWT].includes(params['requested_token_type']))
    throw new GrantRefused('invalid_request', 'requested_token_type must be that of an access token')
  if (params['actor_token'] !== undefined || params['actor_token_type'] !== undefined)
    throw new GrantRefused('invalid_request', 'actor_token is not supported: the client itself is the actor')
  const subject = (await ownSubject(token, client, deps)) ?? (await foreignUser(token, client, deps))

  const audience = audienceOf(params, client, { subject, allowed: config.allowed_audiences })
  const most = client.scopes.filter((scope) => subject.scopes.includes(scope))
  const scopes = params['scope'] === undefined ? most : params['scope'].split(' ').filter((scope) => scope !== '')
  if (scopes.some((scope) => !most.includes(scope)))
    throw new GrantRefused('invalid_scope', 'scope must lie within that of the subject token and of the client')
  const now = Math.floor(clock.now() / 1_000)
  const expiresAt = Math.min(subject.expiresAt, now + Math.floor(parseDuration(config.delegation_token_lifespan) / 1_000))
  if (expiresAt <= now) throw new GrantRefused('invalid_grant', 'the subject token has expired')
  // RFC 8693 §4.1: earlier actors stand inside.
  const before = subject.claims['act']
  const act = { iss: config.issuer, sub: client.client_id, ...(isObject(before) && { act: before }) }
  const access = await signedToken(
    { ...subject, clientId: client.client_id, audience, scopes, issuedAt: now, expiresAt, claims: { ...displayOf(subject.claims), act } },
    { issuer: config.issuer, keys: keys() },
  )
  return {
    subject: subject.subject,
    answer: {
      access_token: access,
      issued_token_type: ACCESS_TOKEN,
      token_type: 'Bearer',
      expires_in: expiresAt - now,
      ...(scopes.length > 0 && { scope: scopes.join(' ') }),
    },
  }
}

/** Undefined: not of this server. */
async function ownSubject(
  token: string,
  client: DelegateClientConfig,
  { config, keys, store, clock }: ExchangeDeps,
): Promise<Subject | undefined> {
  const claims = await ownClaims(token, { issuer: config.issuer, keys: keys(), clock })
  if (claims === undefined) return undefined
  const { sub, tsid, exp } = claims
  if (typeof sub !== 'string' || typeof tsid !== 'string' || (await store.isRevoked(tsid)))
    throw new GrantRefused('invalid_grant', 'the subject token is not valid', 'revoked')
  if ('may_act' in claims && !mayAct(claims, client.client_id, config.issuer))
    throw new GrantRefused('invalid_grant', 'the subject token names another client that may act', 'may_act')
  return { subject: sub, scopes: scopesOf(claims), audiences: audiencesOf(claims), expiresAt: Number(exp), family: tsid, claims }
}

async function foreignUser(token: string, client: DelegateClientConfig, { issuers, config }: ExchangeDeps): Promise<Subject> {
  const trusted = await issuers.verify(token)
  const { issuer, claims, expiresAt } = trusted
  const { expected_audience: audience, allowed_delegate_clients: clients } = issuer
  if (audience === undefined || !audiencesOf(claims).includes(audience))
    throw new GrantRefused('invalid_grant', 'the subject token is not valid', 'for another audience')
  if (!clients.includes(client.client_id) && !(clients.length === 1 && clients[0] === '*'))
    throw new GrantRefused('unauthorized_client', 'this client may not exchange tokens of that issuer')
  if (!hasConsent(trusted, client.client_id, config.issuer))
    throw new GrantRefused('invalid_grant', 'the subject token does not allow this client to act', 'no actor of the configuration')
  return { subject: foreignSubject(trusted), scopes: scopesOf(claims), audiences: undefined, expiresAt, family: randomUUID(), claims }
}

/** Of the actor that the token was issued to, or of the client that it names. */
function hasConsent({ issuer, claims, matches }: TrustedToken, clientId: string, own: string): boolean {
  const actor = claims[issuer.actor_claim]
  const actors = Array.isArray(actor) ? actor : [actor]
  if (actors.some((each) => typeof each === 'string' && issuer.allowed_actors.includes(each))) return true
  if (matches?.(claims) === true) return true
  return issuer.allow_may_act && mayAct(claims, clientId, own)
}

/** RFC 8693 §4.4. Clients of other issuers may have the same id. */
function mayAct(claims: Readonly<Record<string, unknown>>, clientId: string, own: string): boolean {
  const named = claims['may_act']
  return isObject(named) && named['sub'] === clientId && (named['iss'] === undefined || named['iss'] === own)
}

function audienceOf(
  params: ExchangeParams,
  client: DelegateClientConfig,
  { subject, allowed }: { subject: Subject; allowed: readonly string[] },
): string {
  const possible = client.audiences.filter((each) => allowed.includes(each) && (subject.audiences?.includes(each) ?? true))
  const asked = [...new Set([params['resource'], params['audience']].filter((each) => each !== undefined))]
  if (asked.length > 1) throw new GrantRefused('invalid_target', 'resource and audience name two targets')
  const [target] = asked.length === 1 ? asked : possible.length === 1 ? possible : []
  if (target === undefined) throw new GrantRefused('invalid_target', 'resource is required')
  if (!possible.includes(target)) throw new GrantRefused('invalid_target', 'the client may not get a token for this target')
  return target
}

function displayOf({ name, email }: Readonly<Record<string, unknown>>): Record<string, string> {
  return { ...(typeof name === 'string' && { name }), ...(typeof email === 'string' && { email }) }
}
