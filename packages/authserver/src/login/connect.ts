import type { Exchange } from '@thv/http/server/exchange'
import { sendMethodNotAllowed } from '@thv/http/server/respond'
import type { AuthServerConfig } from '@thv/runconfig/auth-server-config'
import type { AuthStore } from '@thv/store/auth/auth-store'
import type { Log } from '@thv/telemetry/log'
import type { Provider } from 'oidc-provider'
import type { ServerSecrets } from '../keys/server-secrets.ts'
import type { LoginEvents } from '../login-events.ts'
import { loginBase, PATHS } from '../paths/server-paths.ts'
import { browserOf } from './browser-cookie.ts'
import { clientLabel } from './client-label.ts'
import { type ConnectLink, type ConnectLinks, LINK_SECONDS } from './connect-links.ts'
import type { DirectLogin } from './direct-login.ts'
import { sendPage } from './http.ts'
import type { LoginSessions } from './login-session.ts'
import { connectPage, errorPage, notConnectedPage } from './pages.ts'
import type { UpstreamWalk } from './upstream-walk.ts'

export interface ConnectOptions {
  readonly config: AuthServerConfig
  readonly store: AuthStore
  readonly secrets: ServerSecrets
  readonly links: ConnectLinks
  readonly sessions: LoginSessions
  readonly direct: DirectLogin
  readonly walk: UpstreamWalk
  readonly log: Log
  readonly events: LoginEvents
  readonly provider: () => Provider
}

const CSRF = 'connect csrf'

/** GET and POST of `/oauth/connect/NAME`, which a call that needs the provider names. */
export type Connect = (exchange: Exchange, provider: string, form: URLSearchParams | undefined) => Promise<void>

/**
 * Leads the user of the link to the provider. Another user who opens it is refused: else someone could have another person connect an account, and
 * use it then. That person is asked first, as the provider may know them and ask nothing.
 */
export function createConnect(options: ConnectOptions): Connect {
  const { config, store, secrets, links, sessions, direct, walk, log, events } = options
  const base = new URL(loginBase(config))
  const isSecure = base.protocol === 'https:'
  const prefix = base.pathname.replace(/\/$/, '')

  /** The application whose session gets to use the provider. Undefined: the session has ended. */
  async function applicationOf({ family }: ConnectLink): Promise<string | undefined> {
    const clientId = (await store.get('grant', family))?.value['clientId']
    if (typeof clientId !== 'string') return undefined
    const client = await options.provider().Client.find(clientId)
    return clientLabel(clientId, client?.clientName) ?? 'An application without a name'
  }

  async function ask(exchange: Exchange, link: ConnectLink, { action, browser }: { action: string; browser: string }): Promise<void> {
    const application = await applicationOf(link)
    if (application === undefined) return sendPage(exchange.response, 400, errorPage('The session of the application has ended.'))
    const { provider, id } = link
    const origin = await walk.find(provider)?.origin()
    const csrf = secrets.sign(CSRF, `${id} ${browser}`)
    sendPage(
      exchange.response,
      200,
      connectPage({ application, provider, action, csrf, formTargets: origin === undefined ? [] : [origin] }),
    )
  }

  return async (exchange, provider, form) => {
    const { request, response, method } = exchange
    if (method !== 'GET' && method !== 'POST') return sendMethodNotAllowed(exchange, 'GET, POST')
    const sealed = new URLSearchParams(exchange.query).get('link') ?? ''
    const link = links.open(sealed, provider)
    if (link === undefined || walk.find(provider) === undefined)
      return sendPage(response, 400, errorPage('This link has expired or is not complete. Repeat the call in your application.'))
    const browser = browserOf(request, isSecure)
    if (browser.setCookie !== undefined) response.setHeader('Set-Cookie', browser.setCookie)
    const action = `${prefix}${PATHS.connect}${provider}?link=${sealed}`
    const session = sessions.read(request, browser.id)
    if (session !== undefined && session.account !== link.account) {
      log.warn('link of another user refused', { provider })
      events.report({ type: 'auth_consent', outcome: 'denied', account: session.account, provider, reason: 'the link is for another user' })
      return sendPage(response, 403, errorPage('This link is for another user. Do not use links that others send you.'))
    }
    if (method === 'GET') {
      if (session === undefined) return await direct.identify({ request, response }, browser.id, action)
      return await ask(exchange, link, { action, browser: browser.id })
    }
    if (session === undefined || !secrets.verifies(CSRF, `${link.id} ${browser.id}`, form?.get('csrf') ?? ''))
      return sendPage(response, 403, errorPage('This page was not opened in this browser, or has expired.'))
    if (!(await store.addOnce('replay', `connect ${link.id}`, LINK_SECONDS * 1_000)))
      return sendPage(response, 400, errorPage('This link was used before. Repeat the call in your application.'))
    const client = await applicationOf(link)
    const isAllowed = form?.get('decision') === 'allow' && client !== undefined
    events.report({ type: 'auth_consent', outcome: isAllowed ? 'success' : 'denied', account: link.account, client, provider })
    if (!isAllowed) return sendPage(response, 200, notConnectedPage(provider))
    await direct.connect({ request, response }, browser.id, link)
  }
}
