import { checkPolicies } from '@thv/authz/policy-syntax'
import {
  type Conditions,
  type ConditionUpdate,
  configMaps,
  type Deployment,
  deployments,
  formatKey,
  getCondition,
  isControlledBy,
  type KubeObject,
  keyOf,
  type ObjectKey,
  type Outcome,
  type Pod,
  type ResourceType,
  requeueAfter,
  type StatefulSet,
  services,
  writeStatus,
} from '@thv/kube'
import { WorkloadCondition } from '@thv/resources/shared/workload-conditions'
import { RUN_CONFIG_KEY } from '@thv/runconfig/run-config-mount'
import {
  configMapCache,
  deploymentCache,
  podCache,
  runnerEventCache,
  serviceCache,
  statefulSetCache,
  WORKLOAD_INDEX,
} from '../caches/built-in-caches.ts'
import type { WorkloadPlan } from '../deployment/deployment-plan.ts'
import { executePlan } from '../deployment/execute-plan.ts'
import { workloadEvents, workloadStatusOf } from '../deployment/status/deployment-status.ts'
import type { PodRole } from '../deployment/status/pod-problem.ts'
import type { PodsHealth } from '../deployment/status/pods-health.ts'
import type { Serving } from '../deployment/status/refused-write.ts'
import type { Env } from '../environment.ts'
import { exportConditionOf } from '../export/follower-of.ts'
import { loadLookup } from '../references/load-lookup.ts'
import type { Lookup } from '../references/lookup.ts'
import type { References } from '../references/references.ts'
import { selectorText, workloadLabels } from './labels.ts'
import { type ProxyKind, proxyNames } from './names.ts'
import type { LiveFacts } from './plan-proxy.ts'
import { urlAtAddress } from './proxy-url.ts'
import { newestReport, type RunnerReport } from './runner-report.ts'
import { aliasTaken } from './services.ts'

/** Differences between the kinds that stand behind a proxy. */
export interface WorkloadKind<T extends KubeObject> {
  readonly kind: ProxyKind
  readonly type: ResourceType<T>
  readonly references: (object: T) => References
  readonly plan: (object: T, facts: PlanFacts) => WorkloadPlan
  readonly health: (observed: Observed) => PodsHealth<string>
  readonly conditionTypes: readonly string[]
  readonly readyPhase: string
}

export interface PlanFacts {
  readonly lookup: Lookup
  readonly settings: Env['settings']
  readonly live: LiveFacts
  readonly checkPolicies: typeof checkPolicies
  readonly now: number
}

export interface WorkloadPods {
  readonly proxyPods: readonly Pod[]
  readonly serverPods: readonly Pod[]
}

export interface Observed extends WorkloadPods {
  readonly deployment: Deployment | undefined
  readonly statefulSet: StatefulSet | undefined
  /** Of the runner; an MCPRemoteProxy has none. */
  readonly report: RunnerReport | undefined
}

export const PROXY_PODS: PodRole = {
  name: 'proxy',
  imageAdvice: 'Check TOOLHIVE_RUNNER_IMAGE of the operator and the pull secrets.',
}

/** When something is under way that no event may announce, such as a certificate that runs out, it is looked at again after this. */
const LOOK_AGAIN = '10m'

/** Converges one workload. Level-based: it never learns which event woke it. */
export async function reconcileWorkload<T extends KubeObject>(
  object: T,
  { kind, env, signal }: { kind: WorkloadKind<T>; env: Env; signal: AbortSignal },
): Promise<Outcome> {
  const { name, namespace = '' } = object.metadata
  const key = { namespace, name }
  const lookup = await loadLookup(env, { namespace, references: kind.references(object) }, signal)
  const plan = kind.plan(object, {
    lookup,
    settings: env.settings,
    live: liveFacts(key, kind.kind, env),
    checkPolicies,
    now: env.clock.now(),
  })
  const executed = await executePlan(plan, { object, type: kind.type }, env, signal)
  const url = urlOf(plan, { key, kind: kind.kind, env })
  const exported = exportConditionOf(kind.kind, object, env)
  const health = kind.health(observe(object, { kind: kind.kind, children: plan.children, env }))

  const {
    written,
    before,
    object: after,
  } = await writeStatus(
    env.client,
    { type: kind.type, key, cached: object },
    {
      mutate: (latest) =>
        workloadStatusOf(latest, {
          selector: selectorText(workloadLabels(kind.kind, name)),
          countsReady: kind.kind === 'MCPServer',
          aliasTaken: (taken) => aliasTaken(kind.kind, taken),
          generation: object.metadata.generation,
          plan: { ...plan, url, conditions: [...plan.conditions, ...exportConditions(latest, exported)] },
          executed,
          health,
          managed: kind.conditionTypes,
          readyPhase: kind.readyPhase,
          now: env.clock.now(),
        }),
      reads: ['conditions'],
      signal,
      clock: env.clock,
    },
  )
  if (written && after !== undefined) {
    const { conditions, phase } = statusOf(after)
    for (const event of workloadEvents(statusOf(before ?? object).conditions, conditions ?? [], phase)) env.events.record(after, event)
  }
  return executed.conflicts.length > 0 || executed.aliasTaken !== undefined ? requeueAfter('1m') : requeueAfter(LOOK_AGAIN)
}

/** The pods that run, made of an earlier spec, if they serve. */
export function servingWorkload<T extends KubeObject>(
  object: KubeObject,
  { kind, health, readyPhase }: Pick<WorkloadKind<T>, 'kind' | 'health' | 'readyPhase'>,
  env: Env,
): Serving | undefined {
  const observed = observe(object, { kind, children: [], env })
  if (observed.deployment === undefined || !isControlledBy(observed.deployment, object)) return undefined
  const { phase, reason, message, replicas, readyReplicas } = health(observed)
  if (phase !== readyPhase) return undefined
  return { phase, isReady: true, reason, message, counts: { replicas, ...(kind === 'MCPServer' && { readyReplicas }) } }
}

/** The condition that is there stays until the cluster has been read. */
function exportConditions(latest: KubeObject, exported: ReturnType<typeof exportConditionOf>): ConditionUpdate[] {
  const now = exported === 'unknown' ? getCondition(statusOf(latest).conditions, WorkloadCondition.RegistryExport) : exported
  if (now === undefined) return []
  const { type, status, reason, message } = now
  return [{ type, status, reason, message }]
}

function statusOf(object: KubeObject): { conditions?: Conditions; phase?: string } {
  return (object as KubeObject & { status?: { conditions?: Conditions; phase?: string } }).status ?? {}
}

function liveFacts(key: ObjectKey, kind: ProxyKind, { caches, children }: Env): LiveFacts {
  const runConfigKey = { ...key, name: proxyNames(kind, key.name).runConfig }
  return {
    runConfig: children.latest({ type: configMaps, cache: caches.of(configMapCache) }, runConfigKey)?.data?.[RUN_CONFIG_KEY],
    deployment: children.latest({ type: deployments, cache: caches.of(deploymentCache) }, key),
  }
}

/** An address is known only after the Service was made. */
function urlOf(plan: WorkloadPlan, { key, kind, env }: { key: ObjectKey; kind: ProxyKind; env: Env }): string | undefined {
  if (env.settings.serviceUrls === 'dns' || plan.url === undefined) return plan.url
  const serviceKey = { ...key, name: proxyNames(kind, key.name).service }
  return urlAtAddress(plan.url, env.children.latest({ type: services, cache: env.caches.of(serviceCache) }, serviceKey))
}

/** A change that was just applied may not be in the cache yet. */
function observe(object: KubeObject, { kind, children, env }: { kind: ProxyKind; children: WorkloadPlan['children']; env: Env }): Observed {
  const key = keyOf(object)
  const { caches } = env
  const planned = children.find((child) => child.kind === 'Deployment')?.object
  const statefulSet = caches.of(statefulSetCache).get(key)
  const pods = podsOf(key, kind, env)
  const isOwn = statefulSet !== undefined && isControlledBy(statefulSet, object)
  return {
    proxyPods: pods.proxyPods,
    // Pods with our labels may be of a StatefulSet that is not ours.
    serverPods: statefulSet === undefined || isOwn ? pods.serverPods : [],
    deployment: caches.of(deploymentCache).get(key) ?? planned,
    statefulSet: isOwn ? statefulSet : undefined,
    report: newestReport(caches.of(runnerEventCache).byIndex(WORKLOAD_INDEX, formatKey(key)), object, pods.proxyPods),
  }
}

/** Both carry the name of the workload; those of the proxy also its kind. */
export function podsOf(key: ObjectKey, kind: ProxyKind, { caches }: Env): WorkloadPods {
  const all = caches.of(podCache).byIndex(WORKLOAD_INDEX, formatKey(key))
  const proxyApp = workloadLabels(kind, key.name)['app']
  return {
    proxyPods: all.filter(({ metadata }) => metadata.labels?.['app'] === proxyApp),
    serverPods: all.filter(({ metadata }) => metadata.labels?.['toolhive-basename'] === key.name),
  }
}
