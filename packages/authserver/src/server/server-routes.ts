import { randomInt } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { headerText } from '@thv/http/header-map'
import type { Exchange } from '@thv/http/server/exchange'
import { readBody } from '@thv/http/server/read-body'
import { sendEmpty, sendJson, sendMethodNotAllowed } from '@thv/http/server/respond'
import type { Clock } from '@thv/kernel/clock'
import { isThvError } from '@thv/kernel/errors'
import { isObject } from '@thv/kernel/json'
import type { AuthServerConfig } from '@thv/runconfig/auth-server-config'
import type { Log } from '@thv/telemetry/log'
import type { Provider } from 'oidc-provider'
import type { MetadataDocuments } from '../clients/metadata-documents.ts'
import { judgeRegistration, registrationAnswer } from '../clients/registration.ts'
import type { SealedClients } from '../clients/sealed-clients.ts'
import type { SigningKeys } from '../keys/signing-keys.ts'
import type { Account } from '../login/account.ts'
import type { Connect } from '../login/connect.ts'
import { sendPage } from '../login/http.ts'
import type { LoginFlow } from '../login/login-flow.ts'
import { errorPage, waitPage } from '../login/pages.ts'
import type { LoginEvents } from '../login-events.ts'
import { loginBase, PATHS } from '../paths/server-paths.ts'
import { type AssertionOptions, answerAssertion, withBody } from './assertion-grant.ts'
import { serverMetadata } from './metadata.ts'
import { AddressLimit } from './rate-limits.ts'

/** The library with some keys. */
export interface ProviderInstance {
  readonly keys: SigningKeys
  readonly provider: Provider
  readonly answer: ReturnType<Provider['callback']>
}

export interface ServerRoutesOptions {
  readonly config: AuthServerConfig
  readonly clients: SealedClients
  readonly documents: MetadataDocuments
  readonly flow: LoginFlow
  readonly connect: Connect
  readonly account: Account
  readonly clock: Clock
  readonly log: Log
  readonly events: LoginEvents
  readonly addressOf: (exchange: Exchange) => string
  readonly current: () => ProviderInstance
  readonly redirectUris: readonly string[]
  /** Undefined: no issuer is trusted with assertions. */
  readonly assertions: AssertionOptions | undefined
}

export interface ServerRoutes {
  serves(path: string): boolean
  handle(exchange: Exchange): Promise<void>
}

const WELL_KNOWN = ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration']
const OWN_PATHS: ReadonlySet<string> = new Set(Object.values(PATHS).filter((path) => !path.endsWith('/')))
/** Paths where a client may prove its secret, and guess at that of another. */
const WITH_SECRETS: ReadonlySet<string> = new Set([PATHS.token, PATHS.revoke, PATHS.introspect])
/** Paths that browsers open. */
const PAGES: ReadonlySet<string> = new Set([PATHS.authorize, PATHS.connect, PATHS.account])
/** Browsers that were turned away together do not come back together. */
const SPREAD_SECONDS = 3
/** The library refuses it as it should. */
const UNSUPPORTED = 'unsupported'
const MAX_BODY = 64 << 10
const PUBLIC_CACHE = ['Cache-Control', 'public, max-age=3600']
const CORS = ['Access-Control-Allow-Origin', '*']
/** Paths that pages from anywhere may call; none of them looks at a cookie. */
const CORS_METHODS: Readonly<Record<string, string>> = {
  [PATHS.jwks]: 'GET',
  [PATHS.token]: 'POST',
  [PATHS.register]: 'POST',
  [PATHS.revoke]: 'POST',
  metadata: 'GET',
}

/** The server's paths, at the root of this port and below the paths of its issuer and of its redirect URIs. */
export function createServerRoutes(options: ServerRoutesOptions): ServerRoutes {
  const { config, clients, clock } = options
  const limits = {
    [PATHS.register]: new AddressLimit({ perSecond: 1, burst: 5 }, clock),
    // A whole office may have one address. Logins of ten minutes at this rate are fewer than a store takes.
    [PATHS.authorize]: new AddressLimit({ perSecond: 10, burst: 100 }, clock),
    [PATHS.connect]: new AddressLimit({ perSecond: 10, burst: 100 }, clock),
    // It reads all sessions of a user.
    [PATHS.account]: new AddressLimit({ perSecond: 10, burst: 20 }, clock),
    [PATHS.token]: new AddressLimit({ perSecond: 50, burst: 100 }, clock),
  } as Readonly<Record<string, AddressLimit>>
  const wrongSecrets = new AddressLimit({ perSecond: 5 / 60, burst: 5 }, clock)
  const bases = [
    config.issuer,
    loginBase(config),
    ...options.redirectUris.map((uri) => uri.replace(/\/oauth\/callback(\/[a-z0-9-]+)?$/, '')),
  ]
  const prefixes = [...new Set(['', ...bases.map((base) => new URL(base).pathname.replace(/\/$/, ''))])]

  const seenBases = { login: seenBase(loginBase(config)), issuer: seenBase(config.issuer) }

  /** A redirect URI of the configuration may have any path. */
  const callbacks = new Set(options.redirectUris.map((uri) => new URL(uri).pathname))

  /** The path as the server knows it: `metadata` for both documents. */
  function ownPath(path: string): string | undefined {
    if (callbacks.has(path)) return PATHS.callback
    for (const known of WELL_KNOWN) if (path === known || path.startsWith(`${known}/`)) return 'metadata'
    for (const prefix of prefixes) {
      if (!path.startsWith(prefix)) continue
      const rest = path.slice(prefix.length)
      if (rest.startsWith(`${PATHS.callback}/`)) return PATHS.callback
      if (OWN_PATHS.has(rest) || rest.startsWith(PATHS.login) || rest.startsWith(PATHS.connect) || rest.startsWith(`${PATHS.authorize}/`))
        return rest
      if (WELL_KNOWN.includes(rest)) return 'metadata'
    }
    return undefined
  }

  function tooMany(exchange: Exchange, path: string): boolean {
    const address = options.addressOf(exchange)
    const limited = path.startsWith(PATHS.connect) ? PATHS.connect : path
    const wait = Math.max(limits[limited]?.take(address) ?? 0, WITH_SECRETS.has(path) ? wrongSecrets.wait(address) : 0)
    if (wait === 0) return false
    if (PAGES.has(limited)) {
      const seconds = wait + randomInt(SPREAD_SECONDS + 1)
      exchange.response.setHeader('Retry-After', String(seconds))
      sendPage(exchange.response, 429, waitPage(seconds, { isForm: exchange.method === 'POST' }))
      return true
    }
    sendJson(
      exchange,
      { error: 'temporarily_unavailable', error_description: 'too many requests' },
      { status: 429, headers: ['Retry-After', String(wait), ...CORS, 'Cache-Control', 'no-store'] },
    )
    return true
  }

  async function register(exchange: Exchange): Promise<void> {
    if (exchange.method !== 'POST') return sendMethodNotAllowed(exchange, 'POST, OPTIONS')
    const refuse = (status: number, error: string, description: string) => {
      options.events.report({ type: 'auth_registration', outcome: 'denied', reason: `${error}: ${description}` })
      sendJson(exchange, { error, error_description: description }, { status, headers: [...CORS, 'Cache-Control', 'no-store'] })
    }
    if (!/^application\/json\b/i.test(headerText(exchange.headers['content-type']) ?? ''))
      return refuse(400, 'invalid_client_metadata', 'expects application/json')
    const body = await bodyOf(exchange)
    if (body === undefined) return refuse(413, 'invalid_client_metadata', 'the request is too large')
    const metadata = parsed(body)
    if (metadata === undefined) return refuse(400, 'invalid_client_metadata', 'expects a JSON object')
    const judged = judgeRegistration(metadata, config)
    if (!judged.ok) return refuse(400, judged.error, judged.description)
    options.log.info('client registered', { name: judged.client.client_name })
    options.events.report({ type: 'auth_registration', outcome: 'success', client: judged.client.client_name })
    sendJson(exchange, registrationAnswer(judged.client, clients), {
      status: 201,
      headers: [...CORS, 'Cache-Control', 'no-store', 'Pragma', 'no-cache'],
    })
  }

  /** The request for the library; undefined: it was an assertion, or too large, and is answered. */
  async function unlessAssertion(exchange: Exchange, assertions: AssertionOptions): Promise<IncomingMessage | undefined> {
    const body = await bodyOf(exchange)
    if (body !== undefined) return (await answerAssertion(exchange, body, assertions)) ? undefined : withBody(exchange.request, body)
    const answer = { error: 'invalid_request', error_description: 'the request is too large' }
    sendJson(exchange, answer, { status: 413, headers: [...CORS, 'Cache-Control', 'no-store'] })
    return undefined
  }

  /** Hands the exchange to the library, which sees the address of the issuer and nothing that a client says about it. */
  async function toLibrary(exchange: Exchange, request: IncomingMessage, { path, query }: { path: string; query: string }): Promise<void> {
    const { response } = exchange
    const base = path.startsWith(PATHS.authorize) ? seenBases.login : seenBases.issuer
    for (const name of ['origin', 'forwarded', 'x-forwarded-host', 'x-forwarded-for', 'x-forwarded-port']) delete request.headers[name]
    request.headers.host = base.host
    request.headers['x-forwarded-proto'] = base.scheme
    const url = query === '' ? path : `${path}?${query}`
    request.url = url
    Object.assign(request, { originalUrl: `${base.path}${url}` })
    if (CORS_METHODS[path] !== undefined) response.setHeader('Access-Control-Allow-Origin', '*')
    response.setHeader('X-Content-Type-Options', 'nosniff')
    response.setHeader('Referrer-Policy', 'no-referrer')
    await options.current().answer(request, response)
    if (response.statusCode !== 401 || !WITH_SECRETS.has(path)) return
    wrongSecrets.take(options.addressOf(exchange))
    // The id that was given is not proven, and may hold anything.
    options.log.warn('client could not authenticate', { path })
    options.events.report({ type: 'auth_client', outcome: 'denied', reason: `invalid_client at ${path}` })
  }

  async function interaction(exchange: Exchange, path: string): Promise<void> {
    const { request, response, method } = exchange
    if (!/^\/oauth\/login\/[\w-]{1,64}$/.test(path)) return sendPage(response, 404, errorPage('There is no such page.'))
    if (method !== 'GET' && method !== 'POST') return sendMethodNotAllowed(exchange, 'GET, POST')
    await withForm(exchange, (form) => options.flow.interaction({ request, response }, form))
  }

  /** The form of a POST that one of our own pages has sent; undefined for another method. */
  async function withForm(exchange: Exchange, answerForm: (form: URLSearchParams | undefined) => Promise<void>): Promise<void> {
    const { response, method } = exchange
    if (method !== 'POST') return await answerForm(undefined)
    const site = headerText(exchange.headers['sec-fetch-site'])
    if (site !== undefined && site !== 'same-origin') return sendPage(response, 403, errorPage('This form was sent by another site.'))
    const body = await bodyOf(exchange)
    if (body === undefined) return sendPage(response, 413, errorPage('The form is too large.'))
    await answerForm(new URLSearchParams(body.toString('utf8')))
  }

  /** The query of an authorization request as the library sees it. Without scopes it means all that the client may have (RFC 6749 §3.3). */
  async function libraryQuery(query: string): Promise<string> {
    const params = new URLSearchParams(query)
    // Answers come in the query or the fragment: a form that sends itself would need a script.
    if (params.get('response_mode')?.includes('form_post')) params.set('response_mode', UNSUPPORTED)
    if (params.has('scope')) return params.toString()
    const id = params.get('client_id') ?? ''
    const client = clients.open(id) ?? (await options.documents.find(id))
    params.set('scope', client?.scope ?? config.scopes_supported.join(' '))
    return params.toString()
  }

  async function answer(exchange: Exchange, path: string): Promise<void> {
    const { method, request, response } = exchange
    const cors = CORS_METHODS[path]
    if (method === 'OPTIONS' && cors !== undefined) {
      const headers = [
        'Access-Control-Allow-Methods',
        cors,
        'Access-Control-Allow-Headers',
        'authorization, content-type, mcp-protocol-version',
        'Access-Control-Max-Age',
        '3600',
      ]
      return sendEmpty(exchange, 204, [...CORS, ...headers])
    }
    if (tooMany(exchange, path)) return
    if (path === 'metadata' || path === PATHS.jwks) {
      if (method !== 'GET' && method !== 'HEAD') return sendMethodNotAllowed(exchange, 'GET, HEAD, OPTIONS')
      const { keys } = options.current()
      const algorithms = [...new Set(keys.published.keys.map(({ alg }) => alg ?? ''))]
      return sendJson(exchange, path === PATHS.jwks ? keys.published : serverMetadata(config, algorithms), {
        headers: [...CORS, ...PUBLIC_CACHE],
      })
    }
    if (path === PATHS.register) return await register(exchange)
    if (path === PATHS.callback)
      return method === 'GET'
        ? await options.flow.callback({ request, response }, new URLSearchParams(exchange.query), exchange.path)
        : sendMethodNotAllowed(exchange, 'GET')
    if (path === PATHS.account) return await withForm(exchange, (form) => options.account(exchange, form))
    if (path.startsWith(PATHS.connect))
      return await withForm(exchange, (form) => options.connect(exchange, path.slice(PATHS.connect.length), form))
    if (path.startsWith(PATHS.login)) return await interaction(exchange, path)
    if (WITH_SECRETS.has(path) && method !== 'POST') return sendMethodNotAllowed(exchange, cors === undefined ? 'POST' : 'POST, OPTIONS')
    const isAssertion = path === PATHS.token && options.assertions !== undefined
    const forLibrary = isAssertion ? await unlessAssertion(exchange, options.assertions) : request
    if (forLibrary === undefined) return
    const query = path === PATHS.authorize ? await libraryQuery(exchange.query) : exchange.query
    await toLibrary(exchange, forLibrary, { path, query })
  }

  return {
    serves: (path) => ownPath(path) !== undefined,
    async handle(exchange) {
      const path = ownPath(exchange.path)
      if (path === undefined) throw new RangeError('not a path of the authorization server')
      try {
        await answer(exchange, path)
      } catch (error) {
        failed(exchange, error)
      }
    },
  }

  function failed(exchange: Exchange, error: unknown): void {
    const { response } = exchange
    if (exchange.begun || exchange.closed) throw error
    const isBusy =
      isThvError(error, 'store_unavailable') || isThvError(error, 'redis_unavailable') || isThvError(error, 'auth_provider_unavailable')
    const isExpired = error instanceof Error && error.name === 'SessionNotFound'
    if (!isBusy && !isExpired) throw error
    if (isBusy) {
      options.log.warn('authorization server cannot answer now', { error: error instanceof Error ? error.message : '' })
      response.setHeader('Retry-After', '2')
    }
    sendPage(
      response,
      isBusy ? 503 : 400,
      errorPage(isBusy ? 'The server cannot do this now. Try again in a moment.' : 'This login has expired.'),
    )
  }
}

/** Parts of an address, as the library gets to see it. */
function seenBase(address: string): { readonly host: string; readonly scheme: string; readonly path: string } {
  const { host, protocol, pathname } = new URL(address)
  return { host, scheme: protocol.slice(0, -1), path: pathname.replace(/\/$/, '') }
}

/** Undefined: larger than any request needs. */
async function bodyOf(exchange: Exchange): Promise<Buffer | undefined> {
  try {
    return await readBody(exchange, MAX_BODY)
  } catch (error) {
    if (isThvError(error, 'request_body_too_large')) return undefined
    throw error
  }
}

function parsed(body: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'))
    return isObject(value) ? value : undefined
  } catch {
    return undefined // the caller says so
  }
}
