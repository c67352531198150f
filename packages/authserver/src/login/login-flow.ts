import { isThvError } from '@thv/kernel/errors'
import type { AuthServerConfig } from '@thv/runconfig/auth-server-config'
import type { AuthStore } from '@thv/store/auth/auth-store'
import type { Log } from '@thv/telemetry/log'
import type { Provider, ProviderInteraction } from 'oidc-provider'
import { redirectKind } from '../clients/redirect-uri.ts'
import type { ServerSecrets } from '../keys/server-secrets.ts'
import type { LoginEvents } from '../login-events.ts'
import { loginBase, PATHS } from '../paths/server-paths.ts'
import type { LoginRecord } from '../provider/login-record.ts'
import type { UpstreamAttempt } from '../upstream/upstream-provider.ts'
import { UpstreamRefused } from '../upstream/upstream-refused.ts'
import type { UpstreamTokens } from '../upstream-tokens.ts'
import { browserHash, browserOf, cookieLine, knownBrowser } from './browser-cookie.ts'
import { clientLabel } from './client-label.ts'
import { CONSENT_COOKIE, CONSENT_SECONDS, type ConsentSubject, type Consents } from './consents.ts'
import type { DirectLogin, DirectPending } from './direct-login.ts'
import { type Http, redirect, sendPage } from './http.ts'
import { isOnDemand, planLogin, providersFor } from './login-plan.ts'
import type { LoginSessions } from './login-session.ts'
import { consentPage, errorPage } from './pages.ts'
import type { UpstreamWalk } from './upstream-walk.ts'

export interface LoginFlowOptions {
  readonly config: AuthServerConfig
  readonly store: AuthStore
  readonly secrets: ServerSecrets
  readonly consents: Consents
  readonly sessions: LoginSessions
  readonly walk: UpstreamWalk
  readonly direct: DirectLogin
  readonly tokens: UpstreamTokens
  readonly log: Log
  readonly events: LoginEvents
  readonly provider: () => Provider
}

/** A login that waits for the user to come back from a provider. */
interface Pending extends UpstreamAttempt {
  readonly uid: string
  /** Providers that are still to come; the first of them is asked. */
  readonly chain: readonly string[]
  readonly browser: string
  /** The user and the providers so far. Absent: the first provider of the chain says who the user is. */
  readonly login?: LoginRecord
  /** At least one provider of this login went well. */
  readonly hasWalked: boolean
}

/** A consent that the user is asked for. */
interface Asked {
  readonly uid: string
  readonly subject: ConsentSubject & { readonly clientName: string | undefined }
  readonly browser: string
}

type Progress = Omit<Pending, keyof UpstreamAttempt>

const CSRF = 'csrf'

/** From the consent page over each provider in turn to the end of the interaction that the library has begun. */
export interface LoginFlow {
  /** GET and POST of `/oauth/login/UID`. `form`: of a POST. */
  interaction(http: Http, form: URLSearchParams | undefined): Promise<void>
  /** `path`: that the provider sent the user back to, at this server. */
  callback(http: Http, query: URLSearchParams, path: string): Promise<void>
}

export function createLoginFlow(options: LoginFlowOptions): LoginFlow {
  const { config, store, secrets, consents, sessions, walk, direct, tokens, log, events } = options
  const base = new URL(loginBase(config))
  const isSecure = base.protocol === 'https:'
  const prefix = base.pathname.replace(/\/$/, '')

  /** Goes on to the next provider, or ends the login. A provider on demand that cannot be asked is left out. */
  async function advance(http: Http, progress: Progress, problem = 'temporarily_unavailable'): Promise<void> {
    const [provider, ...rest] = progress.chain
    if (provider === undefined) return await conclude(http, progress, problem)
    try {
      await walk.start(http, provider, progress)
    } catch (error) {
      if (!isOnDemand(provider, config.upstreams) || !isThvError(error, 'auth_provider_unavailable')) throw error
      log.warn('login goes on without a provider', { provider, error: error.message })
      await advance(http, { ...progress, chain: rest })
    }
  }

  async function conclude(http: Http, { uid, login, hasWalked }: Progress, problem: string): Promise<void> {
    if (login === undefined || !hasWalked)
      return await finish(http, uid, { error: problem, error_description: 'the login at the provider was not completed' })
    const browser = knownBrowser(http.request, isSecure)
    if (browser !== undefined) http.response.setHeader('Set-Cookie', sessions.cookie(browser, login))
    await finish(http, uid, { login: { accountId: login.account, remember: false }, thv: login })
  }

  /** Ends the interaction: the library goes on where the browser started. */
  async function finish(http: Http, uid: string, result: object): Promise<void> {
    const interaction = await options.provider().Interaction.find(uid)
    if (interaction === undefined) return sendPage(http.response, 400, errorPage('This login has expired.'))
    interaction.result = result
    await interaction.persist()
    redirect(http.response, interaction.returnTo)
  }

  async function subjectOf({ params }: ProviderInteraction): Promise<Asked['subject']> {
    const clientId = String(params['client_id'])
    const client = await options.provider().Client.find(clientId)
    const scopes = String(params['scope'] ?? '')
      .split(' ')
      .filter(Boolean)
    return {
      clientId,
      clientName: clientLabel(clientId, client?.clientName),
      redirectUri: String(params['redirect_uri']),
      scopes,
      providers: providersFor(scopes, config.upstreams),
    }
  }

  async function askConsent(http: Http, { uid, subject, browser }: Asked): Promise<void> {
    // The form leads to the first provider or, in a session, to one of those that a scope names.
    const origins = await Promise.allSettled(subject.providers.map((provider) => walk.find(provider)?.origin()))
    const [first] = origins
    if (first?.status === 'rejected') throw first.reason
    const view = {
      ...subject,
      recipient: recipientOf(subject.redirectUri),
      action: `${prefix}${PATHS.login}${uid}`,
      csrf: secrets.sign(CSRF, `${uid} ${browser}`),
      formTargets: [
        ...new Set(origins.flatMap((each) => (each.status === 'fulfilled' ? (each.value ?? []) : []))),
        formTarget(subject.redirectUri),
      ],
    }
    sendPage(http.response, 200, consentPage(view))
  }

  return {
    async interaction(http, form) {
      const { request, response } = http
      const interaction = await options.provider().interactionDetails(request, response)
      const browser = browserOf(request, isSecure)
      const cookies = browser.setCookie === undefined ? [] : [browser.setCookie]
      const subject = await subjectOf(interaction)
      const begin = async () => {
        const { chain, session: login } = await planLogin(subject.scopes, sessions.read(request, browser.id), { ...config, tokens })
        await advance(http, { uid: interaction.uid, chain, browser: browserHash(browser.id), hasWalked: false, ...(login && { login }) })
      }
      if (form === undefined) {
        response.setHeader('Set-Cookie', cookies)
        if (browser.setCookie === undefined && consents.holds(request, browser.id, subject)) return await begin()
        return await askConsent(http, { uid: interaction.uid, subject, browser: browser.id })
      }
      if (browser.setCookie !== undefined || !secrets.verifies(CSRF, `${interaction.uid} ${browser.id}`, form.get('csrf') ?? ''))
        return sendPage(response, 403, errorPage('This page was not opened in this browser, or has expired.'))
      if (form.get('decision') !== 'allow') {
        log.info('consent denied', { client: subject.clientName })
        events.report({ type: 'auth_consent', outcome: 'denied', client: subject.clientName })
        return await finish(http, interaction.uid, { error: 'access_denied', error_description: 'the user denied access' })
      }
      const label = subject.clientName ?? recipientOf(subject.redirectUri)
      const value = consents.grant(request, browser.id, { subject, label })
      response.setHeader('Set-Cookie', cookieLine(CONSENT_COOKIE, value, { isSecure, maxAgeSeconds: CONSENT_SECONDS }))
      events.report({ type: 'auth_consent', outcome: 'success', client: subject.clientName })
      log.info('consent given', { client: subject.clientName, providers: subject.providers })
      await begin()
    },

    async callback(http, query, path) {
      const { request, response } = http
      const state = query.get('state') ?? ''
      const browser = knownBrowser(request, isSecure)
      if (state === '' || query.getAll('state').length > 1 || query.getAll('code').length > 1)
        return sendPage(response, 400, errorPage('The answer of the identity provider has no usable state.'))
      if (browser === undefined) return sendPage(response, 400, errorPage('This login was not started in this browser.'))
      const record = await store.get('pending', state)
      const stored = record?.value as unknown as Pending | DirectPending | undefined
      // Before it is taken: a callback in another browser must not end the login of the right one.
      if (stored !== undefined && stored.browser !== browserHash(browser))
        return sendPage(response, 400, errorPage('This login was not started in this browser.'))
      const pending = (await store.take('pending', state)) as unknown as Pending | DirectPending | undefined
      if (pending === undefined) return sendPage(response, 400, errorPage('This login has expired or was completed before.'))
      if ('direct' in pending) return await direct.returned(http, pending, { query, path })
      const [provider = '', ...rest] = pending.chain
      const upstream = walk.find(provider)
      if (upstream === undefined) return sendPage(response, 400, errorPage('This login has expired.'))
      /** One provider that failed undoes none of the others. */
      const failed = (error: string, description: string) =>
        isOnDemand(provider, config.upstreams)
          ? advance(http, { ...pending, chain: rest }, error)
          : finish(http, pending.uid, { error, error_description: description })

      try {
        const code = await walk.code(upstream, { query, path })
        if (code === undefined) {
          log.info('login refused upstream', { provider })
          events.report({ type: 'auth_login', outcome: 'denied', provider, reason: 'the provider sent no code' })
          return await failed('access_denied', `the login at ${provider} was not completed`)
        }
        const { identity, account } = await walk.redeem(upstream, pending, { code, account: pending.login?.account })
        const { name, email } = pending.login ?? identity
        const login: LoginRecord = { account, name, email, providers: [...new Set([...(pending.login?.providers ?? []), provider])] }
        log.info('logged in upstream', { provider, account })
        events.report({ type: 'auth_login', outcome: 'success', provider, account })
        await advance(http, { uid: pending.uid, browser: pending.browser, chain: rest, login, hasWalked: true })
      } catch (error) {
        if (error instanceof UpstreamRefused) {
          log.warn('login rejected', { provider, reason: error.message })
          events.report({ type: 'auth_login', outcome: 'denied', provider, reason: error.message })
          return await failed('access_denied', `${provider} did not confirm the login`)
        }
        events.report({ type: 'auth_login', outcome: 'failure', provider, reason: 'the provider cannot be used' })
        log.warn('identity provider cannot be used', {
          provider,
          error: error instanceof Error ? error.message : String(error),
        })
        await failed('temporarily_unavailable', `${provider} does not answer; try again`)
      }
    },
  }
}

function recipientOf(redirectUri: string): string {
  const kind = redirectKind(redirectUri)
  if (kind === 'loopback') return 'a program on this computer'
  const url = URL.parse(redirectUri)
  return kind === 'https' ? (url?.host ?? redirectUri) : `an application on this device (${url?.protocol ?? ''})`
}

function formTarget(redirectUri: string): string {
  const url = new URL(redirectUri)
  return url.origin === 'null' ? url.protocol : url.origin
}
