import { type Deployment, isControlledBy, isNotFound, keyOf, setControllerReference } from '@thv/kube'
import type { MCPRegistry } from '@thv/resources/kinds/mcp-registry/schema'
import { FIELD_MANAGER, type Owner } from '../../deployment/child-applier.ts'
import { covers } from '../../deployment/is-subset.ts'
import type { Env } from '../../environment.ts'
import { BUDGET_ANNOTATION, disruptionBudget, disruptionBudgets, type PodDisruptionBudget } from './objects/disruption-budget.ts'

interface Work {
  readonly registry: MCPRegistry
  readonly owner: Owner
  readonly env: Pick<Env, 'client'>
  readonly signal: AbortSignal
}

/** Clients of API servers that do not have the kind, which they say once. */
const withoutKind = new WeakSet<object>()

/**
 * Makes the PodDisruptionBudget of several replicas. The kind is not cached: few registries need it, and not every API server has it;
 * without it nothing happens. A budget of somebody else stays as it is.
 */
export async function ensureBudget({ owner, env, signal }: Work, budget: PodDisruptionBudget): Promise<void> {
  if (withoutKind.has(env.client)) return
  const live = await env.client.tryGet(disruptionBudgets, keyOf(budget), { signal })
  const wanted = setControllerReference(budget, owner)
  if (live !== undefined && (!isControlledBy(live, owner.object) || covers(live, wanted))) return
  try {
    await env.client.apply(disruptionBudgets, wanted, { fieldManager: FIELD_MANAGER, force: true, signal })
  } catch (error) {
    if (!isNotFound(error)) throw error
    // Else it is the namespace that has gone.
    if (!String(error).includes('namespaces "')) withoutKind.add(env.client)
  }
}

/** Removes the budget of replicas that are no longer wanted, before their Deployment forgets that there was one. */
export async function removeBudget({ registry, owner, env, signal }: Work, deployment: Deployment | undefined): Promise<void> {
  if (deployment?.metadata.annotations?.[BUDGET_ANNOTATION] === undefined) return
  const { name, namespace = '' } = registry.metadata
  const live = await env.client.tryGet(disruptionBudgets, keyOf(disruptionBudget({ name, namespace })), { signal })
  if (live === undefined || !isControlledBy(live, owner.object)) return
  try {
    await env.client.delete(disruptionBudgets, keyOf(live), { preconditions: { uid: live.metadata.uid }, signal })
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}
