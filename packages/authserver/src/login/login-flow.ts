import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { JsonObject } from '@thv/kernel/json'
import type { AuthServerConfig } from '@thv/runconfig/auth-server-config'
import type { AuthStore } from '@thv/store/auth/auth-store'
import type { Log } from '@thv/telemetry/log'
import type { Provider, ProviderInteraction } from 'oidc-provider'
import { redirectKind } from '../clients/redirect-uri.ts'
import type { ServerSecrets } from '../keys/server-secrets.ts'
import { loginBase, PATHS } from '../paths/server-paths.ts'
import type { LoginRecord } from '../provider/login-record.ts'
import type { UpstreamAttempt, UpstreamIdentity, UpstreamProvider } from '../upstream/upstream-provider.ts'
import { UpstreamRefused } from '../upstream/upstream-refused.ts'
import type { UpstreamTokens } from '../upstream-tokens.ts'
import { browserHash, browserOf, cookieLine, knownBrowser } from './browser-cookie.ts'
import { CONSENT_COOKIE, CONSENT_SECONDS, type ConsentSubject, type Consents } from './consents.ts'
import { consentPage, errorPage, type Page } from './pages.ts'

export interface LoginFlowOptions {
  readonly config: AuthServerConfig
  readonly store: AuthStore
  readonly secrets: ServerSecrets
  readonly consents: Consents
  readonly upstreams: readonly UpstreamProvider[]
  readonly tokens: UpstreamTokens
  readonly log: Log
  readonly provider: () => Provider
}

export interface Http {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** A login that waits for the user to come back from a provider. */
interface Pending extends UpstreamAttempt {
  readonly uid: string
  readonly index: number
  readonly browser: string
  readonly account?: string
  readonly login?: LoginRecord
}

const PENDING_MS = 600_000
const CSRF = 'csrf'

/** From the consent page over each provider in turn to the end of the interaction that the library has begun. */
export interface LoginFlow {
  /** GET and POST of `/oauth/login/UID`. `form`: of a POST. */
  interaction(http: Http, form: URLSearchParams | undefined): Promise<void>
  callback(http: Http, query: URLSearchParams): Promise<void>
}

export function createLoginFlow(options: LoginFlowOptions): LoginFlow {
  const { config, store, secrets, consents, upstreams, tokens, log } = options
  const base = new URL(loginBase(config))
  const isSecure = base.protocol === 'https:'
  const prefix = base.pathname.replace(/\/$/, '')

  async function startUpstream(http: Http, pending: Omit<Pending, keyof UpstreamAttempt>): Promise<void> {
    const upstream = upstreams[pending.index]
    if (upstream === undefined) throw new RangeError(`no provider ${pending.index}`)
    const attempt = { state: randomId(), nonce: randomId(), verifier: randomId() }
    const url = await upstream.authorizationUrl(attempt)
    const value = JSON.parse(JSON.stringify({ ...pending, ...attempt })) as JsonObject
    await store.put('pending', attempt.state, { value, ttlMs: PENDING_MS })
    redirect(http.response, url)
  }

  /** Ends the interaction: the library goes on where the browser started. */
  async function finish(http: Http, uid: string, result: object): Promise<void> {
    const interaction = await options.provider().Interaction.find(uid)
    if (interaction === undefined) return sendPage(http.response, 400, errorPage('This login has expired.'))
    interaction.result = result
    await interaction.persist()
    redirect(http.response, interaction.returnTo)
  }

  async function identified(
    upstream: UpstreamProvider,
    pending: Pending,
    code: string,
  ): Promise<{ identity: UpstreamIdentity; account: string }> {
    const redeemed = await upstream.redeem(code, pending)
    const identity = await upstream.identify(redeemed, pending)
    const account = pending.account ?? accountOf(config.issuer, upstream.provider, identity.subject)
    const { answer: _, ...set } = redeemed
    await tokens.save({ account, provider: upstream.provider, subject: identity.subject, tokens: set, generation: upstream.generation })
    return { identity, account }
  }

  async function subjectOf({ params }: ProviderInteraction): Promise<ConsentSubject & { clientName: string | undefined }> {
    const clientId = String(params['client_id'])
    const client = await options.provider().Client.find(clientId)
    return {
      clientId,
      clientName: clientLabel(clientId, client?.clientName),
      redirectUri: String(params['redirect_uri']),
      scopes: String(params['scope'] ?? '')
        .split(' ')
        .filter(Boolean),
      providers: upstreams.map(({ provider }) => provider),
    }
  }

  async function askConsent(http: Http, interaction: ProviderInteraction, browser: string): Promise<void> {
    const subject = await subjectOf(interaction)
    const origins = await Promise.all(upstreams.slice(0, 1).map((upstream) => upstream.origin()))
    const view = {
      ...subject,
      recipient: recipientOf(subject.redirectUri),
      action: `${prefix}${PATHS.login}${interaction.uid}`,
      csrf: secrets.sign(CSRF, `${interaction.uid} ${browser}`),
      formTargets: [...origins, formTarget(subject.redirectUri)],
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
      const begin = () => startUpstream(http, { uid: interaction.uid, index: 0, browser: browserHash(browser.id) })
      if (form === undefined) {
        response.setHeader('Set-Cookie', cookies)
        if (browser.setCookie === undefined && consents.holds(request, browser.id, subject)) return await begin()
        return await askConsent(http, interaction, browser.id)
      }
      if (browser.setCookie !== undefined || !secrets.verifies(CSRF, `${interaction.uid} ${browser.id}`, form.get('csrf') ?? ''))
        return sendPage(response, 403, errorPage('This page was not opened in this browser, or has expired.'))
      if (form.get('decision') !== 'allow') {
        log.info('consent denied', { client: subject.clientName })
        return await finish(http, interaction.uid, { error: 'access_denied', error_description: 'the user denied access' })
      }
      const label = subject.clientName ?? recipientOf(subject.redirectUri)
      const value = consents.grant(request, browser.id, { subject, label })
      response.setHeader('Set-Cookie', cookieLine(CONSENT_COOKIE, value, { isSecure, maxAgeSeconds: CONSENT_SECONDS }))
      log.info('consent given', { client: subject.clientName, providers: subject.providers })
      await begin()
    },

    async callback(http, query) {
      const { request, response } = http
      const state = query.get('state') ?? ''
      const browser = knownBrowser(request, isSecure)
      if (state === '' || query.getAll('state').length > 1 || query.getAll('code').length > 1)
        return sendPage(response, 400, errorPage('The answer of the identity provider has no usable state.'))
      if (browser === undefined) return sendPage(response, 400, errorPage('This login was not started in this browser.'))
      const record = await store.get('pending', state)
      const stored = record?.value as unknown as Pending | undefined
      // Before it is taken: a callback in another browser must not end the login of the right one.
      if (stored !== undefined && stored.browser !== browserHash(browser))
        return sendPage(response, 400, errorPage('This login was not started in this browser.'))
      const pending = (await store.take('pending', state)) as unknown as Pending | undefined
      if (pending === undefined) return sendPage(response, 400, errorPage('This login has expired or was completed before.'))
      const upstream = upstreams[pending.index]
      if (upstream === undefined) return sendPage(response, 400, errorPage('This login has expired.'))
      const failed = (error: string, description: string) => finish(http, pending.uid, { error, error_description: description })

      const code = query.get('code')
      try {
        const issuer = await upstream.responseIssuer()
        if (issuer !== undefined && query.get('iss') !== issuer) throw new UpstreamRefused('iss_mismatch')
        if (query.has('error') || code === null) {
          log.info('login refused upstream', { provider: upstream.provider })
          return await failed('access_denied', `the login at ${upstream.provider} was not completed`)
        }
        const { identity, account } = await identified(upstream, pending, code)
        const { name, email } = pending.index === 0 ? identity : (pending.login ?? {})
        const login: LoginRecord = { account, name, email, providers: [...(pending.login?.providers ?? []), upstream.provider] }
        log.info('logged in upstream', { provider: upstream.provider, account })
        if (pending.index + 1 < upstreams.length) {
          const { uid, browser: hash } = pending
          return await startUpstream(http, { uid, index: pending.index + 1, browser: hash, account, login })
        }
        await finish(http, pending.uid, { login: { accountId: account, remember: false }, thv: login })
      } catch (error) {
        if (error instanceof UpstreamRefused) {
          log.warn('login rejected', { provider: upstream.provider, reason: error.message })
          return await failed('access_denied', `${upstream.provider} did not confirm the login`)
        }
        log.warn('identity provider cannot be used', {
          provider: upstream.provider,
          error: error instanceof Error ? error.message : String(error),
        })
        await failed('temporarily_unavailable', `${upstream.provider} does not answer; try again`)
      }
    },
  }
}

/** The same person at the same provider is the same account, on every replica and after every restart. */
export function accountOf(issuer: string, provider: string, subject: string): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([issuer, provider, subject]))
    .digest()
  const hex = hash.toString('hex')
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** The host of a metadata document is proven by its fetch; a name is not. */
function clientLabel(clientId: string, name: string | undefined): string | undefined {
  const host = clientId.startsWith('https://') ? URL.parse(clientId)?.host : undefined
  return host === undefined ? name : `${name ?? 'An application'} (${host})`
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

export function sendPage(response: ServerResponse, status: number, { html, headers }: Page): void {
  response
    .writeHead(status, { ...headers, 'Content-Type': 'text/html; charset=utf-8', 'Content-Length': Buffer.byteLength(html) })
    .end(html)
}

function redirect(response: ServerResponse, location: string): void {
  response
    .writeHead(303, { Location: location, 'Content-Length': '0', 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' })
    .end()
}

function randomId(): string {
  return randomBytes(32).toString('base64url')
}
