import { type CredentialStore, isSameLogin, type StoredLogin, withLogin, withoutLogin } from './credential-store.ts'
import { LoginFailed } from './login-failed.ts'
import type { OAuthHttp } from './oauth-http.ts'
import { requestTokens, type TokenSet } from './token-request.ts'

/**
 * Replaces the tokens of a login. Only one process does so at a time, and one that waited takes what the other got: a refresh token may be good
 * for one use. Undefined: the user has to log in again. Throws LoginFailed when the server could not be asked.
 */
export async function refreshLogin(
  http: OAuthHttp,
  store: CredentialStore,
  { login, now, signal }: { login: StoredLogin; now: number; signal: AbortSignal },
): Promise<StoredLogin | undefined> {
  let result: StoredLogin | undefined
  await store.update(async (credentials) => {
    const current = credentials.logins.find((each) => isSameLogin(each, login))
    if (current === undefined || current.accessToken !== login.accessToken) {
      result = current
      return credentials
    }
    result = await refreshed(http, current, { now, signal })
    return result === undefined ? withoutLogin(credentials, current) : withLogin(credentials, result)
  }, signal)
  return result
}

async function refreshed(
  http: OAuthHttp,
  login: StoredLogin,
  { now, signal }: { now: number; signal: AbortSignal },
): Promise<StoredLogin | undefined> {
  const { client, issuer, tokenEndpoint, resource, refreshToken } = login
  if (refreshToken === undefined) return undefined
  try {
    const form = { grant_type: 'refresh_token', refresh_token: refreshToken, resource }
    return withTokens(login, await requestTokens(http, { issuer, tokenEndpoint }, { client, form, signal }), now)
  } catch (error) {
    // The server refused: neither this token nor a repetition will do.
    if (error instanceof LoginFailed && error.oauthError !== undefined) return undefined
    throw error
  }
}

/** A token may take a while to its server, and clocks differ. */
const EARLY_MS = 30_000

/** An answer without a refresh token keeps the one there is (RFC 6749 §6). */
export function withTokens<T extends Pick<StoredLogin, 'refreshToken'>>(login: T, tokens: TokenSet, now: number) {
  const { accessToken, expiresInMs, refreshToken = login.refreshToken } = tokens
  const renewAt = expiresInMs === undefined ? undefined : now + expiresInMs - Math.min(EARLY_MS, expiresInMs / 2)
  return { ...login, accessToken, refreshToken, renewAt }
}
