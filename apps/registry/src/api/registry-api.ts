import { randomUUID } from 'node:crypto'
import { headerText } from '@thv/http/header-map'
import type { Exchange } from '@thv/http/server/exchange'
import { sendEmpty } from '@thv/http/server/respond'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { errorMessage, isThvError } from '@thv/kernel/errors'
import type { Logger } from '@thv/telemetry/log'
import type { RegistryConfig } from '../config/registry-config.ts'
import type { RegistryEngine } from '../engine/engine.ts'
import type { Access, Caller } from './http/access-port.ts'
import type { ApiContext, VersionInfo } from './http/api-context.ts'
import { ApiError, apiErrorOf, sendApiError } from './http/api-error.ts'
import { createCors } from './http/cors.ts'
import { readPathParameters, readQuery } from './http/parameters.ts'
import type { ApiRequest, Route } from './http/route.ts'
import { createRouter, type Match, type RouteNode } from './http/router.ts'
import { createPageAnswers, type KnownAnswer } from './pages/page-answers.ts'
import { routes } from './routes.ts'

export interface RegistryApiOptions {
  readonly engine: RegistryEngine
  readonly access: Access
  readonly config: { readonly http: RegistryConfig['http']; readonly sync?: Pick<RegistryConfig['sync'], 'allowedFolders'> }
  readonly version: VersionInfo
  readonly log: Logger
  readonly clock?: Clock
  /** Told of every answer, by the route's operationId ('' where no route was found). */
  readonly onAnswer?: (operationId: string, exchange: Exchange) => void
  /** Asked first: the health paths, if they are to be on this address too. */
  readonly health?: { handle(exchange: Exchange): boolean }
}

export interface RegistryApi {
  handle(exchange: Exchange): void | Promise<void>
}

const SECURITY = ['X-Content-Type-Options', 'nosniff', 'Cross-Origin-Resource-Policy', 'same-origin'] as const
const REGISTRY = '/registry/'
const SANE_ID = /^[\w.:/+=@-]{1,128}$/

/** Everything that the public address answers. Never rejects but for a client that is gone; 5xx only where engine or store are down. */
export function createRegistryApi(options: RegistryApiOptions): RegistryApi {
  const { engine, access, config, log, clock = systemClock, onAnswer, health } = options
  const { http } = config
  const router = createRouter(routes)
  const cors = createCors(http.cors, access)
  const pages = createPageAnswers(http, { shared: access.anonymous })
  const api: ApiContext = {
    engine,
    access,
    http,
    version: options.version,
    log,
    clock,
    pages,
    routes,
    allowedFolders: config.sync?.allowedFolders ?? [],
  }

  function handle(exchange: Exchange): void | Promise<void> {
    const common = commonHeaders(exchange)
    const known = access.anonymous && exchange.method === 'GET' ? knownAnswer(exchange.target) : undefined
    if (known !== undefined)
      return attempt(exchange, { common, operationId: known.operationId }, () => pages.again(exchange, known, common))
    const match = router.find(exchange.path)
    const method = exchange.method === 'HEAD' ? 'GET' : exchange.method
    const route = match?.node.routes.get(method)
    return attempt(exchange, { common, operationId: route?.operationId ?? '' }, () => {
      // Reads set their headers in one go with the answer: most requests are of this kind.
      const quick = route?.tag === 'servers' && access.anonymous
      if (!quick) setHeaders(exchange, common)
      if (match !== undefined && route !== undefined) return serve({ exchange, route, match, headers: quick ? common : [] })
      if (!health?.handle(exchange) && !access.handle(exchange)) refuse(exchange, match?.node)
    })
  }

  /** Where everybody sees the same, a question that was answered once need not be understood again while the view is the same. */
  function knownAnswer(target: string): KnownAnswer | undefined {
    if (!target.startsWith(REGISTRY)) return undefined
    const view = engine.registry(target.slice(REGISTRY.length, target.indexOf('/', REGISTRY.length)))?.view
    return view && pages.known(view, target)
  }

  function attempt(exchange: Exchange, { common, operationId }: Attempt, answer: () => void | Promise<void>): void | Promise<void> {
    try {
      const pending = answer()
      if (pending instanceof Promise)
        return pending.catch((error: unknown) => fail(exchange, error, common)).then(() => onAnswer?.(operationId, exchange))
    } catch (error) {
      fail(exchange, error, common)
    }
    onAnswer?.(operationId, exchange)
  }

  function commonHeaders({ headers }: Exchange): readonly string[] {
    const origin = headerText(headers['origin'])
    const id = requestId(headers['x-request-id'])
    return origin === undefined
      ? ['X-Content-Type-Options', 'nosniff', 'Cross-Origin-Resource-Policy', 'same-origin', 'X-Request-Id', id]
      : [...SECURITY, 'X-Request-Id', id, ...cors.headersFor(origin)]
  }

  function serve(call: Call): void | Promise<void> {
    const needed = call.route.access
    const caller = needed === 'nobody' ? NOBODY : access.authenticate(call.exchange, needed)
    return caller instanceof Promise ? caller.then((late) => run(call, late)) : run(call, caller)
  }

  function run(call: Call, caller: Caller | undefined): void | Promise<void> {
    if (caller === undefined) return
    const { exchange, route, match, headers } = call
    const needed = route.access
    if (needed !== undefined && needed !== 'nobody' && !access.hasRole(caller, needed))
      throw new ApiError(403, 'forbidden: insufficient permissions')
    const params = readPathParameters(match)
    const query = readQuery(exchange.query, route.query)
    return route.handler({ api, operationId: route.operationId, exchange, caller, params, query, headers } as ApiRequest<never>)
  }

  /** No such path, or no such method there. */
  function refuse(exchange: Exchange, node: RouteNode | undefined): void {
    if (exchange.method === 'OPTIONS' && (node !== undefined || exchange.target === '*')) {
      const allow = node?.allow ?? 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'
      sendEmpty(exchange, 204, ['Allow', allow, ...cors.preflight(headerText(exchange.headers['origin']), allow)])
    } else if (node !== undefined)
      sendApiError(exchange, 405, { error: `${exchange.method} is not possible here`, headers: ['Allow', node.allow] })
    else sendApiError(exchange, 404, { error: `there is nothing at this path; ${UNESCAPED_NAME.test(exchange.path) ? ESCAPE : LOOK}` })
  }

  function fail(exchange: Exchange, error: unknown, common: readonly string[]): void {
    if (exchange.aborted && isThvError(error, 'aborted')) return
    const known = apiErrorOf(error)
    // Expected failures (no managed source, not loaded yet) are answers like others; failures behind them are logged.
    if (known === undefined || (known.status >= 500 && known.cause !== undefined))
      log.error('request failed', { method: exchange.method, path: exchange.path, error: errorMessage(error) })
    if (exchange.begun) {
      exchange.destroy(error)
      return
    }
    setHeaders(exchange, common)
    if (known === undefined) sendApiError(exchange, 500, { error: 'internal server error' })
    else sendApiError(exchange, known.status, { error: known.message, ...known.options })
  }

  return { handle }
}

const LOOK = '/openapi.json lists what there is'
const ESCAPE = 'the slash in the name of a server is written %2F'
const UNESCAPED_NAME = /\/v0(\.1)?\/servers\/[^/]+\/(?!versions|status)/

const NOBODY: Caller = { subject: '', anonymous: true, roles: new Set(), superAdmin: false, gated: true, claims: {}, key: '' }

interface Call {
  readonly exchange: Exchange
  readonly route: Route
  readonly match: Match
  readonly headers: readonly string[]
}

interface Attempt {
  readonly common: readonly string[]
  readonly operationId: string
}

/** In the form of a UUID, whose last part counts: random numbers for each request cost more than many an answer. */
const ID_HEAD = randomUUID().slice(0, -12)
let lastId = 0x1000_0000_0000

/** One that the client made up is kept if it is short and plain, so that both sides can look for it. */
function requestId(given: string | string[] | undefined): string {
  if (typeof given === 'string' && SANE_ID.test(given)) return given
  lastId += 1
  return ID_HEAD + lastId.toString(16)
}

function setHeaders({ response }: Exchange, pairs: readonly string[]): void {
  if (response.headersSent) return
  for (let i = 0; i + 1 < pairs.length; i += 2) response.setHeader(pairs[i] ?? '', pairs[i + 1] ?? '')
}
