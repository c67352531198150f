import {
  createController,
  done,
  type EndpointSlice,
  endpointSlices,
  isConflict,
  isForbidden,
  isNotFound,
  keyOf,
  nodes,
  type ObjectKey,
  type Outcome,
  type Pod,
  pods,
  type ReconcileContext,
  retry,
  type Service,
  services,
  watchMapped,
  watchSelf,
} from '@thv/kube'
import type { ControllerEnv, RunningController } from '../controller-env.ts'
import { desiredEndpoints } from './desired-endpoints.ts'
import { MANAGED_BY, MANAGER, planSlices, SERVICE_NAME, type SlicePlan } from './slice-plan.ts'

/** Keeps the EndpointSlices of each Service with a selector equal to the pods that it selects. */
export function endpointSliceController(env: ControllerEnv): RunningController {
  const { client, caches } = env
  const [serviceCache, podCache, nodeCache] = [caches.of(services), caches.of(pods), caches.of(nodes)]
  const sliceCache = caches.of(endpointSlices)

  async function reconcile(key: ObjectKey, { signal }: ReconcileContext): Promise<Outcome> {
    const service = serviceCache.store.get(key)
    if (service === undefined || !hasEndpoints(service) || service.metadata.deletionTimestamp !== undefined) return done
    const { namespace = '', name } = service.metadata
    const selected = podCache.store.list({ namespace }).filter((pod) => selects(service, pod))
    const desired = desiredEndpoints(service, selected, (node) => nodeCache.store.get({ name: node }))
    const cached = sliceCache.store.list({ namespace }).filter(({ metadata }) => isSliceOf(metadata.labels, name))
    if (isEmpty(planSlices(service, cached, desired))) return done
    // A slice that was just made, and that the cache has not seen yet, must not be made again.
    const labelSelector = `${SERVICE_NAME}=${name},${MANAGED_BY}=${MANAGER}`
    const { items } = await client.listAll(endpointSlices, { namespace, labelSelector, signal })
    return await write(planSlices(service, items, desired), signal)
  }

  async function write({ create, update, remove }: SlicePlan, signal: AbortSignal): Promise<Outcome> {
    try {
      for (const slice of create) await client.create(endpointSlices, slice, { signal })
      for (const slice of update) await client.update(endpointSlices, slice, { signal })
      for (const slice of remove) await removeSlice(slice, signal)
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) return retry('a slice was changed by somebody else')
      if (isForbidden(error)) return done // the namespace goes
      throw error
    }
    return done
  }

  async function removeSlice(slice: EndpointSlice, signal: AbortSignal): Promise<void> {
    const preconditions = { uid: slice.metadata.uid }
    await client.delete(endpointSlices, keyOf(slice), { preconditions, signal }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
  }

  function servicesOf(pod: Pod): ObjectKey[] {
    const { namespace = '' } = pod.metadata
    return serviceCache.store
      .list({ namespace })
      .filter((service) => selects(service, pod))
      .map(keyOf)
  }

  return createController({
    name: 'endpoint-slices',
    reconcile,
    sources: [
      watchSelf(serviceCache),
      watchMapped(podCache, servicesOf),
      watchMapped(
        nodeCache,
        ({ metadata }) => podCache.store.list().flatMap((pod) => (pod.spec?.nodeName === metadata.name ? servicesOf(pod) : [])),
        ({ type }) => type !== 'MODIFIED',
      ),
      watchMapped(sliceCache, ({ metadata: { namespace = '', labels } }) => {
        const name = labels?.[SERVICE_NAME]
        return name !== undefined && isSliceOf(labels, name) ? [{ namespace, name }] : []
      }),
    ],
    concurrency: 4,
    queue: { backoff: { baseMs: 100, maxMs: 60_000 } },
    clock: env.clock,
    onError: env.onError,
  })
}

function hasEndpoints({ spec }: Service): boolean {
  return spec?.selector !== undefined && spec.type !== 'ExternalName'
}

function selects(service: Service, pod: Pod): boolean {
  if (!hasEndpoints(service)) return false
  return Object.entries(service.spec?.selector ?? {}).every(([key, value]) => pod.metadata.labels?.[key] === value)
}

function isSliceOf(labels: Readonly<Record<string, string>> | undefined, service: string): boolean {
  return labels?.[SERVICE_NAME] === service && labels[MANAGED_BY] === MANAGER
}

function isEmpty({ create, update, remove }: SlicePlan): boolean {
  return create.length + update.length + remove.length === 0
}
