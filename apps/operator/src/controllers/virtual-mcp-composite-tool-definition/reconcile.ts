import { type Conditions, done, formatKey, type ObjectKey, type Outcome, type ReconcileContext, writeStatus } from '@thv/kube'
import { VirtualMCPCompositeToolDefinitionCondition as Condition } from '@thv/resources/kinds/virtual-mcp-composite-tool-definition/constants'
import type { VirtualMCPCompositeToolDefinition } from '@thv/resources/kinds/virtual-mcp-composite-tool-definition/schema'
import { transitionEvents } from '../../deployment/status/conditions.ts'
import type { Env } from '../../environment.ts'
import { cache } from './cache.ts'

/**
 * Says whether the definition is valid and which VirtualMCPServers use it. Valid means sound alone: whether its tools exist is a matter of
 * each server. It makes no object and holds no deletion; a server that names the definition wakes it.
 */
export async function reconcileCompositeToolDefinition(key: ObjectKey, env: Env, { signal }: ReconcileContext): Promise<Outcome> {
  const definition = env.caches.of(cache).get(key)
  if (definition === undefined || definition.metadata.deletionTimestamp !== undefined) return done
  const servers = env.caches
    .referring('compositeTools')
    .flatMap(({ objects }) => objects(formatKey(key)).map(({ metadata }) => metadata.name))
  // Templates and JSON Schema take memory that an operator without definitions does not need.
  const { definitionStatus } = await import('./status.ts')

  let before: Conditions = []
  let after: Conditions = []
  const { written, object } = await writeStatus(
    env.client,
    { type: cache.type, key, cached: definition },
    {
      mutate(current) {
        const status = definitionStatus(current, { servers, now: env.clock.now() })
        before = reported(current.status)
        after = reported(status)
        return status
      },
      signal,
      clock: env.clock,
    },
  )
  if (written && object !== undefined) for (const event of transitionEvents(before, after)) env.events.record(object, event)
  return done
}

/** Ready says the same as WorkflowValidated: one event is enough. */
function reported(status: VirtualMCPCompositeToolDefinition['status']): Conditions {
  const conditions = (status?.conditions ?? []) as Conditions
  return conditions.filter(({ type }) => type !== Condition.Ready)
}
