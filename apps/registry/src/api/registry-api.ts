import { randomUUID } from 'node:crypto'
import type { Exchange } from '@thv/http/exchange'
import { headerText } from '@thv/http/header-map'
import { sendEmpty } from '@thv/http/respond'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { errorMessage, isThvError } from '@thv/kernel/errors'
import type { Logger } from '@thv/telemetry/log'
import type { RegistryConfig } from '../config/registry-config.ts'
import type { RegistryEngine } from '../engine/engine.ts'
import type { Access, Caller } from './access-port.ts'
import type { ApiContext, VersionInfo } from './api-context.ts'
import { ApiError, apiErrorOf, sendApiError } from './api-error.ts'
import { createCors } from './cors.ts'
import { createPageAnswers } from './page-answers.ts'
import { readPathParameters, readQuery } from './parameters.ts'
import type { ApiRequest, Route } from './route.ts'
import { createRouter, type Match, type RouteNode } from './router.ts'
import { routes } from './routes.ts'

export interface RegistryApiOptions {
  readonly engine: RegistryEngine
  readonly access: Access
  readonly config: Pick<RegistryConfig, 'http'>
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
const SANE_ID = /^[\w.:/+=@-]{1,128}$/

/** Everything that the public address answers. Never rejects but for a client that is gone; 5xx only where engine or store are down. */
export function createRegistryApi(options: RegistryApiOptions): RegistryApi {
  const { engine, access, config, log, clock = systemClock, onAnswer, health } = options
  const { http } = config
  const router = createRouter(routes)
  const cors = createCors(http.cors, access)
  const pages = createPageAnswers(http, { shared: access.anonymous })
  const api: ApiContext = { engine, access, http, version: options.version, log, clock, pages, routes }

  function handle(exchange: Exchange): void | Promise<void> {
    const { headers } = exchange
    const common = [...SECURITY, 'X-Request-Id', requestId(headers['x-request-id']), ...cors.headersFor(headerText(headers['origin']))]
    const match = router.find(exchange.path)
    const method = exchange.method === 'HEAD' ? 'GET' : exchange.method
    const route = match?.node.routes.get(method)
    try {
      if (match !== undefined && route !== undefined) {
        // Reads set their headers in one go with the answer: most requests are of this kind.
        const quick = route.tag === 'servers' && access.anonymous
        if (!quick) setHeaders(exchange, common)
        const answer = serve({ exchange, route, match, headers: quick ? common : [] })
        if (!(answer instanceof Promise)) return void onAnswer?.(route.operationId, exchange)
        return answer.catch((error: unknown) => fail(exchange, error, common)).then(() => onAnswer?.(route.operationId, exchange))
      }
      setHeaders(exchange, common)
      if (!health?.handle(exchange) && !access.handle(exchange)) refuse(exchange, match?.node)
    } catch (error) {
      fail(exchange, error, common)
    }
    onAnswer?.(route?.operationId ?? '', exchange)
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
    return route.handler({ api, exchange, caller, params, query, headers } as ApiRequest<never>)
  }

  /** No such path, or no such method there. */
  function refuse(exchange: Exchange, node: RouteNode | undefined): void {
    if (exchange.method === 'OPTIONS' && (node !== undefined || exchange.target === '*')) {
      const allow = node?.allow ?? 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'
      sendEmpty(exchange, 204, ['Allow', allow, ...cors.preflight(headerText(exchange.headers['origin']), allow)])
    } else if (node !== undefined)
      sendApiError(exchange, 405, { error: `${exchange.method} is not possible here`, headers: ['Allow', node.allow] })
    else sendApiError(exchange, 404, { error: 'there is nothing at this path' })
  }

  function fail(exchange: Exchange, error: unknown, common: readonly string[]): void {
    if (exchange.aborted && isThvError(error, 'aborted')) return
    const known = apiErrorOf(error)
    if (known === undefined || known.status >= 500)
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

const NOBODY: Caller = { subject: '', anonymous: true, roles: new Set(), superAdmin: false, gated: true, claims: {}, key: '' }

interface Call {
  readonly exchange: Exchange
  readonly route: Route
  readonly match: Match
  readonly headers: readonly string[]
}

/** One that the client made up is kept if it is short and plain, so that both sides can look for it. */
function requestId(given: string | string[] | undefined): string {
  return typeof given === 'string' && SANE_ID.test(given) ? given : randomUUID()
}

function setHeaders({ response }: Exchange, pairs: readonly string[]): void {
  if (response.headersSent) return
  for (let i = 0; i + 1 < pairs.length; i += 2) response.setHeader(pairs[i] ?? '', pairs[i + 1] ?? '')
}
