import type { Exchange } from '@thv/http/server/exchange'
import { sendMethodNotAllowed } from '@thv/http/server/respond'
import type { AuthServerConfig } from '@thv/runconfig/auth-server-config'
import type { AuthStore } from '@thv/store/auth/auth-store'
import type { Log } from '@thv/telemetry/log'
import type { ServerSecrets } from '../keys/server-secrets.ts'
import type { LoginEvents } from '../login-events.ts'
import { loginBase, PATHS } from '../paths/server-paths.ts'
import type { UpstreamTokens } from '../upstream-tokens.ts'
import { type AccountView, accountPage } from './account-page.ts'
import type { AccountSessions } from './account-sessions.ts'
import { browserOf, cookieLine } from './browser-cookie.ts'
import { CONSENT_COOKIE, CONSENT_SECONDS, type Consents } from './consents.ts'
import type { DirectLogin } from './direct-login.ts'
import { redirect, sendPage } from './http.ts'
import { LOGIN_COOKIE, type LoginSession, type LoginSessions } from './login-session.ts'
import { errorPage } from './pages.ts'
import type { UpstreamWalk } from './upstream-walk.ts'

export interface AccountOptions {
  readonly config: AuthServerConfig
  readonly store: AuthStore
  readonly secrets: ServerSecrets
  readonly consents: Consents
  readonly sessions: LoginSessions
  readonly accounts: AccountSessions
  readonly direct: DirectLogin
  readonly walk: UpstreamWalk
  readonly tokens: UpstreamTokens
  /** How long an ended session has to be remembered. */
  readonly familyMs: number
  readonly log: Log
  readonly events: LoginEvents
}

/** GET and POST of `/oauth/account`. */
export type Account = (exchange: Exchange, form: URLSearchParams | undefined) => Promise<void>

const CSRF = 'account csrf'
const LISTED = 50

/** Shows what a browser has allowed and, after a login, the providers and sessions of its user; ends each of them. */
export function createAccount(options: AccountOptions): Account {
  const { config, store, secrets, consents, sessions, accounts, direct, walk, tokens, familyMs, log, events } = options
  const base = new URL(loginBase(config))
  const isSecure = base.protocol === 'https:'
  const action = `${base.pathname.replace(/\/$/, '')}${PATHS.account}`
  const day = (ms: number) => new Date(ms).toISOString().slice(0, 10)
  /** Changes with the user: a form of one user does nothing for another. */
  const csrfOf = (browser: string, session: LoginSession | undefined) => `${browser} ${session?.account ?? ''}`

  async function userOf({ account, name, email }: LoginSession): Promise<AccountView['user']> {
    const [connected, live] = await Promise.all([tokens.connected(account), accounts.list(account)])
    return {
      label: [name, email].filter((part) => part !== undefined).join(', ') || account,
      providers: connected,
      olderSessions: Math.max(0, live.length - LISTED),
      sessions: live.slice(0, LISTED).map(({ family, client = 'An application without a name', since, providers }) => ({
        ...{ id: family, client, providers },
        since: day(since),
      })),
    }
  }

  async function show({ request, response }: Exchange, browser: string): Promise<void> {
    const session = sessions.read(request, browser)
    const held = consents.list(request, browser)
    const origin = session === undefined ? await walk.first.origin().catch(() => undefined) : undefined
    const view: AccountView = {
      user: session && (await userOf(session)),
      consents: held.map(({ id, label, until }) => ({ id, client: label, until: day(until * 1_000) })),
      action,
      csrf: secrets.sign(CSRF, csrfOf(browser, session)),
      formTargets: origin === undefined ? [] : [origin],
    }
    sendPage(response, 200, accountPage(view))
  }

  async function disconnect(account: string, provider: string): Promise<void> {
    if (walk.find(provider) === undefined) return
    await tokens.remove({ account, provider })
    log.info('provider disconnected', { provider, account })
    events.report({ type: 'auth_revocation', outcome: 'success', account, provider })
  }

  async function end(account: string, family: string): Promise<void> {
    const own = (await accounts.list(account)).find((session) => session.family === family)
    if (own === undefined) return // of another user, or over
    await store.revokeFamily(family, familyMs)
    log.info('session ended by its user', { account })
    events.report({ type: 'auth_revocation', outcome: 'success', account, client: own.client })
  }

  /** All that the list of the user has, also those that the page does not show. */
  async function endAll(account: string): Promise<void> {
    const all = await accounts.list(account)
    for (const { family } of all) await store.revokeFamily(family, familyMs)
    log.info('all sessions ended by their user', { account, sessions: all.length })
    for (const { client } of all) events.report({ type: 'auth_revocation', outcome: 'success', account, client })
  }

  return async (exchange, form) => {
    const { request, response, method } = exchange
    if (method !== 'GET' && method !== 'POST') return sendMethodNotAllowed(exchange, 'GET, POST')
    const { id: browser, setCookie } = browserOf(request, isSecure)
    if (setCookie !== undefined) response.setHeader('Set-Cookie', setCookie)
    if (form === undefined) return await show(exchange, browser)
    const session = sessions.read(request, browser)
    if (setCookie !== undefined || !secrets.verifies(CSRF, csrfOf(browser, session), form.get('csrf') ?? ''))
      return sendPage(response, 403, errorPage('This form was not opened in this browser, or has expired.'))
    if (form.has('login')) return await direct.identify({ request, response }, browser, action)
    const [consent, provider, family] = [form.get('withdraw'), form.get('disconnect'), form.get('end')]
    if (consent !== null) {
      const value = consents.withdraw(request, browser, consent)
      response.setHeader('Set-Cookie', cookieLine(CONSENT_COOKIE, value, { isSecure, maxAgeSeconds: CONSENT_SECONDS }))
    } else if (form.has('logout')) response.setHeader('Set-Cookie', cookieLine(LOGIN_COOKIE, '', { isSecure, maxAgeSeconds: 0 }))
    else if (session !== undefined && provider !== null) await disconnect(session.account, provider)
    else if (session !== undefined && family !== null) await end(session.account, family)
    else if (session !== undefined && form.has('end-all')) await endAll(session.account)
    redirect(response, action)
  }
}
