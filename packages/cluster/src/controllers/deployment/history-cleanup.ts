import { isConflict, isNotFound, keyOf } from '@thv/kube'
import { type ReplicaSet, replicaSets } from '../workload/workload-kinds.ts'
import { type DeploymentSettings, sizeOf } from './deployment-settings.ts'
import type { SetWriter } from './newest-replica-set.ts'
import { byRevision } from './replica-set-order.ts'

/** Deletes the oldest revisions beyond the limit. Those that have pods, or may get some, stay. */
export async function cleanUpHistory(
  old: readonly ReplicaSet[],
  { historyLimit }: DeploymentSettings,
  { client, signal }: SetWriter,
): Promise<void> {
  const kept = old.filter(({ metadata }) => metadata.deletionTimestamp === undefined).sort(byRevision)
  if (historyLimit === undefined || kept.length <= historyLimit) return
  for (const set of kept.slice(0, kept.length - historyLimit)) {
    const { uid, generation = 0 } = set.metadata
    if ((set.status?.replicas ?? 0) > 0 || sizeOf(set) > 0 || generation > (set.status?.observedGeneration ?? 0)) continue
    try {
      await client.delete(replicaSets, keyOf(set), { preconditions: { uid }, propagationPolicy: 'Background', signal })
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error
    }
  }
}
