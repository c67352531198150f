import type { Backend } from '@thv/gateway/backend'
import { createGateway, type GatewayServer } from '@thv/gateway/gateway'
import type { LiveSessionRecord } from '@thv/gateway/sessions/live-sessions'
import { type Clock, systemClock } from '@thv/kernel/clock'
import type { Middleware } from '@thv/middleware/pipeline/middleware'
import { compilePipeline } from '@thv/middleware/pipeline/pipeline'
import { createMemorySessionStore } from '@thv/store/memory-session-store'
import type { SessionStore } from '@thv/store/session-store'
import type { Log } from '@thv/telemetry/log'
import { createMetrics, type Metrics } from '@thv/telemetry/metrics'
import type { Runtime } from '../../../runtime/runtime.ts'
import type { StdioSettings } from '../process/stdio-config.ts'
import { createStdioBackend } from '../stdio-backend.ts'

export interface StdioRunner extends AsyncDisposable {
  /** Of the MCP endpoint. */
  readonly url: string
  readonly base: string
  readonly backend: Backend
  readonly metrics: Metrics
  readonly logged: readonly string[]
  readonly store: SessionStore<LiveSessionRecord>
  /** The value of a counter of the stdio bridge. */
  dropped(what: string, reason: string): number
}

export interface StdioRunnerOptions {
  readonly runtime: Runtime
  readonly config?: Partial<StdioSettings>
  readonly middleware?: readonly Middleware[]
  readonly clock?: Clock
  readonly store?: SessionStore<LiveSessionRecord>
  readonly server?: Partial<GatewayServer>
}

/** A whole runner for a stdio server, in this process, on a free port of loopback. */
export async function startStdioRunner(options: StdioRunnerOptions): Promise<StdioRunner> {
  const { runtime, clock = systemClock } = options
  const logged: string[] = []
  const pipeline = compilePipeline(options.middleware ?? [])
  const metrics = createMetrics()
  const log = collectingLog(logged)
  const store = options.store ?? createMemorySessionStore<LiveSessionRecord>({ clock })
  const config = { name: 'test', ...options.config }
  const backend = createStdioBackend({ runtime, config, pipeline, store, clock, log, metrics, random: () => 0 })
  const gateway = createGateway({
    ...{ backend, pipeline, log, metrics },
    server: { name: 'test', transport: 'stdio', host: '127.0.0.1', port: 0, era: config.era ?? 'auto', ...options.server },
    limits: { lameDuckMs: 0 },
    httpLimits: { drainIdleMs: 0 },
  })
  const { url } = await gateway.listen()
  return {
    ...{ url: `${url}/mcp`, base: url, backend, metrics, logged, store },
    dropped(what, reason) {
      const found = new RegExp(`^toolhive_stdio_dropped_total\\{what="${what}",reason="${reason}"\\} (\\d+)$`, 'm').exec(metrics.render())
      return Number(found?.[1] ?? 0)
    },
    async [Symbol.asyncDispose]() {
      await backend.close()
      await gateway.drain(AbortSignal.timeout(100))
      await runtime.close()
      if (options.store === undefined) await store.close()
    },
  }
}

function collectingLog(lines: string[]): Log {
  const at =
    (level: string) =>
    (message: string, fields: object = {}) =>
      void lines.push(`${level} ${message} ${JSON.stringify(fields)}`)
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}
