import { createMetrics } from '@thv/telemetry/metrics'
import { addMemoryRelease, addProcessMetrics } from '@thv/telemetry/process-metrics'
import { createAccess } from '../access/access.ts'
import { addRegistryMetrics, createDiagnostics, createHealthRoutes } from '../api/health-routes.ts'
import { createRegistryApi } from '../api/registry-api.ts'
import { createStatusRoutes } from '../api/status-routes.ts'
import type { PartsContext } from '../commands/command-env.ts'
import type { RegistryConfig } from '../config/registry-config.ts'
import type { RegistryEngine } from '../engine/engine.ts'
import { startEngineWorker } from '../engine/engine-worker.ts'
import type { ServeParts } from './serve.ts'
import { VERSION } from './version.ts'

export interface RealPartsOptions extends PartsContext {
  /** The module that both threads begin with. */
  readonly entry: URL
  /** The end of the process. */
  readonly signal: AbortSignal
  /** For tests: the engine in this thread. */
  readonly startEngine?: (config: RegistryConfig) => Promise<RegistryEngine>
}

/** The parts as they are outside of tests. */
export function createParts(options: RealPartsOptions): ServeParts {
  const { log, clock, env, entry, signal } = options
  const metrics = createMetrics()
  let countAnswer: ReturnType<typeof addRegistryMetrics> | undefined
  let countRelease: ReturnType<typeof addMemoryRelease> | undefined
  const startWorker = (config: RegistryConfig) =>
    startEngineWorker({ config, entry, log, clock, onReleased: (result) => countRelease?.(result) })
  return {
    async startEngine(config) {
      const engine = options.startEngine ? await options.startEngine(config) : await startWorker(config)
      addProcessMetrics(metrics)
      countRelease = addMemoryRelease(metrics, signal)
      countAnswer = addRegistryMetrics(metrics, engine)
      return engine
    },
    createAccess: (config) => createAccess(config.auth, { clock, log, env }),
    createApi: ({ engine, access, config }) =>
      createRegistryApi({
        engine,
        access,
        config,
        version: VERSION,
        log,
        clock,
        ...(countAnswer && { onAnswer: countAnswer }),
        ...(config.http.publicHealth && { health: createHealthRoutes(engine, { version: VERSION, names: access.anonymous }) }),
      }),
    createDiagnostics: (engine) => createDiagnostics(createHealthRoutes(engine, { version: VERSION, metrics }), createStatusRoutes(engine)),
  }
}
