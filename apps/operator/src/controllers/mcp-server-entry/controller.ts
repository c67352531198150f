import { specChanged } from '../../caches/predicates.ts'
import { referenceSources } from '../../references/reference-sources.ts'
import type { ControllerSpec } from '../controller-spec.ts'
import { cache } from './cache.ts'
import { reconcileMcpServerEntry } from './reconcile.ts'

export const controller: ControllerSpec = {
  name: 'mcpserverentry',
  concurrency: 4,
  cache,
  reconcile: reconcileMcpServerEntry,
  sources: (caches) => [...caches.of(cache).self(specChanged), ...referenceSources(caches, caches.of(cache))],
}
