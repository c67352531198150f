import type { Conditions } from '@thv/kube'
import { MCPRegistryCondition, MCPRegistryReason, SYNC_TRIGGER_ANNOTATION } from '@thv/resources/kinds/mcp-registry/constants'
import type { MCPRegistry } from '@thv/resources/kinds/mcp-registry/schema'
import { transitionEvents } from '../../deployment/status/conditions.ts'
import type { OperatorEvent } from '../../environment.ts'
import { partialMessage } from './plan/plan.ts'

/** Events for what changed between two states. Pure. */
export function registryEvents(before: MCPRegistry, after: MCPRegistry): OperatorEvent[] {
  const startsBad = new Set<string>([
    MCPRegistryCondition.APIReady,
    ...(after.status?.phase === 'Failed' ? [] : [MCPRegistryCondition.Ready]),
  ])
  const warnsWhenTrue = new Set<string>([MCPRegistryCondition.NameConflict, MCPRegistryCondition.StorageEphemeral])
  const transitions = transitionEvents(
    before.status?.conditions as Conditions | undefined,
    (after.status?.conditions ?? []) as Conditions,
    { startsBad, warnsWhenTrue },
  )
  // Failed ConfigMaps have an Event of their own, once per set of them.
  const others = transitions.filter(({ reason, type }) => reason !== MCPRegistryReason.PartialSyncFailure || type === 'Normal')
  return [...others, ...partialFailure(before, after)]
}

function partialFailure(before: MCPRegistry, after: MCPRegistry): OperatorEvent[] {
  const condition = (after.status?.conditions ?? []).find(
    ({ type, status }) => type === MCPRegistryCondition.SyncSuccessful && status === 'False',
  )
  const known = (before.status?.conditions ?? []).find(({ type }) => type === MCPRegistryCondition.SyncSuccessful)
  const failedSources =
    condition?.reason === MCPRegistryReason.PartialSyncFailure && (known?.status !== 'False' || known.message !== condition.message)
      ? [{ type: 'Warning', reason: MCPRegistryReason.PartialSyncFailure, note: condition.message } as const]
      : []
  const failed = failedMaps(after)
  if (failed === '' || failed === failedMaps(before)) return failedSources
  const maps = (after.status?.configMaps ?? []).map(({ name, error }) => ({ name, ...(error !== undefined && { error }) }))
  return [...failedSources, { type: 'Warning', reason: MCPRegistryReason.PartialSyncFailure, note: partialMessage(maps) }]
}

function failedMaps({ status }: MCPRegistry): string {
  return (status?.configMaps ?? [])
    .filter(({ error }) => error !== undefined)
    .map(({ registry, name, error }) => `${registry}/${name}: ${error}`)
    .join('\n')
}

/** `configYAML` is the server's own business: the operator cannot ask for a sync there. */
export function unsupportedTrigger({ metadata, spec }: MCPRegistry): OperatorEvent[] {
  if (!metadata.annotations?.[SYNC_TRIGGER_ANNOTATION] || spec.configYAML === undefined) return []
  const note = `${SYNC_TRIGGER_ANNOTATION} does nothing with spec.configYAML: use the admin API of the server`
  return [{ type: 'Warning', reason: MCPRegistryReason.SyncTriggerUnsupported, note }]
}
