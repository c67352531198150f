import { keyOf } from '@thv/kube'
import { withoutWaiting } from '../../caches/kind-cache.ts'
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
  sources: (caches) => [
    ...caches.of(cache).self(specChanged),
    // A group says itself that its members cannot be listed, so it does not wait for them.
    ...referrerSources(caches, 'groups', isMember).map(withoutWaiting),
    ...caches
      .referring('groups')
      .filter(({ kind }) => isMember(kind))
      .flatMap((members) =>
        members.cache.listings((namespace) =>
          caches
            .of(cache)
            .list(namespace)
            .map((group) => keyOf(group)),
        ),
      ),
  ],
}
