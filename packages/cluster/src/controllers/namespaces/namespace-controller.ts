import { errorMessage } from '@thv/kernel/errors'
import { jsonEqual } from '@thv/kernel/json'
import {
  createController,
  done,
  isConflict,
  isNotFound,
  type Namespace,
  namespaces,
  type ObjectKey,
  type Outcome,
  type ReconcileContext,
  retry,
  type StatusCondition,
  watchSelf,
} from '@thv/kube'
import type { ControllerEnv, RunningController } from '../controller-env.ts'
import { listServedResources, type ServedResource } from '../served-resources.ts'
import { type DeletionState, deletionConditions } from './namespace-conditions.ts'
import { deleteContent, type Remainder } from './namespace-content.ts'

const FINALIZER = 'kubernetes'

interface FinalizedNamespace extends Namespace {
  spec?: { finalizers?: string[] }
}

/** Empties namespaces that are being deleted, pods first, and lets them go when nothing is left in them. */
export function namespaceController(env: ControllerEnv): RunningController {
  const { client, clock } = env
  const cache = env.caches.of(namespaces)

  async function reconcile({ name }: ObjectKey, { signal }: ReconcileContext): Promise<Outcome> {
    const cached: FinalizedNamespace | undefined = cache.store.get({ name })
    if (cached === undefined || !isOurs(cached)) return done
    // The cache may be behind, and a new namespace of the name is not to be emptied.
    const live: FinalizedNamespace | undefined = await client.tryGet(namespaces, { name }, { signal })
    if (live === undefined || live.metadata.uid !== cached.metadata.uid) return done
    const state = await empty(name, signal)
    try {
      // Between two looks only the state changes; read it fresh, as the cache may not have seen our last write.
      const namespace: FinalizedNamespace | undefined = await client.tryGet(namespaces, { name }, { signal })
      if (namespace === undefined || namespace.metadata.uid !== cached.metadata.uid || !isOurs(namespace)) return done
      const isEmpty =
        state.discoveryError === undefined && state.contentErrors.length === 0 && state.remainders.every(({ count }) => count === 0)
      // They would go unread on a namespace that goes right now.
      const stays = !isEmpty || (namespace.metadata.finalizers?.length ?? 0) > 0
      const current = stays ? await writeConditions(namespace, state, signal) : namespace
      if (isEmpty) await finalize(current, signal)
      if (!isEmpty && state.contentErrors.length > 0) throw new Error(`namespace ${name}: ${state.contentErrors.join(', ')}`)
      return isEmpty ? done : retry('content remains')
    } catch (error) {
      if (isNotFound(error)) return done
      if (isConflict(error)) return retry('the namespace has changed')
      throw error
    }
  }

  async function empty(namespace: string, signal: AbortSignal): Promise<DeletionState> {
    let resources: ServedResource[]
    try {
      resources = (await listServedResources(client, signal)).filter(isContent)
    } catch (error) {
      env.onError(error, { name: namespace })
      return { discoveryError: errorMessage(error), contentErrors: [], remainders: [] }
    }
    const contentErrors: string[] = []
    const remainders: Remainder[] = []
    // Pods may still need their configuration while they end.
    const [pods, others] = [resources.filter(isPod), resources.filter((resource) => !isPod(resource))]
    for (const part of [pods, others]) {
      for (const resource of part)
        try {
          remainders.push(await deleteContent(client, { resource, namespace }, signal))
        } catch (error) {
          if (!isNotFound(error)) contentErrors.push(errorMessage(error)) // else: its definition has just gone
        }
      if (remainders.some(({ count }) => count > 0) || contentErrors.length > 0) break
    }
    return { contentErrors, remainders }
  }

  async function finalize(namespace: FinalizedNamespace, signal: AbortSignal): Promise<void> {
    const finalizers = namespace.spec?.finalizers?.filter((finalizer) => finalizer !== FINALIZER) ?? []
    const finalized: FinalizedNamespace = { ...namespace, spec: { ...namespace.spec, finalizers } }
    await client.update(namespaces, finalized, { subresource: 'finalize', signal })
  }

  async function writeConditions(namespace: FinalizedNamespace, state: DeletionState, signal: AbortSignal): Promise<FinalizedNamespace> {
    const before = (namespace.status?.['conditions'] ?? []) as StatusCondition[]
    const conditions = deletionConditions(state, before, new Date(clock.now()).toISOString().replace(/\.\d+Z$/, 'Z'))
    if (jsonEqual(conditions, before)) return namespace
    const status = { ...namespace.status, phase: 'Terminating', conditions }
    return await client.update(namespaces, { ...namespace, status }, { subresource: 'status', signal })
  }

  return createController({
    name: 'namespaces',
    reconcile,
    sources: [watchSelf(cache)],
    concurrency: 2,
    // Nothing tells when the last finalizer is gone: it is asked for.
    queue: { backoff: { baseMs: 200, maxMs: 5_000 } },
    clock,
    onError: env.onError,
  })
}

function isOurs({ metadata, spec }: FinalizedNamespace): boolean {
  return metadata.deletionTimestamp !== undefined && (spec?.finalizers?.includes(FINALIZER) ?? false)
}

function isContent({ namespaced, preferred, verbs }: ServedResource): boolean {
  return namespaced && preferred && verbs.includes('delete')
}

function isPod({ group, plural }: ServedResource): boolean {
  return group === '' && plural === 'pods'
}
