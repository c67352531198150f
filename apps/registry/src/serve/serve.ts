import type { Exchange } from '@thv/http/server/exchange'
import { createHostGuard, type HostCheck } from '@thv/http/server/host-guard'
import type { HttpLimits } from '@thv/http/server/http-limits'
import { createHttpServer, type ListenAddress } from '@thv/http/server/server'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import { jsonEqual } from '@thv/kernel/json'
import type { Lifecycle } from '@thv/kernel/lifecycle'
import type { Logger } from '@thv/telemetry/log'
import type { RegistryAccess } from '../access/access.ts'
import type { AuthConfig } from '../access/auth-config.ts'
import { sendApiError } from '../api/http/api-error.ts'
import type { RegistryConfig } from '../config/registry-config.ts'
import type { RegistryEngine } from '../engine/engine.ts'
import { isLoopback, type ListenOn } from './listen-address.ts'

/** The parts of a server, made elsewhere: each only by its own configuration. */
export interface ServeParts {
  startEngine(config: RegistryConfig): Promise<RegistryEngine>
  createAccess(config: RegistryConfig): RegistryAccess
  createApi(parts: { engine: RegistryEngine; access: RegistryAccess; config: RegistryConfig }): ExchangeHandler
  /** `/health`, `/readiness`, `/version`, `/metrics`, `/status/sources`, `/status/images`: all that the internal address has. */
  createDiagnostics(engine: RegistryEngine): ExchangeHandler
}

export interface ExchangeHandler {
  handle(exchange: Exchange): void | Promise<void>
}

export interface ServeOptions {
  readonly config: RegistryConfig
  readonly address: ListenOn
  readonly internalAddress: ListenOn
  readonly parts: ServeParts
  readonly lifecycle: Lifecycle
  readonly log: Logger
  readonly clock: Clock
  /** How long requests are still taken when the process is to end: a Service may lead to it for a moment more. */
  readonly stopDelayMs?: number
}

export interface Served {
  readonly address: ListenAddress
  /** Undefined: it could not be opened, which is logged. */
  readonly internalAddress: ListenAddress | undefined
  readonly engine: RegistryEngine
  readonly config: RegistryConfig
  /** Another configuration for the next request. Rejects, and nothing has changed, if it cannot be used. */
  apply(config: RegistryConfig): Promise<void>
}

/** As in ToolHive (Go), where it has them. A whole request has 10 s to come; an answer that is not read for 15 s is cut off. */
const LIMITS: Partial<HttpLimits> = { headersTimeoutMs: 10_000, bodyTimeoutMs: 10_000, keepAliveMs: 60_000, stallMs: 15_000 }
/** How long requests may still be in work that began before a change of the configuration. */
const OLD_ACCESS_MS = 30_000

/** Opens everything, in this order, and leaves closing it to the lifecycle, in the opposite order. */
export async function serveRegistry(options: ServeOptions): Promise<Served> {
  const { parts, lifecycle, log, clock } = options
  let config = options.config
  const engine = await startEngine(options)
  lifecycle.onShutdown('engine', async () => await engine[Symbol.asyncDispose]())
  const frontOf = (one: RegistryConfig, access: RegistryAccess): Front => ({
    access,
    api: parts.createApi({ engine, access, config: one }),
    checkHost: hostCheck(one, options.address),
  })
  let front = frontOf(config, parts.createAccess(config))
  const retired = new Set<RegistryAccess>()
  lifecycle.onShutdown('access', async () => {
    await Promise.all([front.access, ...retired].map((one) => one[Symbol.asyncDispose]()))
  })

  const address = await listen(options.address, 'public', options, (exchange) => {
    const { checkHost, api } = front
    if (checkHost?.(exchange.headers) === undefined) return api.handle(exchange)
    sendApiError(exchange, 403, { error: 'the host name of the request is not one of this server' })
  })
  const diagnostics = parts.createDiagnostics(engine)
  const internalAddress = await listen(options.internalAddress, 'internal', options, (exchange) => diagnostics.handle(exchange)).catch(
    (error: unknown) => {
      log.error('the internal address cannot be opened; probes and metrics are not served there', { error: errorMessage(error) })
      return undefined
    },
  )

  const { stopDelayMs = 0 } = options
  if (stopDelayMs > 0) lifecycle.onShutdown('stop delay', async (signal) => await clock.sleep(stopDelayMs, signal).catch(() => undefined)) // cut short
  // The first thing at a stop: another replica leads before this one ends.
  lifecycle.onShutdown('leadership', async () => {
    await engine.resign().catch((error: unknown) => log.debug('leadership could not be given back', { error: errorMessage(error) }))
  })

  async function apply(next: RegistryConfig): Promise<void> {
    const before = front
    const after = frontOf(next, jsonEqual(next.auth, config.auth) ? front.access : parts.createAccess(next))
    // The engine serves new data before it has taken over all: meanwhile those rules hold that let in fewer.
    if (letsInFewer(next.auth, config.auth)) front = after
    try {
      await engine.reload(next)
      front = after
      config = next
    } catch (error) {
      front = before
      throw error
    } finally {
      for (const { access } of [before, after]) if (access !== front.access) retire(access)
    }
  }

  /** Requests in work still ask it. */
  function retire(old: RegistryAccess): void {
    retired.add(old)
    clock.setTimer(OLD_ACCESS_MS, () => {
      if (!retired.delete(old)) return
      Promise.resolve(old[Symbol.asyncDispose]()).catch((error: unknown) =>
        log.warn('closing the old providers failed', { error: errorMessage(error) }),
      )
    })
  }

  return {
    address,
    internalAddress,
    engine,
    get config() {
      return config
    },
    apply,
  }
}

/** Everything between clients and the engine: it changes as a whole. */
interface Front {
  readonly access: RegistryAccess
  readonly api: ExchangeHandler
  readonly checkHost: HostCheck | undefined
}

function letsInFewer(next: AuthConfig, before: AuthConfig): boolean {
  return strictness(next) > strictness(before)
}

function strictness({ mode, authz }: AuthConfig): number {
  return mode === 'anonymous' ? 0 : authz === undefined ? 1 : 2
}

/** A stop request while the process waits for its store does not wait too. */
async function startEngine({ config, parts, lifecycle: { signal } }: ServeOptions): Promise<RegistryEngine> {
  signal.throwIfAborted()
  const starting = parts.startEngine(config)
  const stopped = Promise.withResolvers<never>()
  const stop = () => stopped.reject(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  try {
    return await Promise.race([starting, stopped.promise])
  } catch (error) {
    if (signal.aborted) void starting.then(async (late) => await late[Symbol.asyncDispose]()).catch(() => {}) // the process ends anyway
    throw error
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

async function listen(
  on: ListenOn,
  name: string,
  { lifecycle, log, clock }: ServeOptions,
  handler: (exchange: Exchange) => void | Promise<void>,
): Promise<ListenAddress> {
  const server = createHttpServer({
    handler,
    limits: LIMITS,
    clock,
    onError: (error) => log.error('a request could not be answered', { address: name, error: errorMessage(error) }),
    busy: (exchange) => sendApiError(exchange, 503, { error: 'the server is about to stop, or busy', headers: ['Retry-After', '2'] }),
  })
  const address = await server.listen(on)
  lifecycle.onShutdown(`${name} address`, async (signal) => void (await server.drain(signal)))
  return address
}

/**
 * A web page anywhere can make a browser ask this machine under a name of its own (DNS rebinding). Without authentication,
 * and the server is meant for this machine alone, only this machine's names are good.
 */
function hostCheck({ http, auth }: RegistryConfig, { host }: ListenOn): HostCheck | undefined {
  if (http.allowedHosts === undefined && !(auth.mode === 'anonymous' && isLoopback(host))) return undefined
  // Origins are left to CORS: reads of other pages are refused by the browser, and writes need its permission first.
  return createHostGuard({ boundHost: host, allowedHosts: http.allowedHosts, allowedOrigins: ['*'] })
}
