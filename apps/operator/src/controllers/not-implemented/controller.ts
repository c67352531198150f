import type { KubeObject, ResourceType } from '@thv/kube'
import { KINDS } from '@thv/resources/kinds/kinds'
import { resourceTypeOf } from '@thv/resources/schema/kind-definition'
import type { CacheSpec } from '../../caches/cache-spec.ts'
import { specChanged } from '../../caches/predicates.ts'
import type { ControllerSpec } from '../controller-spec.ts'
import { reconcileNotImplemented } from './reconcile.ts'

/** For a kind that nothing runs for yet. */
export function notImplementedController<T extends KubeObject>(cache: CacheSpec<T>): ControllerSpec {
  return {
    name: cache.type.kind.toLowerCase(),
    concurrency: 1,
    cache,
    reconcile: reconcileNotImplemented(cache as unknown as CacheSpec),
    sources: (caches) => caches.of(cache).self(specChanged),
  }
}

/** For all kinds that are marked `notImplemented` and have no controller among these. */
export function notImplementedControllers(controllers: readonly ControllerSpec[]): ControllerSpec[] {
  const served = new Set(controllers.map(({ cache }) => cache.type.kind))
  return KINDS.filter(({ kind, notImplemented }) => notImplemented && !served.has(kind)).map((kind) =>
    notImplementedController({ type: resourceTypeOf(kind) as ResourceType<KubeObject> }),
  )
}
