import type { BackendStatus } from '@thv/gateway/backend'
import { BackendClient } from '@thv/gateway/relay/backend-client'
import { BackendMonitor } from '@thv/gateway/relay/backend-monitor'
import type { HttpBackendLimits } from '@thv/gateway/relay/relay-limits'
import { unavailable } from '@thv/gateway/response/backend-rejection'
import { RejectedError } from '@thv/gateway/response/rejected-error'
import type { Clock } from '@thv/kernel/clock'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { BackendInfo } from '@thv/middleware/pipeline/request-context'
import type { Log } from '@thv/telemetry/log'
import type { BackendLocation } from './backend-location.ts'

export interface LocatedBackendOptions {
  readonly info: BackendInfo
  readonly location: BackendLocation
  readonly pipeline: Pipeline
  readonly clock: Clock
  readonly log: Log
  readonly limits: HttpBackendLimits
  /** The only one that the backend speaks; absent: the monitor finds out. */
  readonly era?: 'legacy' | undefined
  /** False: the backend is not asked again and again whether it is there. */
  readonly watches?: boolean | undefined
}

/** A backend behind a URL that is known once its process has started: the client for it, and the monitor that says whether it answers. */
export class LocatedBackend {
  readonly #options: LocatedBackendOptions
  readonly #closing = new AbortController()
  #client: BackendClient | undefined
  #monitor: BackendMonitor | undefined
  #generation = 0

  constructor(options: LocatedBackendOptions) {
    this.#options = options
    options.location.onChange(() => this.#located())
    this.#located()
  }

  /** Undefined until there is an address. */
  get client(): BackendClient | undefined {
    return this.#client
  }

  /** Rejects while there is no address. */
  get ready(): BackendClient {
    if (this.#client === undefined) throw new RejectedError(unavailable('it is being started'))
    return this.#client
  }

  get status(): Pick<BackendStatus, 'ready' | 'message' | 'eras' | 'versions' | 'problem'> {
    const { state } = this.#options.location
    const monitor = this.#monitor?.state
    return {
      ready: state.ready && monitor?.alive === true,
      message: state.ready ? (monitor?.message ?? 'the backend has no address yet') : state.message,
      eras: monitor?.eras,
      versions: monitor?.versions,
      problem: state.ready ? monitor?.problem : undefined,
    }
  }

  /** Aborted when it is closed. */
  get signal(): AbortSignal {
    return this.#closing.signal
  }

  /** A request did not reach it: the monitor looks now, not at its next turn. */
  nudge(): void {
    this.#monitor?.nudge()
  }

  close(): void {
    this.#closing.abort()
  }

  #located(): void {
    const { location, pipeline, clock, log, info, limits, era, watches = true } = this.#options
    const { current, state } = location
    if (state.generation !== this.#generation) {
      this.#generation = state.generation
      this.#monitor?.restarted()
    }
    if (current === undefined || this.#client !== undefined) return
    this.#client = new BackendClient({ ...current, pipeline, clock, info })
    const { checkIntervalMs: intervalMs, checkTimeoutMs: timeoutMs, checkThreshold: threshold } = limits
    this.#monitor = new BackendMonitor({ backend: this.#client, clock, log, intervalMs, timeoutMs, threshold, watches, era })
    void this.#monitor.run(this.#closing.signal)
  }
}
