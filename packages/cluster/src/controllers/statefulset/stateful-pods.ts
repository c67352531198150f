import { isAlreadyExists, isConflict, isNotFound, keyOf, type Pod, pods } from '@thv/kube'
import type { ControllerEnv } from '../controller-env.ts'
import { serverMessage } from '../workload/server-message.ts'
import { type StatefulSet, statefulSets } from '../workload/workload-kinds.ts'

const NO_CLAIMS =
  'volumeClaimTemplates need PersistentVolumeClaims, and this platform has none; use an emptyDir volume in the template instead'

/** Creates and deletes single pods of a set, and says so in events. */
export interface StatefulPods {
  create(pod: Pod): Promise<void>
  delete(pod: Pod): Promise<void>
  label(pod: Pod, labels: Readonly<Record<string, string>>): Promise<void>
  /** Tells that the set wants what is not there. */
  refuseClaims(pod: Pod): void
}

/** Thrown when the cache does not show yet what was done before. */
export class StaleCache extends Error {}

export function createStatefulPods(set: StatefulSet, env: ControllerEnv, signal: AbortSignal): StatefulPods {
  function tell(verb: 'create' | 'delete' | 'update', pod: Pod, error?: string): void {
    const what = `${verb} Pod ${pod.metadata.name} in StatefulSet ${set.metadata.name}`
    const word = `${verb[0]?.toUpperCase()}${verb.slice(1)}`
    if (error === undefined)
      env.events.record(statefulSets, set, { type: 'Normal', reason: `Successful${word}`, note: `${what} successful` })
    else env.events.record(statefulSets, set, { type: 'Warning', reason: `Failed${word}`, note: `${what} failed error: ${error}` })
  }

  return {
    async create(pod) {
      try {
        await env.client.create(pods, pod, { signal })
        tell('create', pod)
      } catch (error) {
        if (isAlreadyExists(error)) throw new StaleCache(`pod ${pod.metadata.name} exists already`)
        tell('create', pod, serverMessage(error))
        throw error
      }
    },
    async delete(pod) {
      try {
        await env.client.delete(pods, keyOf(pod), { preconditions: { uid: pod.metadata.uid }, signal })
        tell('delete', pod)
      } catch (error) {
        if (isNotFound(error) || isConflict(error)) throw new StaleCache(`pod ${pod.metadata.name} is gone already`)
        tell('delete', pod, serverMessage(error))
        throw error
      }
    },
    async label(pod, labels) {
      const body = { metadata: { uid: pod.metadata.uid, labels } }
      try {
        await env.client.patch(pods, keyOf(pod), { kind: 'merge', body }, { signal })
        tell('update', pod)
      } catch (error) {
        if (isNotFound(error)) throw new StaleCache(`pod ${pod.metadata.name} is gone already`)
        tell('update', pod, serverMessage(error))
        throw error
      }
    },
    refuseClaims: (pod) => tell('create', pod, NO_CLAIMS),
  }
}
