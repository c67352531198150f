import type { BackendProblem } from '@thv/gateway/backend'
import type { BackoffOptions } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import {
  createController,
  done,
  isConflict,
  type KubeClient,
  type KubeObject,
  type ObjectKey,
  type Outcome,
  type Pod,
  pods as podType,
  type ReconcileContext,
  Reflector,
  type ResourceType,
  refusedWrite,
  requeueAfter,
  retry,
  type Service,
  type StatefulSet,
  services as serviceType,
  statefulSets,
  watchMapped,
} from '@thv/kube'
import type { ProgramLog } from '@thv/programs/program-log'
import type { RunConfig } from '@thv/runconfig/run-config'
import type { WorkloadState } from '../runtime.ts'
import { isRuntimeError } from '../runtime-errors.ts'
import { createStateCell } from '../state-cell.ts'
import { type DesiredObjects, workloadNames } from './desired-objects.ts'
import { instanceOf, isReady, serverEnd } from './pod-choice.ts'
import { rolloutOf } from './rollout.ts'
import { createApplier, isOurs, isSuperseded, needsReplacement, refuseForeign } from './workload-apply.ts'

export interface WorkloadKeeperOptions {
  readonly config: RunConfig
  readonly namespace: string
  readonly desired: DesiredObjects
  readonly client: KubeClient
  readonly log: ProgramLog
  readonly clock: Clock
  /** How long a deleted object stays away: when its owner is being deleted, this process is about to end as well. */
  readonly recreateDelayMs?: number
  readonly watchBackoff?: BackoffOptions
}

export interface WorkloadKeeper {
  readonly state: WorkloadState
  readonly pods: readonly Pod[]
  /** Why there is no server, or none that stays. */
  readonly problem: BackendProblem | undefined
  /** After each change of the state or of a pod. */
  onChange(listener: () => void): () => void
  /** Resolves when everything has stopped. Never rejects. */
  readonly done: Promise<void>
}

/** How often to look again at what stands in the way, besides being told of changes. */
const BLOCKED_RECHECK_MS = 30_000

/**
 * Makes the objects of a server exist, as long as the signal does not abort: applies them, watches them, and puts right what others
 * change or delete. Each kind is watched by name, which is all that the runner has the right to see.
 */
export function keepWorkload(options: WorkloadKeeperOptions, signal: AbortSignal): WorkloadKeeper {
  const { config, namespace, desired, client, log, clock, recreateDelayMs = 3_000 } = options
  const names = workloadNames(config)
  const key = { namespace, name: names.statefulSet }
  const applier = createApplier(client, signal)
  const missingSince = new Map<string, number>()
  const state = createStateCell({ ready: false, message: 'the StatefulSet is being applied', generation: 0 }, (error) =>
    log.warn('a listener of the state of the workload failed', { error: errorMessage(error) }),
  )
  const podListeners = new Set<() => void>()
  let problem: string | undefined
  let foreign: string | undefined
  /** A write that was refused at least twice in a row: the first time a cache may have been behind. */
  let refused: string | undefined
  let superseded = false
  let wasComplete = false
  let known = new Set<string>()

  const reflect = <T extends KubeObject>(type: ResourceType<T>, scope: { fieldSelector: string } | { labelSelector: string }) =>
    new Reflector<T>({
      client,
      type,
      namespace,
      ...scope,
      clock,
      transform: (object) => object, // with managedFields, which tell whether an object is ours
      ...(options.watchBackoff && { backoff: options.watchBackoff }),
      onError: (error, phase) => log.warn(`cannot ${phase} ${type.plural}`, { error: errorMessage(error) }),
    })
  const byName = (name: string) => ({ fieldSelector: `metadata.name=${name}` })
  const sets = reflect(statefulSets, byName(names.statefulSet))
  const headless = reflect(serviceType, byName(names.headlessService))
  const cluster = reflect(serviceType, byName(names.service))
  const podCache = reflect(podType, {
    labelSelector: Object.entries(names.selector)
      .map(([label, value]) => `${label}=${value}`)
      .join(','),
  })
  /** None while the StatefulSet is somebody else's: pods that match our labels are not ours then. */
  const pods = () => (foreign === undefined ? podCache.store.list() : [])

  async function reconcile(_: ObjectKey, { attempt }: ReconcileContext): Promise<Outcome> {
    const outcome = await converge().catch((error: unknown) => {
      if (isConflict(error)) return retry('the object has changed meanwhile')
      problem = errorMessage(error)
      refused = attempt > 1 ? refusedWrite(error, 'the proxy') : undefined
      if (!isRuntimeError(error, 'workload_foreign')) throw error
      if (foreign !== problem) log.warn(problem)
      foreign = problem
      return requeueAfter(BLOCKED_RECHECK_MS)
    })
    if (outcome.kind === 'done') problem = undefined
    refused = undefined
    if (problem !== foreign) foreign = undefined
    refresh()
    return outcome
  }

  async function converge(): Promise<Outcome> {
    const live = sets.store.get(key)
    refuseAllForeign(live)
    superseded = isSuperseded(live, config)
    if (superseded) return done
    // Services first: the StatefulSet names one of them.
    let outcome = await removeUnused()
    for (const service of desired.services) {
      outcome = sooner(outcome, await ensure(serviceType, service, liveService(service)))
    }
    if (live !== undefined && live.metadata.deletionTimestamp === undefined && needsReplacement(live, desired.statefulSet)) {
      log.warn('the StatefulSet has another selector or Service name, which cannot be changed: it is replaced')
      applier.forget(statefulSets, names.statefulSet)
      await client.delete(statefulSets, key, { preconditions: { uid: live.metadata.uid }, propagationPolicy: 'Background', signal })
      return outcome // its end wakes us
    }
    return sooner(outcome, await ensure(statefulSets, desired.statefulSet, live))
  }

  const liveService = ({ metadata: { name } }: Service) =>
    (name === names.headlessService ? headless : cluster).store.get({ namespace, name })

  /** Checked before anything is changed: no half workloads beside objects of others. */
  function refuseAllForeign(live: StatefulSet | undefined): void {
    if (live !== undefined) refuseForeign(live, { type: statefulSets, config })
    for (const service of desired.services.map(liveService))
      if (service !== undefined) refuseForeign(service, { type: serviceType, config })
  }

  async function ensure<T extends KubeObject>(type: ResourceType<T>, object: T, live: T | undefined): Promise<Outcome> {
    const { name } = object.metadata
    const id = `${type.plural}/${name}`
    if (live !== undefined) {
      missingSince.delete(id)
      if (live.metadata.deletionTimestamp !== undefined) return done // its end wakes us
    } else if (applier.lastOf(type, name) !== undefined) {
      const since = missingSince.get(id) ?? clock.monotonic()
      missingSince.set(id, since)
      const left = since + recreateDelayMs - clock.monotonic()
      if (left > 0) return requeueAfter(left)
      log.warn(`${type.kind} ${name} is gone and is made again`)
      missingSince.delete(id)
    }
    await applier.ensure(type, object, live)
    return done
  }

  /** A server that spoke HTTP and now speaks stdio leaves a Service behind. */
  async function removeUnused(): Promise<Outcome> {
    const live: Service | undefined = cluster.store.get({ namespace, name: names.service })
    const isWanted = desired.services.some(({ metadata }) => metadata.name === names.service)
    if (isWanted || live === undefined || !isOurs(live, config) || live.metadata.deletionTimestamp !== undefined) return done
    await client.delete(serviceType, { namespace, name: names.service }, { preconditions: { uid: live.metadata.uid }, signal })
    return done
  }

  function refresh(): void {
    const applied = applier.lastOf(statefulSets, names.statefulSet)
    const rollout = rolloutOf({
      statefulSet: applied === undefined && !superseded ? undefined : sets.store.get(key),
      pods: pods(),
      appliedGeneration: applied?.metadata.generation ?? 0,
      wasComplete: wasComplete || superseded,
    })
    wasComplete ||= rollout.complete
    const instances = pods().filter(isReady).map(instanceOf)
    const started = instances.filter((instance) => !known.has(instance)).length
    known = new Set([
      ...instances,
      ...pods()
        .map(instanceOf)
        .filter((instance) => known.has(instance)),
    ])
    const message = problem ?? (superseded ? `a runner with a newer config has taken over; ${rollout.message}` : rollout.message)
    state.set({ ready: rollout.ready && foreign === undefined, message, generation: state.current.generation + started })
  }

  const all = [sets, headless, cluster, podCache] as const
  const owned = [watchMapped(sets, () => [key]), watchMapped(headless, () => [key]), watchMapped(cluster, () => [key])]
  const controller = createController({
    name: 'workload',
    reconcile,
    sources: owned,
    clock,
    syncTimeoutMs: Number.MAX_SAFE_INTEGER, // the API server may be away for long: then we are not ready, and wait
    onError: (error) => {
      log.warn('the workload could not be applied', { error: errorMessage(error) })
      refresh()
    },
  })
  controller.enqueue(key) // nothing may exist yet to wake it
  sets.addHandler(refresh)
  podCache.addHandler(() => {
    refresh()
    for (const listener of [...podListeners]) listener()
  })

  return {
    get state() {
      return state.current
    },
    get pods() {
      return pods()
    },
    get problem(): BackendProblem | undefined {
      if (foreign !== undefined) return { reason: 'WorkloadForeign', message: foreign }
      if (refused !== undefined) return { reason: 'WriteRefused', message: refused }
      const end = serverEnd(pods(), clock.now())
      return end === undefined ? undefined : { reason: 'ServerEnded', message: endMessage(end.exitCode, config.transport) }
    },
    onChange(listener) {
      const own = () => listener()
      podListeners.add(own)
      const leave = state.onChange(listener)
      return () => {
        podListeners.delete(own)
        leave()
      }
    },
    done: Promise.all([...all.map((reflector) => reflector.run(signal)), controller.run(signal)]).then(
      () => undefined,
      (error: unknown) => log.warn('the workload is no longer watched', { error: errorMessage(error) }),
    ),
  }
}

function endMessage(exitCode: number, transport: string): string {
  const ended = `The MCP server ended with exit code ${exitCode}.`
  if (exitCode !== 0) return `${ended} Look at its log.`
  if (transport === 'stdio') return `${ended} A stdio server must run until its standard input is closed: check spec.image and spec.args.`
  return `${ended} Its standard input is closed, which ends a stdio server: if it is one, set spec.transport to stdio.`
}

function sooner(a: Outcome, b: Outcome): Outcome {
  if (a.kind !== 'requeueAfter') return b
  return b.kind === 'requeueAfter' && b.ms < a.ms ? b : a
}
