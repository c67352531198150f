import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { ThvError } from '@thv/kernel/errors'
import { mountedPath } from '@thv/kernel/mounted-path'
import type { TokenResponseMapping, UpstreamClientConfig, UserInfoConfig } from '@thv/runconfig/auth-server-config'
import type { UpstreamTokenSet } from '../upstream-tokens.ts'
import { textAt, type UpstreamHttp } from './upstream-http.ts'
import type { UpstreamAttempt, UpstreamIdentity } from './upstream-provider.ts'
import { UpstreamRefused } from './upstream-refused.ts'

export type Env = Readonly<Record<string, string | undefined>>
export type TokenAnswer = UpstreamTokenSet & { readonly answer: Readonly<Record<string, unknown>> }

/** Undefined: a public client. Read for every request, so that a file can be replaced. */
export async function clientSecret(config: UpstreamClientConfig, env: Env): Promise<string | undefined> {
  const { client_secret_file: file, client_secret_env_var: variable } = config
  if (file !== undefined) return (await readFile(mountedPath(file), 'utf8')).trim()
  if (variable === undefined) return undefined
  const secret = env[variable]
  if (secret === undefined || secret === '') throw new ThvError('run_config_invalid', `embedded_auth_server_config: ${variable} is not set`)
  return secret
}

export interface TokenRequest {
  readonly url: string
  readonly clientId: string
  readonly secret: string | undefined
  readonly method: 'basic' | 'post'
  readonly mapping?: TokenResponseMapping | undefined
}

/** Sends a grant to a provider's token endpoint (RFC 6749 §4.1.3, §6) and reads the answer. */
export async function requestTokens(
  http: UpstreamHttp,
  { url, clientId, secret, method, mapping }: TokenRequest,
  { grant, now, signal }: { grant: Readonly<Record<string, string>>; now: number; signal?: AbortSignal | undefined },
): Promise<TokenAnswer> {
  const form = new URLSearchParams({ ...grant })
  const headers: string[] = []
  if (secret !== undefined && method === 'basic') headers.push('Authorization', basic(clientId, secret))
  else {
    form.set('client_id', clientId)
    if (secret !== undefined) form.set('client_secret', secret)
  }
  const answer = await http.json({ url, form, headers }, signal)
  const path = { accessToken: 'access_token', refreshToken: 'refresh_token', expiresIn: 'expires_in', scope: 'scope' }
  const accessToken = textAt(answer, mapping?.access_token_path ?? path.accessToken)
  if (accessToken === undefined) throw new UpstreamRefused('no_access_token')
  const seconds = Number(textAt(answer, mapping?.expires_in_path ?? path.expiresIn))
  return {
    answer,
    accessToken,
    refreshToken: textAt(answer, mapping?.refresh_token_path ?? path.refreshToken),
    idToken: textAt(answer, 'id_token'),
    expiresAt: Number.isFinite(seconds) && seconds > 0 ? now + seconds * 1_000 : undefined,
    scope: textAt(answer, mapping?.scope_path ?? path.scope),
  }
}

/** RFC 6749 §2.3.1: both parts are form-encoded before they are joined. */
function basic(id: string, secret: string): string {
  const encoded = (text: string) => new URLSearchParams({ '': text }).toString().slice(1)
  return `Basic ${Buffer.from(`${encoded(id)}:${encoded(secret)}`).toString('base64')}`
}

export function authorizationUrl(
  endpoint: string,
  {
    config,
    clientId,
    redirectUri,
    scopes,
  }: { config: UpstreamClientConfig; clientId: string; redirectUri: string; scopes: readonly string[] },
  { state, verifier, nonce }: UpstreamAttempt & { nonce: string },
): string {
  const url = new URL(endpoint)
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  const params: Record<string, string> = {
    ...config.additional_authorization_params,
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
    state,
    ...(nonce !== '' && { nonce }),
    code_challenge: challenge,
    code_challenge_method: 'S256',
  }
  for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value)
  return url.href
}

/** The user, as the userinfo endpoint describes it. */
export async function userInfo(http: UpstreamHttp, info: UserInfoConfig, accessToken: string): Promise<Partial<UpstreamIdentity>> {
  const headers = ['Authorization', `Bearer ${accessToken}`, ...Object.entries(info.additional_headers).flat()]
  const document = await http.json({ url: info.endpoint_url, method: info.http_method, headers })
  const first = (paths: readonly string[]) => paths.map((path) => textAt(document, path)).find((value) => value !== undefined)
  const { subject_fields: subject, name_fields: name, email_fields: email } = info.field_mapping
  const found = first(subject)
  return { ...(found !== undefined && { subject: found }), name: first(name), email: first(email) }
}

/** Changes when the client that we are at the provider does: tokens of the one before cannot be refreshed. */
export function generationOf(...parts: readonly (string | undefined)[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 16)
}
