import { createHash } from 'node:crypto'
import { metadataUrls } from '@thv/auth/incoming/discovery'
import type { IncomingProvider } from '@thv/auth/incoming/incoming-provider'
import { SIGNATURE_ALGORITHMS } from '@thv/auth/incoming/jwks'
import { createKeySet } from '@thv/auth/incoming/key-set'
import { createProviderClient } from '@thv/auth/incoming/provider-client'
import { createRetryGate } from '@thv/auth/incoming/retry-gate'
import type { Outbound } from '@thv/http/outbound/outbound'
import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { createSingleFlight } from '@thv/kernel/single-flight'
import type { OidcUpstreamConfig } from '@thv/runconfig/auth-server-config'
import type { AuthStore } from '@thv/store/auth/auth-store'
import { decodeProtectedHeader, type JWTPayload, jwtVerify } from 'jose'
import { authorizationUrl, clientSecret, type Env, generationOf, requestTokens, type TokenAnswer, userInfo } from './upstream-client.ts'
import { createUpstreamHttp, textAt } from './upstream-http.ts'
import type { UpstreamProvider } from './upstream-provider.ts'
import { UpstreamRefused } from './upstream-refused.ts'
import type { UpstreamRegistrationOptions } from './upstream-registration.ts'

export interface UpstreamDeps {
  readonly env: Env
  readonly outbound: Outbound
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly onProblem: (provider: string, error: unknown) => void
  readonly store: AuthStore
  readonly onRegistered: UpstreamRegistrationOptions['onRegistered']
}

interface Metadata {
  readonly issuer: string
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly jwksUri: string
  readonly method: 'basic' | 'post'
  readonly namesItself: boolean
}

const KEPT_MS = 3_600_000
const CLOCK_TOLERANCE_SECONDS = 60

/** A provider with OpenID Connect (OpenID Connect Core 1.0 §3.1): discovery, PKCE, and an ID token with a nonce. */
export function createOidcUpstream(
  name: string,
  config: OidcUpstreamConfig,
  options: { redirectUri: string; deps: UpstreamDeps },
): UpstreamProvider {
  const { redirectUri, deps } = options
  const { clock, outbound, signal, env } = deps
  const provider: IncomingProvider = {
    name,
    issuer: config.issuer_url,
    allowPrivateIP: config.allow_private_ips,
    allowHttp: config.insecure_allow_http,
  }
  const http = createUpstreamHttp({ provider, outbound, clock, signal })
  const flights = createSingleFlight<'', Metadata>()
  let known: { readonly metadata: Metadata; readonly until: number; readonly keys: ReturnType<typeof keysOf> } | undefined

  function keysOf({ issuer, jwksUri }: Metadata) {
    const own = { ...provider, issuer, jwksUrl: jwksUri }
    const client = createProviderClient({ provider: own, outbound, clock, timeoutMs: 10_000, signal })
    return createKeySet({ provider: own, client, clock, gate: createRetryGate(clock), onProblem: (error) => deps.onProblem(name, error) })
  }

  async function discover(): Promise<Metadata> {
    let failure: unknown
    for (const url of metadataUrls(config.issuer_url)) {
      try {
        return metadataOf(await http.json({ url }), config.issuer_url)
      } catch (error) {
        failure ??= error
      }
    }
    throw failure instanceof ThvError
      ? failure
      : new ThvError('auth_provider_unavailable', `identity provider ${name}: discovery failed`, { cause: failure })
  }

  async function metadata(): Promise<Metadata> {
    if (known !== undefined && known.until > clock.monotonic()) return known.metadata
    return await flights.run('', async () => {
      const found = await discover()
      const isSame = known?.metadata.jwksUri === found.jwksUri && known.metadata.issuer === found.issuer
      known = { metadata: found, until: clock.monotonic() + KEPT_MS, keys: isSame && known ? known.keys : keysOf(found) }
      return found
    })
  }

  async function request(grant: Readonly<Record<string, string>>, limit?: AbortSignal): Promise<TokenAnswer> {
    const { tokenEndpoint: url, method } = await metadata()
    const secret = await clientSecret(config, env)
    return await requestTokens(http, { url, clientId: config.client_id, secret, method }, { grant, now: clock.now(), signal: limit })
  }

  /** `nonce`: undefined after a refresh, whose ID token need not have one. */
  async function verifiedClaims(idToken: string, nonce: string | undefined): Promise<JWTPayload> {
    const { issuer } = await metadata()
    const { alg = '', kid } = headerOf(idToken)
    if (!SIGNATURE_ALGORITHMS.includes(alg)) throw new UpstreamRefused('id_token_algorithm')
    const candidates = (await known?.keys.find({ alg, kid })) ?? []
    for (const { key } of candidates) {
      const checked = await jwtVerify(idToken, key, {
        algorithms: [alg],
        issuer,
        audience: config.client_id,
        requiredClaims: ['exp', 'iat', 'sub'],
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        currentDate: new Date(clock.now()),
      }).catch(() => undefined)
      if (checked === undefined) continue
      const { payload } = checked
      // OpenID Connect Core §3.1.3.7.
      if (nonce !== undefined && payload['nonce'] !== nonce) throw new UpstreamRefused('id_token_nonce')
      if (Array.isArray(payload.aud) && payload.aud.length > 1 && payload['azp'] !== config.client_id)
        throw new UpstreamRefused('id_token_azp')
      return payload
    }
    throw new UpstreamRefused('id_token_invalid')
  }

  return {
    provider: name,
    generation: generationOf(config.issuer_url, config.client_id),
    redirectUri,
    issuer: config.issuer_url,
    origin: async () => new URL((await metadata()).authorizationEndpoint).origin,
    async authorizationUrl(attempt) {
      const { authorizationEndpoint } = await metadata()
      const scopes = config.scopes.length > 0 ? config.scopes : ['openid', 'profile', 'email']
      return authorizationUrl(authorizationEndpoint, { config, clientId: config.client_id, redirectUri, scopes }, attempt)
    },
    async responseIssuer() {
      const { issuer, namesItself } = await metadata()
      return namesItself ? issuer : undefined
    },
    redeem: (code, { verifier }) => request({ grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier: verifier }),
    async identify({ idToken, accessToken }, { nonce }) {
      if (idToken === undefined) throw new UpstreamRefused('no_id_token')
      const claims = await verifiedClaims(idToken, nonce)
      if (typeof claims['at_hash'] === 'string' && !hashFits(claims['at_hash'], accessToken, headerOf(idToken).alg))
        throw new UpstreamRefused('id_token_at_hash')
      const subject = textAt(claims, config.subject_claim ?? 'sub')
      if (subject === undefined) throw new UpstreamRefused('no_subject')
      const info = config.userinfo_override && (await userInfo(http, config.userinfo_override, accessToken))
      return { subject, name: info?.name ?? textAt(claims, 'name'), email: info?.email ?? textAt(claims, 'email') }
    },
    refresh: (refreshToken, limit) => request({ grant_type: 'refresh_token', refresh_token: refreshToken }, limit),
    async judge(idToken, subject) {
      try {
        const claims = await verifiedClaims(idToken, undefined)
        return textAt(claims, config.subject_claim ?? 'sub') === subject ? 'same user' : 'other user'
      } catch {
        return 'invalid' // as is one whose keys cannot be fetched now
      }
    },
  }
}

function headerOf(token: string): { alg?: string | undefined; kid?: string | undefined } {
  try {
    return decodeProtectedHeader(token)
  } catch {
    throw new UpstreamRefused('id_token_invalid')
  }
}

function hashFits(expected: string, accessToken: string, alg = ''): boolean {
  const bits = /(256|384|512)$/.exec(alg)?.[1]
  if (bits === undefined) return true
  const digest = createHash(`sha${bits}`).update(accessToken).digest()
  return digest.subarray(0, digest.length / 2).toString('base64url') === expected
}

function metadataOf(document: Readonly<Record<string, unknown>>, issuer: string): Metadata {
  const own = textAt(document, 'issuer')
  const problem = (text: string) => new ThvError('auth_provider_unavailable', `identity provider at ${issuer}: ${text}`)
  if (own === undefined || own.replace(/\/$/, '') !== issuer.replace(/\/$/, '')) throw problem('its document is of another issuer')
  const member = (name: string) => {
    const value = textAt(document, name)
    if (value === undefined || !URL.canParse(value)) throw problem(`its document names no ${name}`)
    return value
  }
  const methods = document['token_endpoint_auth_methods_supported']
  const isPost = Array.isArray(methods) && !methods.includes('client_secret_basic') && methods.includes('client_secret_post')
  return {
    issuer: own,
    authorizationEndpoint: member('authorization_endpoint'),
    tokenEndpoint: member('token_endpoint'),
    jwksUri: member('jwks_uri'),
    method: isPost ? 'post' : 'basic',
    namesItself: document['authorization_response_iss_parameter_supported'] === true,
  }
}
