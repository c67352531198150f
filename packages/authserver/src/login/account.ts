import type { Exchange } from '@thv/http/server/exchange'
import { sendMethodNotAllowed } from '@thv/http/server/respond'
import type { AuthServerConfig } from '@thv/runconfig/auth-server-config'
import type { ServerSecrets } from '../keys/server-secrets.ts'
import { loginBase, PATHS } from '../paths/server-paths.ts'
import { cookieLine, knownBrowser } from './browser-cookie.ts'
import { CONSENT_COOKIE, CONSENT_SECONDS, type Consents } from './consents.ts'
import { sendPage } from './login-flow.ts'
import { accountPage, errorPage } from './pages.ts'

export interface AccountOptions {
  readonly config: AuthServerConfig
  readonly consents: Consents
  readonly secrets: ServerSecrets
  /** Body of a POST. */
  readonly form: Buffer | undefined
}

const CSRF = 'account csrf'

/** Shows what this browser has allowed, and withdraws it. */
export async function showAccount(exchange: Exchange, { config, consents, secrets, form }: AccountOptions): Promise<void> {
  const { request, response, method } = exchange
  if (method !== 'GET' && method !== 'POST') return sendMethodNotAllowed(exchange, 'GET, POST')
  const base = new URL(loginBase(config))
  const action = `${base.pathname.replace(/\/$/, '')}${PATHS.account}`
  const isSecure = base.protocol === 'https:'
  const browser = knownBrowser(request, isSecure)
  if (method === 'POST') {
    const fields = new URLSearchParams(form?.toString('utf8') ?? '')
    if (browser === undefined || !secrets.verifies(CSRF, browser, fields.get('csrf') ?? ''))
      return sendPage(response, 403, errorPage('This form was not opened in this browser.'))
    const value = consents.withdraw(request, browser, fields.get('withdraw') ?? '')
    response.setHeader('Set-Cookie', cookieLine(CONSENT_COOKIE, value, { isSecure, maxAgeSeconds: CONSENT_SECONDS }))
    response.writeHead(303, { Location: action, 'Content-Length': '0', 'Cache-Control': 'no-store' }).end()
    return
  }
  const held = browser === undefined ? [] : consents.list(request, browser)
  const rows = held.map(({ id, label, until }) => ({ id, client: label, until: new Date(until * 1_000).toISOString().slice(0, 10) }))
  sendPage(response, 200, accountPage({ consents: rows, action, csrf: browser === undefined ? '' : secrets.sign(CSRF, browser) }))
}
