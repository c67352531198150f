import { specChanged } from '../../caches/predicates.ts'
import { referrerSources } from '../../references/reference-sources.ts'
import { toolConfigCache as cache } from '../../references/referenced-caches.ts'
import type { ControllerSpec } from '../controller-spec.ts'
import { reconcileMcpToolConfig } from './reconcile.ts'

export const controller: ControllerSpec = {
  name: 'mcptoolconfig',
  concurrency: 4,
  cache,
  reconcile: reconcileMcpToolConfig,
  sources: (caches) => [...caches.of(cache).self(specChanged), ...referrerSources(caches, 'toolConfigs')],
}
