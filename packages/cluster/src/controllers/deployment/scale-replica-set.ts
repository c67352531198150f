import type { ControllerEnv } from '../controller-env.ts'
import { type Deployment, deployments, type ReplicaSet, replicaSets } from '../workload/workload-kinds.ts'
import { type DeploymentSettings, sizeOf } from './deployment-settings.ts'
import { sizeAnnotations } from './rollout-annotations.ts'

export interface ScaleContext {
  readonly env: ControllerEnv
  readonly deployment: Deployment
  readonly settings: DeploymentSettings
  readonly signal: AbortSignal
}

/** Tells the set its size; a stale one is refused by the server, so no decision is made on it. */
export async function scaleReplicaSet(
  set: ReplicaSet,
  to: number,
  { env, deployment, settings, signal }: ScaleContext,
): Promise<ReplicaSet> {
  const from = sizeOf(set)
  const annotations = { ...set.metadata.annotations, ...sizeAnnotations(settings) }
  const wanted = { ...set, metadata: { ...set.metadata, annotations }, spec: { ...set.spec, replicas: to } }
  const scaled = await env.client.update(replicaSets, wanted, { signal })
  if (from !== to) {
    const note = `Scaled ${from < to ? 'up' : 'down'} replica set ${set.metadata.name} from ${from} to ${to}`
    env.events.record(deployments, deployment, { type: 'Normal', reason: 'ScalingReplicaSet', note })
  }
  return scaled
}
