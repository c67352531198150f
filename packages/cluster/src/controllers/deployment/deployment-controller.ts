import {
  type Controller,
  controllerOf,
  createController,
  done,
  isConflict,
  type ObjectKey,
  ownerKeys,
  type Pod,
  pods,
  retry,
  watchMapped,
  watchSelf,
} from '@thv/kube'
import type { ControllerEnv } from '../controller-env.ts'
import { watchChildren } from '../workload/pod-source.ts'
import { isNamespaceTerminating } from '../workload/server-message.ts'
import { deployments, replicaSets } from '../workload/workload-kinds.ts'
import { reconcileDeployment } from './reconcile-deployment.ts'

/** Rolls Deployments out by sizing their ReplicaSets, one for each template. */
export function deploymentController(env: ControllerEnv): Controller {
  const cache = env.caches.of(deployments)
  const sets = env.caches.of(replicaSets)
  const podCache = env.caches.of(pods)

  /** Only who waits for the end of old pods needs to hear of it. */
  function recreatorOf(pod: Pod): ObjectKey[] {
    const owner = controllerOf(pod)
    const namespace = pod.metadata.namespace
    const set = owner?.kind === 'ReplicaSet' ? sets.store.get({ ...(namespace && { namespace }), name: owner.name }) : undefined
    if (set === undefined || set.metadata.uid !== owner?.uid) return []
    const keys = ownerKeys(set, { group: deployments.group, kind: deployments.kind })
    return keys.filter((key) => cache.store.get(key)?.spec?.strategy?.type === 'Recreate')
  }

  return createController({
    name: 'deployment',
    concurrency: 5,
    clock: env.clock,
    onError: env.onError,
    queue: { backoff: { baseMs: 10, maxMs: 60_000 } },
    sources: [
      watchSelf(cache),
      watchChildren(sets, cache, deployments),
      watchMapped(podCache, recreatorOf, (event) => event.type === 'DELETED'),
    ],
    async reconcile(key, { signal }) {
      const deployment = cache.store.get(key)
      if (deployment === undefined) return done
      try {
        return await reconcileDeployment(deployment, { env, signal })
      } catch (error) {
        if (isConflict(error)) return retry('the cache was behind')
        if (isNamespaceTerminating(error)) return done
        throw error
      }
    },
  })
}
