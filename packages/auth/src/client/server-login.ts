import { type Clock, systemClock } from '@thv/kernel/clock'
import { readBearerChallenge } from './bearer-challenge.ts'
import { type CredentialStore, loginFor, type StoredLogin, withLogin } from './credential-store.ts'
import { type LoginSteps, logIn } from './log-in.ts'
import { LoginFailed } from './login-failed.ts'
import type { FixedClient } from './oauth-client-id.ts'
import type { OAuthHttp } from './oauth-http.ts'
import { refreshLogin } from './refresh-login.ts'
import { discoverResource } from './resource-metadata.ts'

export interface ServerLoginOptions {
  /** URL of the MCP endpoint. */
  readonly server: string
  readonly http: OAuthHttp
  readonly store: CredentialStore
  /** Undefined: only stored tokens are used. */
  readonly steps: LoginSteps | undefined
  readonly fixed?: FixedClient | undefined
  /** Asked for beside those that the server wants. */
  readonly scopes?: readonly string[] | undefined
  readonly clock?: Clock | undefined
}

export interface RefusedCall {
  readonly status: number
  /** `WWW-Authenticate`. */
  readonly challenge: string | undefined
}

/** A server that still refuses after as many new tokens will refuse the next one too. */
const MAX_ROUNDS = 3

/** The client side of MCP authorization for one server: has its token, renews it, and logs the user in when the server wants another one. */
export class ServerLogin {
  readonly #options: ServerLoginOptions
  readonly #clock: Clock
  #rounds = 0
  /** The last refusal led to a refresh. */
  #hasRefreshed = false
  #login: StoredLogin | undefined

  constructor(options: ServerLoginOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
  }

  /** Access token for the next request; undefined where there is none. */
  async token(signal: AbortSignal): Promise<string | undefined> {
    const { store, server } = this.#options
    this.#login = loginFor(await store.read(), server)
    const login = this.#login
    if (login?.renewAt === undefined || login.renewAt > this.#clock.now()) return login?.accessToken
    return (await this.#refresh(login, signal))?.accessToken
  }

  /** Gets a token that fits what the server says. False: this is not about tokens, or a login is not possible. Throws LoginFailed. */
  async refused({ status, challenge }: RefusedCall, signal: AbortSignal): Promise<boolean> {
    const read = readBearerChallenge(challenge)
    const isStepUp = status === 403 && read?.error === 'insufficient_scope'
    if (status !== 401 && !isStepUp) return false
    if (++this.#rounds > MAX_ROUNDS) throw new LoginFailed(`the server still refuses the token after ${MAX_ROUNDS} new ones`)
    return await this.#renew({ isStepUp, scopes: read?.scopes, metadataUrl: read?.resourceMetadata }, signal)
  }

  /** Logs in without being asked. False: the server has no metadata that says where. */
  async logIn(signal: AbortSignal): Promise<boolean> {
    const { http, server } = this.#options
    if ((await discoverResource(http, { server, signal })) === undefined) return false
    return await this.#renew({ isStepUp: false, scopes: undefined, metadataUrl: undefined }, signal)
  }

  async #renew(wanted: { isStepUp: boolean; scopes: readonly string[] | undefined; metadataUrl: string | undefined }, signal: AbortSignal) {
    const { http, store, server, steps, fixed, scopes = [] } = this.#options
    const resource = await discoverResource(http, { server, metadataUrl: wanted.metadataUrl, signal })
    const before = this.#login
    // Tokens of an authorization server that the resource no longer names are not even renewed.
    const isKnown = before !== undefined && (resource === undefined || resource.authorizationServers.includes(before.issuer))
    // A server that refuses a renewed token too wants something else: the login of a user.
    const mayRefresh = isKnown && !wanted.isStepUp && !this.#hasRefreshed && before.refreshToken !== undefined
    this.#hasRefreshed = mayRefresh && (await this.#refresh(before, signal)) !== undefined
    if (this.#hasRefreshed) return true
    const credentials = await store.read()
    const shared = credentials.logins.find(
      (login) =>
        login.resource !== undefined && login.resource === resource?.resource && resource.authorizationServers.includes(login.issuer),
    )
    if (before === undefined && shared !== undefined) {
      // Another server of the same resource: its tokens are for this one too.
      await store.update(async (current) => withLogin(current, { ...shared, servers: [server] }), signal)
      return true
    }
    if (steps === undefined) return false
    const login = await logIn(http, {
      ...{ server, resource, steps, fixed, signal },
      clients: credentials.clients,
      scopes: [...(wanted.isStepUp && isKnown ? before.scopes : []), ...(wanted.scopes ?? resource?.scopes ?? []), ...scopes],
      now: this.#clock.now(),
    })
    await store.update(async (current) => withLogin(current, login), signal)
    return true
  }

  async #refresh(login: StoredLogin, signal: AbortSignal): Promise<StoredLogin | undefined> {
    const { http, store } = this.#options
    this.#login = await refreshLogin(http, store, { login, now: this.#clock.now(), signal })
    return this.#login
  }
}
