import type { Backend, BackendStatus, SseEndpoint } from '@thv/gateway/backend'
import { prepareHop } from '@thv/gateway/relay/prepare-hop'
import { sendRejection } from '@thv/gateway/response/send-rejection'
import type { LiveSessionRecord } from '@thv/gateway/sessions/live-sessions'
import type { Clock } from '@thv/kernel/clock'
import { retryLater } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { MessageContext, RequestContext, SessionContext } from '@thv/middleware/pipeline/request-context'
import type { SessionStore } from '@thv/store/session-store'
import type { Log } from '@thv/telemetry/log'
import type { Metrics } from '@thv/telemetry/metrics'
import type { Runtime } from '../../runtime/runtime.ts'
import { LegacyEndpoint } from './legacy/legacy-endpoint.ts'
import { LegacyService } from './legacy/legacy-service.ts'
import { SseClients } from './legacy/sse-endpoint.ts'
import { ModernEndpoint } from './modern/modern-endpoint.ts'
import { toolsOfProcess } from './process/own-tool-list.ts'
import { type StdioSettings, stdioConfig } from './process/stdio-config.ts'
import type { StdioDeps } from './process/stdio-deps.ts'
import { createStdioMetrics } from './process/stdio-metrics.ts'
import { ProcessPool } from './process-pool.ts'

export interface StdioBackendOptions {
  readonly runtime: Runtime
  readonly config: StdioSettings
  readonly pipeline: Pipeline
  readonly store: SessionStore<LiveSessionRecord>
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** In [0, 1), as Math.random. */
  random?(): number
}

/**
 * A stdio MCP server as something that speaks HTTP: streamable HTTP in both eras, and HTTP+SSE. The store and the runtime belong to the
 * caller; `close` ends the processes that were opened here.
 */
export function createStdioBackend(options: StdioBackendOptions): Backend {
  const { runtime, pipeline, store, clock, log } = options
  const config = stdioConfig(options.config)
  const metrics = createStdioMetrics(options.metrics, () => ({ sessions: sessionCount(), inFlight: pool.inFlight }))
  const onToolsChanged = () => pipeline.toolsChanged()
  const deps: StdioDeps = { runtime, config, clock, log, metrics, onToolsChanged, ...(options.random ? { random: options.random } : {}) }
  const pool = new ProcessPool(deps)
  const service = new LegacyService({ deps, pool, pipeline, onChange: (session) => void legacy.sessions.save(session) })
  const legacy = new LegacyEndpoint({ deps, pool, service, pipeline, store })
  const modern = new ModernEndpoint(deps, pool, pipeline)
  const sse = new SseClients({ deps, pool, service, pipeline })
  let isDraining = false

  const sessionCount = () => legacy.sessions.size + sse.size
  const reject = ({ exchange }: RequestContext) => sendRejection(exchange, retryLater('draining', 1_000))
  pool.start()

  return {
    get status(): BackendStatus {
      const problem = isDraining ? 'draining' : pool.problem
      return {
        ready: problem === undefined,
        message: problem ?? 'ready',
        eras: pool.eras.eras,
        versions: pool.versions,
        sessions: sessionCount(),
        inFlight: pool.inFlight,
        problem: pool.cause,
      }
    },
    async post(context: MessageContext) {
      // The answer to a question that is still open lets a call under way end.
      if (isDraining && context.received.kind === 'request') return reject(context)
      const preparing = prepareHop(pipeline, context)
      if (preparing !== undefined) await preparing
      await (context.era === 'modern' ? modern.post(context) : legacy.post(context))
    },
    async openStream(context: SessionContext) {
      if (isDraining) return reject(context)
      await legacy.openStream(context)
    },
    endSession: (context) => legacy.endSession(context),
    tools: async ({ era }) => await toolsOfProcess(await pool.anyProcess(era), config),
    ...(config.era === 'modern' ? {} : { sse: drainable(sse, () => isDraining, reject) }),
    async drain(signal) {
      isDraining = true
      modern.endListens()
      legacy.endStandalone()
      while (pool.inFlight > 0 && !signal.aborted) await clock.sleep(DRAIN_POLL_MS, signal).catch(() => {})
      sse.end()
    },
    async close() {
      isDraining = true
      modern.endListens()
      sse.end()
      legacy.sessions.close()
      await pool.close()
    },
  }
}

/** The streams of HTTP+SSE carry the answers of what is under way, so they are the last to go. */
function drainable(sse: SseEndpoint, isDraining: () => boolean, reject: (context: RequestContext) => void): SseEndpoint {
  return {
    open: async (context) => (isDraining() ? reject(context) : sse.open(context)),
    message: async (context) => (isDraining() && context.received.kind === 'request' ? reject(context) : sse.message(context)),
    reject: (context, rejection) => sse.reject(context, rejection),
  }
}

const DRAIN_POLL_MS = 20
