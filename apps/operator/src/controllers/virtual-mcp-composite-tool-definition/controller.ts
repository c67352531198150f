import { specChanged } from '../../caches/predicates.ts'
import { referrerSources } from '../../references/reference-sources.ts'
import type { ControllerSpec } from '../controller-spec.ts'
import { cache } from './cache.ts'
import { reconcileCompositeToolDefinition } from './reconcile.ts'

export const controller: ControllerSpec = {
  name: 'virtualmcpcompositetooldefinition',
  concurrency: 2,
  cache,
  reconcile: reconcileCompositeToolDefinition,
  sources: (caches) => [...caches.of(cache).self(specChanged), ...referrerSources(caches, 'compositeTools')],
}
