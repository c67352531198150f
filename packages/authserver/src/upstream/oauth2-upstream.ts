import { createHash } from 'node:crypto'
import type { OAuth2UpstreamConfig } from '@thv/runconfig/auth-server-config'
import type { UpstreamDeps } from './oidc-upstream.ts'
import { authorizationUrl, clientSecret, generationOf, requestTokens, type TokenAnswer, userInfo } from './upstream-client.ts'
import { createUpstreamHttp, textAt } from './upstream-http.ts'
import type { UpstreamIdentity, UpstreamProvider } from './upstream-provider.ts'
import { UpstreamRefused } from './upstream-refused.ts'
import { type UpstreamClient, UpstreamRegistration } from './upstream-registration.ts'

/** A provider with OAuth 2 only: who the user is comes from its token answer or its userinfo endpoint. */
export function createOAuth2Upstream(
  name: string,
  config: OAuth2UpstreamConfig,
  options: { redirectUri: string; deps: UpstreamDeps },
): UpstreamProvider {
  const { redirectUri, deps } = options
  const { clock, env } = deps
  const { authorization_endpoint: endpoint, token_endpoint: url, client_id: fixedId = '', token_response_mapping: mapping } = config
  const provider = {
    name,
    issuer: new URL(endpoint).origin,
    allowPrivateIP: config.allow_private_ips,
    allowHttp: config.insecure_allow_http,
  }
  const http = createUpstreamHttp({ ...deps, provider })

  const registration =
    config.dcr_config && new UpstreamRegistration({ ...deps, name, config: config.dcr_config, redirectUri, scopes: config.scopes, http })

  async function client(): Promise<UpstreamClient> {
    if (registration !== undefined) return await registration.client()
    return { clientId: fixedId, secret: await clientSecret(config, env), method: 'post' }
  }

  async function request(grant: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<TokenAnswer> {
    return await requestTokens(http, { url, ...(await client()), mapping }, { grant, now: clock.now(), signal })
  }

  return {
    provider: name,
    get generation() {
      return generationOf(url, registration === undefined ? fixedId : registration.current?.clientId)
    },
    prepare: async () => void (await client()),
    redirectUri,
    origin: async () => new URL(endpoint).origin,
    async authorizationUrl(attempt) {
      const { clientId } = await client()
      return authorizationUrl(endpoint, { config, clientId, redirectUri, scopes: config.scopes }, { ...attempt, nonce: '' })
    },
    responseIssuer: async () => undefined,
    redeem: (code, { verifier }) => request({ grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier: verifier }),
    async identify({ answer, accessToken }): Promise<UpstreamIdentity> {
      const { identity_from_token: paths, userinfo: info } = config
      if (paths !== undefined) {
        const subject = textAt(answer, paths.subject_path)
        if (subject === undefined) throw new UpstreamRefused('no_subject')
        const at = (path: string | undefined) => (path === undefined ? undefined : textAt(answer, path))
        return { subject, name: at(paths.name_path), email: at(paths.email_path) }
      }
      if (info === undefined) return { subject: `token:${createHash('sha256').update(accessToken).digest('base64url')}` }
      const { subject, name: display, email } = await userInfo(http, info, accessToken)
      if (subject === undefined) throw new UpstreamRefused('no_subject')
      return { subject, name: display, email }
    },
    refresh: (refreshToken, limit) => request({ grant_type: 'refresh_token', refresh_token: refreshToken }, limit),
  }
}
