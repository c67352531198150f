import { checkPolicies } from '@thv/authz/policy-syntax'
import {
  type Conditions,
  type ConditionUpdate,
  configMaps,
  deployments,
  done,
  formatKey,
  getCondition,
  isControlledBy,
  type KubeObject,
  type ObjectKey,
  type Outcome,
  type ReconcileContext,
  requeueAfter,
  services,
  writeStatus,
} from '@thv/kube'
import { VirtualMCPServerCondition as Condition, VirtualMCPServerPhase as Phase } from '@thv/resources/kinds/virtual-mcp-server/constants'
import { normaliseVirtualMcpServer } from '@thv/resources/kinds/virtual-mcp-server/normalise'
import { virtualMcpServerType as type, type VirtualMCPServer } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { ensureManagedKeys } from '../../auth-server/ensure-managed-keys.ts'
import { needsManagedKeys } from '../../auth-server/managed-keys.ts'
import { configMapCache, deploymentCache, podCache, serviceCache, WORKLOAD_INDEX } from '../../caches/built-in-caches.ts'
import type { WorkloadPlan } from '../../deployment/deployment-plan.ts'
import { type Executed, executePlan } from '../../deployment/execute-plan.ts'
import { workloadEvents } from '../../deployment/status/deployment-status.ts'
import type { Serving } from '../../deployment/status/refused-write.ts'
import { tellTermination } from '../../deployment/status/terminating.ts'
import type { Env } from '../../environment.ts'
import { exportConditionOf } from '../../export/follower-of.ts'
import { workloadLabels } from '../../proxy/labels.ts'
import { virtualServerNames } from '../../proxy/names.ts'
import { urlAtAddress } from '../../proxy/proxy-url.ts'
import { loadLookup } from '../../references/load-lookup.ts'
import { joinReferences, referencesOfServerEntry, referencesOfVirtualServer } from '../../references/references.ts'
import { cache as definitionCache } from '../virtual-mcp-composite-tool-definition/cache.ts'
import { cache } from './cache.ts'
import { virtualServerHealth } from './health.ts'
import { membersOf } from './members.ts'
import { CONFIG_FILE } from './objects/deployment.ts'
import { ensureSeal } from './seal-secret.ts'
import { virtualServerStatus } from './status.ts'

/** A certificate that runs out is announced by no event. */
const LOOK_AGAIN = '10m'

/** Converges one VirtualMCPServer. What it owns goes by owner reference, so deletion needs no finalizer. */
export async function reconcileVirtualMcpServer(key: ObjectKey, env: Env, { signal }: ReconcileContext): Promise<Outcome> {
  const server = env.caches.of(cache).get(key)
  if (server === undefined) return done
  if (server.metadata.deletionTimestamp !== undefined) {
    await tellTermination(server, { type, env, signal })
    return done
  }
  const { namespace = '' } = key
  const own = referencesOfVirtualServer(server)
  const members = membersOf(own.groups[0], { namespace, caches: env.caches })
  const references = joinReferences(own, ...members.entries.map(referencesOfServerEntry))
  const lookup = await loadLookup(env, { namespace, references }, signal)
  const seal = await ensureSeal(server, env, signal)
  const { authServerConfig: login } = normaliseVirtualMcpServer(server).spec
  const owner = { object: server, type, kind: 'VirtualMCPServer' } as const
  const keys = login && needsManagedKeys(login) ? await ensureManagedKeys(owner, env, signal) : undefined
  // Templates, JSON Schema and the configuration take memory that an operator without virtual servers does not need.
  const { planVirtualMcpServer } = await import('./plan.ts')
  const plan = planVirtualMcpServer({
    server,
    members,
    definition: (name) => env.caches.of(definitionCache).get({ namespace, name }),
    lookup,
    settings: env.settings,
    live: {
      config: env.children.latest(
        { type: configMaps, cache: env.caches.of(configMapCache) },
        { namespace, name: virtualServerNames(key.name).config },
      )?.data?.[CONFIG_FILE],
      deployment: env.children.latest({ type: deployments, cache: env.caches.of(deploymentCache) }, key),
    },
    checkPolicies,
    seal: 'blocker' in seal ? seal.blocker : undefined,
    keys,
    now: env.clock.now(),
  })
  const executed: Executed =
    'foreign' in seal
      ? { conflicts: [seal.foreign], aliasTaken: undefined }
      : await executePlan(plan, { object: server, type }, env, signal)
  await tell(server, { plan, executed }, { key, env, signal })
  return executed.conflicts.length > 0 || executed.aliasTaken !== undefined ? requeueAfter('1m') : requeueAfter(LOOK_AGAIN)
}

interface Work {
  readonly key: ObjectKey
  readonly env: Env
  readonly signal: AbortSignal
}

async function tell(
  server: VirtualMCPServer,
  { plan, executed }: { plan: WorkloadPlan; executed: Executed },
  { key, env, signal }: Work,
): Promise<void> {
  const exported = exportConditionOf('VirtualMCPServer', server, env)
  const url = urlOf(plan, { key, env, signal })
  const planned = plan.children.find((child) => child.kind === 'Deployment')?.object
  const observed = { deployment: env.caches.of(deploymentCache).get(key) ?? planned, pods: podsOf(key, env) }
  const { written, before, object } = await writeStatus(
    env.client,
    { type, key, cached: server },
    {
      mutate: (latest) =>
        virtualServerStatus(latest, {
          generation: server.metadata.generation,
          plan: { ...plan, url, conditions: [...plan.conditions, ...exportConditions(latest, exported)] },
          executed,
          health: (reported) => virtualServerHealth(observed, reported),
          now: env.clock.now(),
        }),
      reads: ['conditions', 'discoveredBackends', 'backendCount'],
      signal,
      clock: env.clock,
    },
  )
  if (!written || object === undefined) return
  const after = (object.status?.conditions ?? []) as Conditions
  for (const event of workloadEvents((before ?? server).status?.conditions as Conditions | undefined, after, object.status?.phase))
    env.events.record(object, event)
}

/** The pods that run, made of an earlier spec, if they serve; without some backends, too. */
export function servingVirtualMcpServer(object: KubeObject, env: Env): Serving | undefined {
  const server = object as VirtualMCPServer
  const { namespace = '', name } = server.metadata
  const key = { namespace, name }
  const deployment = env.caches.of(deploymentCache).get(key)
  if (deployment === undefined || !isControlledBy(deployment, server)) return undefined
  const { phase, reason, message, replicas } = virtualServerHealth({ deployment, pods: podsOf(key, env) }, server.status)
  if (phase !== Phase.Ready && phase !== Phase.Degraded) return undefined
  return { phase, isReady: phase === Phase.Ready, reason, message, counts: { replicas } }
}

/** The condition that is there stays until the cluster has been read. */
function exportConditions(latest: VirtualMCPServer, exported: ReturnType<typeof exportConditionOf>): ConditionUpdate[] {
  const now =
    exported === 'unknown' ? getCondition(latest.status?.conditions as Conditions | undefined, Condition.RegistryExport) : exported
  if (now === undefined) return []
  const { type: of, status, reason, message } = now
  return [{ type: of, status, reason, message }]
}

/** An address is known only after the Service was made. */
function urlOf({ url }: WorkloadPlan, { key, env }: Work): string | undefined {
  if (env.settings.serviceUrls === 'dns' || url === undefined) return url
  const serviceKey = { ...key, name: virtualServerNames(key.name).service }
  return urlAtAddress(url, env.children.latest({ type: services, cache: env.caches.of(serviceCache) }, serviceKey))
}

function podsOf(key: ObjectKey, { caches }: Env) {
  const { app } = workloadLabels('VirtualMCPServer', key.name)
  return caches
    .of(podCache)
    .byIndex(WORKLOAD_INDEX, formatKey(key))
    .filter(({ metadata }) => metadata.labels?.['app'] === app)
}
