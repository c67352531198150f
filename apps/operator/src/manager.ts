import { randomBytes } from 'node:crypto'
import { httpRoutes } from '@thv/catalog/cluster/cluster-kinds'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import type { Lifecycle } from '@thv/kernel/lifecycle'
import type { Controller, KubeClient, ReconcileReport, ResourceType } from '@thv/kube'
import { createEventRecorder } from '@thv/kube/events/events'
import { runWithLease } from '@thv/kube/leader-election/lease-election'
import { KINDS } from '@thv/resources/kinds/kinds'
import { resourceTypeOf } from '@thv/resources/schema/kind-definition'
import type { Logger } from '@thv/telemetry/log'
import type { Metrics } from '@thv/telemetry/metrics'
import { createOperatorCaches, type OperatorCaches } from './caches/operator-caches.ts'
import { CONTROLLERS, createControllers } from './controllers/controllers.ts'
import { createChildApplier } from './deployment/child-applier.ts'
import type { Env, EventSink } from './environment.ts'
import { addOperatorMetrics } from './operator-metrics.ts'
import type { OperatorSettings } from './operator-settings.ts'

export interface ManagerOptions {
  readonly client: KubeClient
  readonly settings: OperatorSettings
  readonly metrics: Metrics
  readonly log: Logger
  readonly clock?: Clock
  /** Called after each reconcile, with the object's key. */
  readonly onReconcile?: (controller: string, report: ReconcileReport) => void
  /** For tests; see `Env`. */
  readonly exportDebounceMs?: number
}

export interface Manager {
  /** Works until the lifecycle ends, or fails. Caches fill before the lease is won, so that a successor starts at once. */
  run(lifecycle: Lifecycle): Promise<void>
  /** Whether all caches are filled; a standby is ready too. */
  readonly isReady: boolean
  readonly isLeader: boolean
  readonly caches: OperatorCaches
  /** Empty until the work has begun; new ones with each term. */
  readonly controllers: readonly Controller[]
}

/** A limit for the drain of reconciles under way when the operator stops or has lost the lease. */
const DRAIN_MS = 5_000
/** The drain, what its aborted reconciles take to notice, and the release of the lease. */
const WORK_END_MS = 15_000

export function createManager(options: ManagerOptions): Manager {
  const { client, settings, metrics, log, clock = systemClock, onReconcile, exportDebounceMs } = options
  const caches = createOperatorCaches({
    client,
    specs: CONTROLLERS.map(({ cache }) => cache),
    namespaces: settings.watchNamespaces,
    clock,
    onError: (error, { cache, phase }) => log.warn('watch failed; retrying', { cache, phase, error: errorMessage(error) }),
  })
  let controllers: Controller[] = []
  let isLeader = false
  const observed = addOperatorMetrics(metrics, { caches, controllers: () => controllers, isLeader: () => isLeader })

  async function work(env: Env, signal: AbortSignal): Promise<void> {
    isLeader = true
    controllers = createControllers(env, {
      drainMs: DRAIN_MS,
      onReconcile(controller, report) {
        observed.onReconcile(controller, report)
        onReconcile?.(controller, report)
      },
    })
    log.info('working', { controllers: controllers.map(({ name }) => name) })
    try {
      await allOrStop(controllers, signal)
    } finally {
      isLeader = false
      controllers = []
    }
  }

  return {
    caches,
    get isReady() {
      return caches.shared.all.every(({ hasSynced }) => hasSynced)
    },
    get isLeader() {
      return isLeader
    },
    get controllers() {
      return controllers
    },
    async run(lifecycle) {
      lifecycle.onShutdown('caches', () => caches.shared.close())
      const recorder = createEventRecorder({
        client,
        controller: 'toolhive.stacklok.dev/operator',
        instance: settings.podName,
        clock,
        onError: (error) => log.warn('an event could not be recorded', { error: errorMessage(error) }),
      })
      lifecycle.onShutdown('events', (signal) => recorder.flush(signal), { timeoutMs: 3_000 })
      const env: Env = {
        ...{ client, caches, settings, clock, log },
        children: createChildApplier(client),
        events: eventSink(recorder),
        ...(exportDebounceMs !== undefined && { exportDebounceMs }),
      }
      const ended = Promise.withResolvers<void>()
      // Before all others: work under way and the release of the lease still need the client and the caches.
      lifecycle.onShutdown('work', () => ended.promise, { timeoutMs: WORK_END_MS })
      try {
        await elected(env, lifecycle, (signal) => work(env, signal))
      } finally {
        ended.resolve()
      }
    },
  }
}

async function elected(env: Env, lifecycle: Lifecycle, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const { client, settings, clock, log } = env
  if (!settings.leaderElection) return await work(lifecycle.signal)
  await runWithLease({
    client,
    namespace: settings.podNamespace,
    name: settings.leaseName,
    identity: `${settings.podName}_${randomBytes(4).toString('hex')}`,
    leaseDurationMs: settings.leaseDurationMs,
    renewDeadlineMs: (settings.leaseDurationMs * 2) / 3,
    retryPeriodMs: (settings.leaseDurationMs * 2) / 15,
    clock,
    signal: lifecycle.signal,
    onStart: work,
    onLost: (reason) => log.warn('the lease is lost; stopping all work', { reason: errorMessage(reason) }),
    onNewLeader: (identity) => log.info('the leader is known', { identity }),
    log,
  })
}

/** When one controller fails all are stopped: a half operator would look alive. */
async function allOrStop(controllers: readonly Controller[], signal: AbortSignal): Promise<void> {
  const stop = new AbortController()
  const onAbort = () => stop.abort(signal.reason)
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
  try {
    const results = await Promise.allSettled(
      controllers.map((controller) =>
        controller.run(stop.signal).catch((error: unknown) => {
          stop.abort(new ThvError('aborted', `controller ${controller.name} failed`))
          throw error
        }),
      ),
    )
    const failed = results.find((result) => result.status === 'rejected')
    if (failed) throw failed.reason
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

const TYPES = new Map<string, ResourceType>([
  ...KINDS.map((definition) => [definition.kind, resourceTypeOf(definition)] as const),
  // Other people's objects: all that the operator says about them is an Event.
  ...httpRoutes.map((type) => [type.kind, type] as const),
])

function eventSink(recorder: ReturnType<typeof createEventRecorder>): EventSink {
  return {
    record(regarding, event) {
      const type = TYPES.get(regarding.kind ?? '')
      if (type !== undefined) recorder.record(type, regarding, { action: 'Reconcile', ...event })
    },
  }
}
