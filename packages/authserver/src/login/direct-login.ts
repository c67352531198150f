import { errorMessage, isThvError } from '@thv/kernel/errors'
import type { AuthServerConfig } from '@thv/runconfig/auth-server-config'
import type { Log } from '@thv/telemetry/log'
import type { LoginEvents } from '../login-events.ts'
import { loginBase } from '../paths/server-paths.ts'
import type { UpstreamAttempt, UpstreamProvider } from '../upstream/upstream-provider.ts'
import { UpstreamRefused } from '../upstream/upstream-refused.ts'
import type { UpstreamTokens } from '../upstream-tokens.ts'
import { browserHash, knownBrowser } from './browser-cookie.ts'
import type { ConnectLink } from './connect-links.ts'
import { type Http, redirect, sendPage } from './http.ts'
import type { LoginSessions } from './login-session.ts'
import { connectedPage, errorPage } from './pages.ts'
import type { BroughtAnswer, UpstreamWalk } from './upstream-walk.ts'

export interface DirectLoginOptions {
  readonly config: AuthServerConfig
  readonly walk: UpstreamWalk
  readonly sessions: LoginSessions
  readonly tokens: UpstreamTokens
  readonly log: Log
  readonly events: LoginEvents
}

/** A direct login that waits for the user to come back. */
export interface DirectPending extends UpstreamAttempt {
  readonly direct: DirectAim
  readonly provider: string
  readonly browser: string
}

/** `page`: the user wants to see a page of this server. `link`: the user connects a provider. */
type DirectAim = { readonly page: string } | { readonly link: ConnectLink }

/** A login that no client waits for. */
export interface DirectLogin {
  /** The first provider says who the user is, and the browser goes on to a page of this server. */
  identify(http: Http, browser: string, page: string): Promise<void>
  /** The user of the link, who has agreed, logs in to its provider. */
  connect(http: Http, browser: string, link: ConnectLink): Promise<void>
  returned(http: Http, pending: DirectPending, answer: BroughtAnswer): Promise<void>
}

export function createDirectLogin(options: DirectLoginOptions): DirectLogin {
  const { config, walk, sessions, tokens, log, events } = options
  const isSecure = loginBase(config).startsWith('https:')

  async function start(http: Http, browser: string, { provider, direct }: { provider: string; direct: DirectAim }): Promise<void> {
    await walk.start(http, provider, { direct, provider, browser: browserHash(browser) })
  }

  async function conclude(
    http: Http,
    upstream: UpstreamProvider,
    { pending, code }: { pending: DirectPending; code: string },
  ): Promise<void> {
    const { direct } = pending
    const { provider } = upstream
    const browser = knownBrowser(http.request, isSecure) ?? ''
    if ('page' in direct) {
      const { identity, account } = await walk.redeem(upstream, pending, { code })
      events.report({ type: 'auth_login', outcome: 'success', provider, account })
      const { name, email } = identity
      http.response.setHeader('Set-Cookie', sessions.cookie(browser, { account, name, email, providers: [provider] }))
      return redirect(http.response, direct.page)
    }
    const { account, family } = direct.link
    await walk.redeem(upstream, pending, { code, account })
    await tokens.join(family, provider)
    log.info('provider connected', { provider, account })
    events.report({ type: 'auth_login', outcome: 'success', provider, account })
    const session = sessions.read(http.request, browser)
    if (session?.account === account)
      http.response.setHeader(
        'Set-Cookie',
        sessions.cookie(browser, { ...session, providers: [...new Set([...session.providers, provider])] }),
      )
    sendPage(http.response, 200, connectedPage(provider))
  }

  return {
    identify: (http, browser, page) => start(http, browser, { provider: walk.first.provider, direct: { page } }),
    connect: (http, browser, link) => start(http, browser, { provider: link.provider, direct: { link } }),
    async returned(http, pending, answer) {
      const { provider } = pending
      const { response } = http
      const upstream = walk.find(provider)
      if (upstream === undefined) return sendPage(response, 400, errorPage('This login has expired.'))
      const denied = (reason: string) => {
        log.info('login refused upstream', { provider, reason })
        events.report({ type: 'auth_login', outcome: 'denied', provider, reason })
        sendPage(response, 403, errorPage(`${provider} did not confirm the login.`))
      }
      try {
        const code = await walk.code(upstream, answer)
        if (code === undefined) return denied('the provider sent no code')
        await conclude(http, upstream, { pending, code })
      } catch (error) {
        if (error instanceof UpstreamRefused) return denied(error.message)
        if (!isThvError(error, 'auth_provider_unavailable')) throw error
        log.warn('identity provider cannot be used', { provider, error: errorMessage(error) })
        events.report({ type: 'auth_login', outcome: 'failure', provider, reason: 'the provider cannot be used' })
        sendPage(response, 503, errorPage(`${provider} does not answer. Try again in a moment.`))
      }
    },
  }
}
