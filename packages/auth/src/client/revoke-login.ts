import type { StoredLogin } from './credential-store.ts'
import { LoginFailed } from './login-failed.ts'
import type { OAuthHttp } from './oauth-http.ts'
import { authenticate } from './token-request.ts'

/** Tells the authorization server that the tokens are not used any more (RFC 7009). False: it did not answer, or has no endpoint for it. */
export async function revokeLogin(http: OAuthHttp, login: StoredLogin, signal: AbortSignal): Promise<boolean> {
  const { client, revocationEndpoint, refreshToken, accessToken } = login
  if (revocationEndpoint === undefined) return false
  const body = new URLSearchParams({
    token: refreshToken ?? accessToken,
    token_type_hint: refreshToken === undefined ? 'access_token' : 'refresh_token',
  })
  const authorization = authenticate(client, body)
  try {
    return (await http.send({ url: revocationEndpoint, body, authorization, signal })).status === 200
  } catch (error) {
    if (error instanceof LoginFailed) return false
    throw error
  }
}
