import { specChanged } from '../../caches/predicates.ts'
import { referrerSources } from '../../references/reference-sources.ts'
import { groupCache as cache } from '../../references/referenced-caches.ts'
import type { ControllerSpec } from '../controller-spec.ts'
import { isMember, reconcileMcpGroup } from './reconcile.ts'

export const controller: ControllerSpec = {
  name: 'mcpgroup',
  concurrency: 4,
  cache,
  reconcile: reconcileMcpGroup,
  sources: (caches) => [...caches.of(cache).self(specChanged), ...referrerSources(caches, 'groups', isMember)],
}
