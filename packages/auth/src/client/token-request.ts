import type { UnknownObject } from '@thv/kernel/json'
import { errorCodeOf, LoginFailed } from './login-failed.ts'
import type { OAuthClientId } from './oauth-client-id.ts'
import { type OAuthHttp, stringOf } from './oauth-http.ts'
import type { ServerMetadata } from './server-metadata.ts'

/** Answer of a token endpoint (RFC 6749 §5.1). */
export interface TokenSet {
  readonly accessToken: string
  readonly refreshToken: string | undefined
  /** Undefined: the server does not say. */
  readonly expiresInMs: number | undefined
  /** Undefined: those that were asked for. */
  readonly scopes: readonly string[] | undefined
  readonly idToken: string | undefined
}

export interface TokenQuestion {
  readonly client: OAuthClientId
  /** `grant_type` and its parameters. */
  readonly form: Readonly<Record<string, string | undefined>>
  readonly signal?: AbortSignal | undefined
}

export type TokenServer = Pick<ServerMetadata, 'issuer' | 'tokenEndpoint'>

/** The characters of RFC 6750 §2.1, and no more of them than servers accept in a header. */
const TOKEN = /^[\w.~+/-]{1,16384}=*$/

/** Throws LoginFailed; `oauthError` says whether the server refused. */
export async function requestTokens(http: OAuthHttp, server: TokenServer, question: TokenQuestion): Promise<TokenSet> {
  const { client, signal } = question
  const body = new URLSearchParams()
  for (const [name, value] of Object.entries(question.form)) if (value !== undefined) body.set(name, value)
  const authorization = authenticate(client, body)
  const { status, json } = await http.send({ url: server.tokenEndpoint, body, authorization, signal })
  if (status !== 200) {
    // A server that is busy has refused nothing.
    const oauthError = status < 500 && status !== 429 ? errorCodeOf(json?.['error']) : undefined
    throw new LoginFailed(`the token endpoint of ${server.issuer} answered HTTP ${status}${oauthError ? ` ${oauthError}` : ''}`, {
      oauthError,
    })
  }
  return readTokens(json, server)
}

function readTokens(json: UnknownObject | undefined, { issuer }: TokenServer): TokenSet {
  const accessToken = stringOf(json?.['access_token'])
  if (accessToken === undefined || !TOKEN.test(accessToken))
    throw new LoginFailed(`the token endpoint of ${issuer} sent no usable access_token`)
  if (stringOf(json?.['token_type'])?.toLowerCase() !== 'bearer') throw new LoginFailed(`the token of ${issuer} is not a bearer token`)
  const seconds = Number(json?.['expires_in'])
  return {
    accessToken,
    refreshToken: stringOf(json?.['refresh_token']),
    expiresInMs: json?.['expires_in'] !== undefined && seconds > 0 && Number.isFinite(seconds) ? seconds * 1_000 : undefined,
    scopes: stringOf(json?.['scope'])?.split(' '),
    idToken: stringOf(json?.['id_token']),
  }
}

/** Puts the client into the form, or into the header that is returned. */
export function authenticate({ clientId, clientSecret, authMethod }: OAuthClientId, form: URLSearchParams): string | undefined {
  if (authMethod === 'client_secret_basic' && clientSecret !== undefined) {
    // RFC 6749 §2.3.1: both parts are form-encoded before they are joined.
    const [id, secret] = [clientId, clientSecret].map((text) => new URLSearchParams({ '': text }).toString().slice(1))
    return `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`
  }
  form.set('client_id', clientId)
  if (authMethod === 'client_secret_post' && clientSecret !== undefined) form.set('client_secret', clientSecret)
  return undefined
}
