import { secretCache } from '../../caches/built-in-caches.ts'
import { ownedBy, specChanged } from '../../caches/predicates.ts'
import { referrerSources, referrersIn } from '../../references/reference-sources.ts'
import { externalAuthConfigCache as cache } from '../../references/referenced-caches.ts'
import type { ControllerSpec } from '../controller-spec.ts'
import { reconcileMcpExternalAuthConfig } from './reconcile.ts'

export const controller: ControllerSpec = {
  name: 'mcpexternalauthconfig',
  concurrency: 4,
  cache,
  refusedIn: 'SigningKeysManaged',
  reconcile: reconcileMcpExternalAuthConfig,
  sources(caches) {
    const configs = caches.of(cache)
    return [
      ...configs.self(specChanged),
      ...caches.of(secretCache).mapped(referrersIn(configs, 'secrets')),
      ...caches.of(secretCache).owned(ownedBy('MCPExternalAuthConfig')),
      ...referrerSources(caches, 'externalAuthConfigs'),
    ]
  },
}
