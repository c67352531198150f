import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import type { KubernetesSource } from '@thv/catalog/sources/fetch/kubernetes-source'
import type { SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { parseDuration } from '@thv/kernel/duration'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { isInCluster, type KubeClient, leases, type ObjectKey, runWithLease } from '@thv/kube'
import type { Logger } from '@thv/telemetry/log'
import type { LeaderStatus } from '../engine/engine.ts'
import type { ConnectCluster } from './cluster-connection.ts'

export interface LeadershipOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly random: () => number
  readonly env: Readonly<Record<string, string | undefined>>
  readonly connect: ConnectCluster
  readonly onChange: () => void
}

/** Which kubernetes sources this replica may list, watch and sync: those whose Lease it holds, and those without an election. */
export interface Leadership extends AsyncDisposable {
  /** Exactly these, in the order of the configuration. */
  set(sources: readonly SourceConfig[]): void
  mayTake(source: string): boolean
  /** Sources that another replica may sync. */
  readonly withheld: readonly string[]
  /** Undefined: no source has an election. */
  readonly status: LeaderStatus | undefined
  /** Gives all leases back and asks for none any more. */
  resign(): Promise<void>
}

/** Others wait 1.2 of their periods at most from one attempt to the next. */
const HEIR_PERIODS = 2
const HEIR_LIMIT_MS = 10_000
const HEIR_POLL_MS = 250

const DEFAULT_ID = 'toolhive-registry-kubernetes-source'

export function createLeadership(options: LeadershipOptions): Leadership {
  const elections = new Map<string, Election>()
  const ending = new Set<Promise<void>>()
  let transitions = 0
  let resigned = false

  function drop(name: string): void {
    const election = elections.get(name)
    elections.delete(name)
    const ended = election?.stop().finally(() => ending.delete(ended as Promise<void>))
    if (ended) ending.add(ended)
  }

  const leadership: Leadership = {
    set(sources) {
      const wanted = new Map(electionsOf(sources, options.env).map((each) => [each.source, each]))
      for (const [name, { settings }] of elections) if (JSON.stringify(wanted.get(name)) !== JSON.stringify(settings)) drop(name)
      for (const [name, settings] of wanted) {
        if (elections.has(name)) continue
        const election = new Election(settings, {
          ...options,
          onChange: () => {
            transitions++
            options.onChange()
          },
        })
        elections.set(name, election)
        if (!resigned) election.start()
      }
    },
    mayTake: (name) => elections.get(name)?.leading ?? true,
    get withheld() {
      return [...elections].flatMap(([name, { leading }]) => (leading ? [] : [name]))
    },
    get status() {
      if (elections.size === 0) return undefined
      const all = [...elections.values()]
      const problem = all.map((election) => election.problem).find((text) => text !== '')
      return { leading: all.every(({ leading }) => leading), transitions, ...(problem !== undefined && { problem }) }
    },
    async resign() {
      resigned = true
      await Promise.all([...elections.values()].map((election) => election.stop()))
    },
    async [Symbol.asyncDispose]() {
      await leadership.resign()
      await Promise.all(ending)
    },
  }
  return leadership
}

interface ElectionSettings {
  readonly source: string
  readonly block: KubernetesSource
  readonly lease: string
}

/** The first source uses the id alone, further ones append their names. */
function electionsOf(sources: readonly SourceConfig[], env: LeadershipOptions['env']): readonly ElectionSettings[] {
  return sources
    .flatMap(({ name, kubernetes }) => (kubernetes === undefined ? [] : [{ source: name, block: kubernetes }]))
    .map(({ source, block }, index) => {
      const id = block.leaderElection?.id ?? (env['THV_REGISTRY_LEADER_ELECTION_ID'] || DEFAULT_ID)
      return { source, block, lease: index === 0 ? id : `${id}-${source}` }
    })
    .filter(({ block }) => block.leaderElection?.enabled ?? (block.kubeconfig === undefined && isInCluster(env)))
}

class Election {
  readonly settings: ElectionSettings
  readonly #options: LeadershipOptions
  readonly #stopped = new AbortController()
  #running: Promise<void> = Promise.resolve()
  #leading = false
  #problem = ''

  constructor(settings: ElectionSettings, options: LeadershipOptions) {
    this.settings = settings
    this.#options = options
  }

  get leading(): boolean {
    return this.#leading
  }

  /** Why the Lease cannot be taken; empty while another holds it. */
  get problem(): string {
    return this.#leading ? '' : this.#problem
  }

  start(): void {
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { clock, random, log } = this.#options
    const { signal } = this.#stopped
    const backoff = createBackoff({ baseMs: 500, maxMs: 30_000, random })
    while (!signal.aborted) {
      try {
        await this.#compete(signal)
      } catch (error) {
        this.#problem = errorMessage(error)
        log.warn('the leader election of a kubernetes source cannot run', { source: this.settings.source, error: this.#problem })
        this.#options.onChange()
      }
      await clock.sleep(backoff.next(), signal).catch(() => {}) // the loop sees the abort
    }
  }

  async #compete(signal: AbortSignal): Promise<void> {
    const { clock, log, random, connect } = this.#options
    const { block, lease, source } = this.settings
    const { leaderElection = {} } = block
    const { client, namespace: own } = await connect(block)
    try {
      const namespace = leaderElection.namespace ?? own
      if (namespace === undefined) throw new ThvError('registry_config_invalid', 'outside of a pod leaderElection needs a namespace')
      const fields = { source }
      const retryPeriodMs = parseDuration(leaderElection.retryPeriod ?? '2s')
      let ledAtStop = false
      signal.addEventListener('abort', () => (ledAtStop = this.#leading), { once: true })
      await runWithLease({
        client,
        namespace,
        name: lease,
        identity: `${hostname()}_${randomBytes(4).toString('hex')}`,
        leaseDurationMs: parseDuration(leaderElection.leaseDuration ?? '15s'),
        renewDeadlineMs: parseDuration(leaderElection.renewDeadline ?? '10s'),
        retryPeriodMs,
        clock,
        random,
        signal,
        onStart: (until) => this.#lead(until),
        onLost: () => this.#enter(false),
        onNewLeader: () => {
          this.#problem = ''
        },
        log: {
          info: (message, more) => log.info(message, { ...fields, ...more }),
          warn: (message, more) => {
            if (typeof more?.['error'] === 'string') this.#problem = more['error']
            log.warn(message, { ...fields, ...more })
            this.#options.onChange()
          },
        },
      })
      if (ledAtStop) await this.#waitForHeir(client, { namespace, name: lease }, Math.min(retryPeriodMs * HEIR_PERIODS, HEIR_LIMIT_MS))
    } finally {
      this.#enter(false)
      await client.close()
    }
  }

  /** Another replica, if there is one, takes the Lease at its next attempt. This one serves reads meanwhile. */
  async #waitForHeir(client: KubeClient, lease: ObjectKey, limitMs: number): Promise<void> {
    const { clock } = this.#options
    const deadline = clock.monotonic() + limitMs
    while (clock.monotonic() < deadline) {
      const held = await client.tryGet(leases, lease).catch(() => undefined) // asked again
      if (held?.spec?.holderIdentity) return
      await clock.sleep(HEIR_POLL_MS)
    }
  }

  async #lead(until: AbortSignal): Promise<void> {
    this.#enter(true)
    const { promise, resolve } = Promise.withResolvers<void>()
    if (until.aborted) resolve()
    else until.addEventListener('abort', () => resolve(), { once: true })
    await promise
    this.#enter(false)
  }

  #enter(leading: boolean): void {
    if (this.#leading === leading) return
    this.#leading = leading
    this.#options.onChange()
  }
}
