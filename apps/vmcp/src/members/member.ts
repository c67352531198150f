import type { Outbound } from '@thv/http/outbound/outbound'
import type { Clock } from '@thv/kernel/clock'
import type { BackendEras } from '@thv/mcp/client/http/backend-eras'
import { createStreamableHttpClient } from '@thv/mcp/client/http/streamable-http-client'
import type { ClientOptions, McpClient } from '@thv/mcp/client/mcp-client'
import type { Log } from '@thv/telemetry/log'
import type { ResolvedBackend } from '../discover/resolved-backend.ts'
import { type HealthSettings, MemberHealth } from './member-health.ts'

export interface MemberDeps {
  readonly outbound: Outbound
  readonly eras: BackendEras
  readonly clock: Clock
  readonly log: Log
  readonly health: HealthSettings
  readonly version: string
}

export type OwnClientOptions = Pick<ClientOptions, 'capabilities' | 'handlers' | 'legacyVersion' | 'onNotification'>

/** Longer than any call may last: calls keep their own time. */
const CALL_LIMIT_MS = 24 * 3_600_000
const CONNECT_LIMIT_MS = 15_000
/** A message of a backend is parsed whole: this bounds what one costs. */
export const MAX_MESSAGE_BYTES = 32 << 20

/** One backend of the virtual server and its connections. */
export class Member {
  readonly backend: ResolvedBackend
  readonly health: MemberHealth
  /** For lists, for health and for clients that declare nothing a server could ask for: it holds no state of any of them. */
  readonly shared: McpClient
  readonly #deps: MemberDeps

  constructor(backend: ResolvedBackend, deps: MemberDeps) {
    this.backend = backend
    this.#deps = deps
    this.health = new MemberHealth(deps.clock, deps.health)
    this.shared = this.open({ capabilities: {} })
  }

  get name(): string {
    return this.backend.name
  }

  /** A client with a session of its own at the backend, where that has sessions. Connects by need. */
  open(options: OwnClientOptions): McpClient {
    const { outbound, eras, clock, log, version } = this.#deps
    const { url, ca, policy, headers, name } = this.backend
    return createStreamableHttpClient({
      ...options,
      clientInfo: { name: 'toolhive-vmcp', version },
      ...{ url, ca, policy, headers, outbound, eras, clock },
      limits: { timeoutMs: CALL_LIMIT_MS, connectTimeoutMs: CONNECT_LIMIT_MS, maxMessageBytes: MAX_MESSAGE_BYTES },
      onWarning: (text) => log.debug('warning of a backend client', { backend: name, text }),
    })
  }

  /** Runs a request to the backend and learns from its outcome. */
  async observed<T>(work: () => Promise<T>): Promise<T> {
    try {
      const result = await work()
      this.health.succeeded()
      return result
    } catch (error) {
      this.health.failed(error)
      throw error
    }
  }

  close(): Promise<void> {
    return this.shared.close()
  }
}
