import { deployments, isControlledBy, isNotFound, keyOf } from '@thv/kube'
import { deploymentCache } from '../caches/built-in-caches.ts'
import type { Env } from '../environment.ts'
import { FIELD_MANAGER, type ForeignChild, isOurs, type Owner } from './child-applier.ts'
import { type ChildKind, cachedKind, STOPPED_ANNOTATION, type WorkloadPlan } from './deployment-plan.ts'

export interface Executed {
  /** Objects of somebody else that have the names; then nothing was made. */
  readonly conflicts: readonly ForeignChild[]
  /** Somebody else's Service has the workload's own name. */
  readonly aliasTaken: ForeignChild | undefined
}

/** Makes the cluster as the plan says. Sends only what differs. */
export async function executePlan(plan: WorkloadPlan, owner: Owner, env: Env, signal: AbortSignal): Promise<Executed> {
  const nothing: Executed = { conflicts: [], aliasTaken: undefined }
  if (plan.stopsWhatRuns) await stopDeployment(owner, env, signal)
  for (const { kind, object } of plan.guards) {
    const outcome = await env.children.ensure(owner, { ...cachedKind(kind, env.caches), object }, signal)
    if (outcome.kind === 'foreign') return { ...nothing, conflicts: [outcome] }
  }
  if (plan.blockers.length > 0) return nothing

  const taken = knownConflicts(plan, owner, env)
  if (taken.length > 0) return { ...nothing, conflicts: taken }
  for (const { kind, object } of plan.children) {
    const outcome = await env.children.ensure(owner, { ...cachedKind(kind, env.caches), object }, signal)
    if (outcome.kind === 'foreign') return { ...nothing, conflicts: [outcome] }
  }
  const aliasTaken = await ensureAlias(plan, owner, env, signal)
  for (const { kind, name } of plan.unwanted) await env.children.remove(owner, { ...cachedKind(kind, env.caches), name }, signal)
  return { conflicts: [], aliasTaken }
}

/** Checked before anything is made: no half workloads. */
function knownConflicts(plan: WorkloadPlan, owner: Owner, { caches }: Env): ForeignChild[] {
  return plan.children.flatMap(({ kind, object }): ForeignChild[] => {
    const live = cachedKind(kind, caches).cache.get(keyOf(object))
    if (live === undefined || isOurs(live, owner)) return []
    const controller = live.metadata.ownerReferences?.find((reference) => reference.controller === true)
    return [
      { kind: 'foreign', name: live.metadata.name, childKind: kind, controller: controller && `${controller.kind} ${controller.name}` },
    ]
  })
}

async function ensureAlias({ alias }: WorkloadPlan, owner: Owner, env: Env, signal: AbortSignal): Promise<ForeignChild | undefined> {
  const kind: ChildKind = 'Service'
  if (alias === undefined) {
    await env.children.remove(owner, { ...cachedKind(kind, env.caches), name: owner.object.metadata.name }, signal)
    return undefined
  }
  const outcome = await env.children.ensure(owner, { ...cachedKind(kind, env.caches), object: alias }, signal)
  return outcome.kind === 'foreign' ? outcome : undefined
}

async function stopDeployment(owner: Owner, { caches, client }: Env, signal: AbortSignal): Promise<void> {
  const key = keyOf(owner.object)
  const live = caches.of(deploymentCache).get(key)
  if (live === undefined || !isControlledBy(live, owner.object) || live.spec?.replicas === 0) return
  try {
    await client.patch(
      deployments,
      key,
      { kind: 'merge', body: { metadata: { annotations: { [STOPPED_ANNOTATION]: 'true' } }, spec: { replicas: 0 } } },
      { fieldManager: FIELD_MANAGER, signal },
    )
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}
