import { jsonEqual } from '@thv/kernel/json'
import { type JsonPatchOp, keyOf } from '@thv/kube'
import { type Deployment, type DeploymentStatus, deployments } from '../workload/workload-kinds.ts'
import type { SetWriter } from './newest-replica-set.ts'
import { REVISION } from './rollout-annotations.ts'

/**
 * Status and revision in one request, none when both are there already. The revision goes by way of the status because a change of
 * annotations is a new generation otherwise. A stale Deployment is refused with a conflict.
 */
export async function writeDeployment(
  deployment: Deployment,
  { status, revision }: { status: DeploymentStatus; revision: string | undefined },
  { client, signal }: SetWriter,
): Promise<void> {
  const { annotations, resourceVersion } = deployment.metadata
  const newRevision = revision !== undefined && annotations?.[REVISION] !== revision
  if (!newRevision && jsonEqual(status, deployment.status)) return
  const ops: JsonPatchOp[] = [
    { op: 'replace', path: '/metadata/resourceVersion', value: resourceVersion },
    { op: 'add', path: '/status', value: status },
  ]
  if (newRevision) ops.push({ op: 'add', path: '/metadata/annotations', value: { ...annotations, [REVISION]: revision } })
  const written = await client.patch(deployments, keyOf(deployment), { kind: 'json', ops }, { subresource: 'status', signal })
  if (!newRevision || written.metadata.annotations?.[REVISION] === revision) return
  // A server that keeps annotations out of status writes.
  const body = { metadata: { resourceVersion: written.metadata.resourceVersion, annotations: { [REVISION]: revision } } }
  await client.patch(deployments, keyOf(deployment), { kind: 'merge', body }, { signal })
}
