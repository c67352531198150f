import { isHttpError } from '@thv/http/http-errors'
import { createHostGuard, type HostCheck } from '@thv/http/server/host-guard'
import { sendMethodNotAllowed, sendProblem } from '@thv/http/server/respond'
import { createHttpServer, type HttpServer, type ListenAddress } from '@thv/http/server/server'
import { errorMessage } from '@thv/kernel/errors'
import type { Log } from '@thv/telemetry/log'
import type { Metrics } from '@thv/telemetry/metrics'
import { sendMetrics } from './gateway.ts'

export interface MetricsServerOptions {
  readonly host: string
  /** Wanted; when it is taken any other will do. */
  readonly port: number
  readonly metrics: Metrics
  readonly log: Log
}

export interface MetricsServer {
  readonly address: ListenAddress
  close(signal: AbortSignal): Promise<void>
}

/** `/metrics` on a port of its own, so that what guards the port of the clients need not make an exception for it. */
export async function startMetricsServer({ host, port, metrics, log }: MetricsServerOptions): Promise<MetricsServer> {
  let checkHost: HostCheck = () => 'host_not_allowed'
  const create = (): HttpServer =>
    createHttpServer({
      handler(exchange) {
        const { headers, method, path } = exchange
        if (checkHost(headers) !== undefined) sendProblem(exchange, 403)
        else if (path !== '/metrics') sendProblem(exchange, 404)
        else if (method !== 'GET' && method !== 'HEAD') sendMethodNotAllowed(exchange, 'GET, HEAD')
        else sendMetrics(exchange, metrics)
      },
      onError: (error) => log.error('a request for metrics failed', { error: errorMessage(error) }),
      limits: { maxConnections: 64, drainIdleMs: 0 },
    })
  const open = async (server: HttpServer, port: number): Promise<ListenAddress> => {
    const address = await server.listen({ host, port })
    checkHost = createHostGuard({ boundHost: address.host }) // the address it ends up on, which need not be the configured one
    return address
  }
  const wanted = create()
  try {
    const address = await open(wanted, port)
    return { address, close: async (signal) => void (await wanted.drain(signal)) }
  } catch (error) {
    if (port === 0 || !isHttpError(error, 'listen_failed')) throw error
    log.warn('the port for metrics is taken; another one is used', { port, error: errorMessage(error) })
  }
  const other = create()
  const address = await open(other, 0)
  return { address, close: async (signal) => void (await other.drain(signal)) }
}
