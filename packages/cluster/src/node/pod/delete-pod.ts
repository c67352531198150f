import { createBackoff } from '@thv/kernel/backoff'
import { isConflict, isNotFound } from '@thv/kube/client/kube-api-error'
import { pods } from '@thv/kube/objects/resource-types'
import type { NodeEnv } from './node-env.ts'
import type { NodePod } from './pod-spec.ts'

/** The last step of a deletion: nothing of the pod runs any more, so its object may go. Tries until it has, or the signal aborts. */
export async function deletePod({ metadata }: NodePod, { client, clock, onError }: NodeEnv, signal: AbortSignal): Promise<void> {
  const { name, namespace, uid } = metadata
  const backoff = createBackoff({ baseMs: 100, maxMs: 10_000 })
  while (!signal.aborted) {
    try {
      await client.delete(pods, { namespace, name }, { gracePeriodSeconds: 0, preconditions: { uid }, signal })
      return
    } catch (error) {
      if (signal.aborted || isNotFound(error) || isConflict(error)) return // gone, or another one of the name
      onError(error, metadata)
      await clock.sleep(backoff.next(), signal).catch(() => undefined) // the loop sees the signal
    }
  }
}
