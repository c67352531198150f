import { tryParseDuration } from '@thv/kernel/duration'
import { errorMessage, isThvError, ThvError } from '@thv/kernel/errors'
import { jsonEqual } from '@thv/kernel/json'
import type { Log } from '@thv/telemetry/log'
import type { Metrics } from '@thv/telemetry/metrics'
import type { VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import { frontConfig, type openFrontPolicies } from '../config/front-config.ts'
import type { Discovered } from '../discover/discovered-backends.ts'
import type { Env } from '../discover/forwarded-headers.ts'
import type { MemberRoster } from '../members/member-roster.ts'
import type { Offer } from '../offer.ts'
import { viewSettings } from '../view/built-view.ts'
import type { ViewCache } from '../view/view-cache.ts'
import type { BackendFeed } from './backend-feed.ts'
import type { LiveConfig } from './live-config.ts'

export interface LiveServerOptions {
  readonly live: LiveConfig
  /** The backends that the roster holds; undefined while they are not known. */
  readonly discovered: Discovered | undefined
  readonly feed: BackendFeed
  readonly roster: MemberRoster
  readonly view: ViewCache
  readonly offer: Offer
  readonly policies: Awaited<ReturnType<typeof openFrontPolicies>>
  readonly env: Env
  readonly log: Log
  readonly metrics: Metrics
}

const NONE: Discovered = { backends: [], leftOut: [], warnings: [], ready: new Set() }

/** Applies changes of the configuration and of the backends while clients are served. One change at a time; those in between are joined. */
export class LiveServer {
  readonly #options: LiveServerOptions
  readonly #first = Promise.withResolvers<void>()
  readonly #listeners = new Set<() => void>()
  #applied: VmcpConfig
  #discovered = NONE
  #running: Promise<void> | undefined
  #isDue = false
  #isClosed = false
  #reloads: (outcome: 'ok' | 'failed') => void

  constructor(options: LiveServerOptions) {
    this.#options = options
    this.#applied = options.live.current
    if (options.discovered !== undefined) {
      this.#report(options.discovered, [], [])
      this.#discovered = options.discovered
      this.#first.resolve()
    }
    this.#reloads = addMetrics(options.metrics, this)
  }

  /** The backends are known. */
  get first(): Promise<void> {
    return this.#first.promise
  }

  get discovered(): Discovered {
    return this.#discovered
  }

  get live(): LiveConfig {
    return this.#options.live
  }

  /** Called after the backends or the configuration have changed. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener)
  }

  /** A newer text of the configuration. */
  offer(text: string, source: string): void {
    const { live, log } = this.#options
    const isTaken = live.offer(text, source)
    if (isTaken === false) {
      log.error('the configuration is not replaced; the one before stays in force', { source, problem: live.state.problem })
      this.#reloads('failed')
      this.#tell()
    }
    if (isTaken === true) this.request()
  }

  /** The text of the configuration cannot be read. */
  unreadable(problem: string): void {
    const { live, log } = this.#options
    if (live.state.problem === problem) return
    live.reject(problem)
    log.error('the configuration is not replaced; the one before stays in force', { problem })
    this.#reloads('failed')
    this.#tell()
  }

  /** The backends or the configuration may be others now. */
  request(): void {
    if (this.#isClosed) return
    this.#isDue = true
    this.#running ??= this.#run()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#running
    await this.#options.feed.close()
  }

  async #run(): Promise<void> {
    while (this.#isDue && !this.#isClosed) {
      this.#isDue = false
      try {
        await this.#apply()
      } catch (error) {
        this.#options.log.error('could not apply a change', { error: errorMessage(error) })
      }
    }
    this.#running = undefined
  }

  /** All of a configuration or nothing of it. */
  async #apply(): Promise<void> {
    const { live, feed, roster, view, offer, log } = this.#options
    const config = live.current
    const isNew = config !== this.#applied
    let discovered: Discovered | undefined
    try {
      discovered = await feed.resolve(config)
      if (discovered !== undefined && isNew) await this.#replacePolicies(config)
    } catch (error) {
      if (!isThvError(error, 'vmcp_config_invalid')) throw error
      // One that came meanwhile is applied next, and says itself whether it works.
      if (live.current === config) live.reject(error.message, this.#applied)
      log.error('the configuration is not replaced; the one before stays in force', { problem: error.message })
      this.#reloads('failed')
      this.#tell()
      return
    }
    if (discovered === undefined || this.#isClosed) return
    const { joined, left } = roster.apply(discovered.backends, healthSettings(config))
    if (isNew) {
      view.reconfigure(viewSettings(config))
      offer.reconfigure(config)
      this.#applied = config
      this.#reloads('ok')
      const { needsRestart } = live.state
      log.info('configuration replaced', { hash: live.state.hash })
      if (needsRestart.length > 0) log.warn('some fields need another start', { fields: needsRestart.join(', ') })
    }
    this.#report(
      discovered,
      joined.map(({ name }) => name),
      left.map(({ name }) => name),
    )
    for (const name of discovered.ready) if (!this.#discovered.ready.has(name)) view.look(name)
    this.#discovered = discovered
    this.#first.resolve()
    this.#tell()
  }

  async #replacePolicies(config: VmcpConfig): Promise<void> {
    const { policies, env } = this.#options
    if (policies === undefined || jsonEqual(config.incomingAuth.authz, this.#applied.incomingAuth.authz)) return
    const { authz_config: authz } = frontConfig(config, env)
    const loaded = authz && (await policies.replace(authz))
    if (loaded?.outcome === 'failed')
      throw new ThvError('vmcp_config_invalid', `incomingAuth.authz is not usable: ${loaded.problems.join('; ')}`)
  }

  #report({ leftOut, warnings }: Discovered, joined: readonly string[], left: readonly string[]): void {
    const { log } = this.#options
    if (joined.length + left.length > 0) log.info('backends changed', { joined: joined.join(', '), left: left.join(', ') })
    const before = new Set([...this.#discovered.leftOut, ...this.#discovered.warnings].map(lineOf))
    for (const problem of [...leftOut, ...warnings]) if (!before.has(lineOf(problem))) log.warn('a backend needs attention', { ...problem })
  }

  #tell(): void {
    for (const listener of this.#listeners) listener()
  }
}

function lineOf({ kind, name, reason, message }: Discovered['leftOut'][number]): string {
  return `${kind} ${name} ${reason} ${message}`
}

export function healthSettings({ operational }: VmcpConfig) {
  const { unhealthyThreshold, circuitBreaker } = operational.failureHandling
  const { enabled, failureThreshold, timeout } = circuitBreaker
  return { unhealthyThreshold, circuit: { enabled, failureThreshold, timeoutMs: tryParseDuration(timeout) ?? 60_000 } }
}

function addMetrics(metrics: Metrics, server: LiveServer): (outcome: 'ok' | 'failed') => void {
  const reloads = metrics.counter({
    name: 'toolhive_vmcp_config_reloads_total',
    help: 'Configurations that came while the server ran.',
    labels: ['outcome'],
  })
  const valid = metrics.gauge({
    name: 'toolhive_vmcp_config_valid',
    help: '1 when the newest configuration is in force, 0 when an older one is.',
  })
  const leftOut = metrics.gauge({
    name: 'toolhive_vmcp_members_left_out',
    help: 'Members of the group that are no backends.',
  })
  metrics.onCollect(() => {
    valid.with().set(server.live.state.problem === undefined ? 1 : 0)
    leftOut.with().set(server.discovered.leftOut.length)
  })
  return (outcome) => reloads.with(outcome).inc()
}
