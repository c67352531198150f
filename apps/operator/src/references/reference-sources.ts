import { deletionStarted, type KubeObject, keyOf, type ObjectKey, or, type Predicate, type Source } from '@thv/kube'
import type { MCPGroup } from '@thv/resources/kinds/mcp-group/schema'
import { configMapCache, secretCache } from '../caches/built-in-caches.ts'
import type { KindCache } from '../caches/kind-cache.ts'
import type { OperatorCaches } from '../caches/operator-caches.ts'
import { specChanged } from '../caches/predicates.ts'
import { REFERENCE_INDEXES } from '../caches/reference-indexes.ts'
import { externalAuthConfigCache, groupCache, toolConfigCache } from './referenced-caches.ts'
import type { References } from './references.ts'

/**
 * Sources of a controller whose objects reference others: wakes exactly the objects that name a changed one. An MCPExternalAuthConfig
 * also passes on changes of the Secrets and ConfigMaps that it names. Status updates of referenced objects wake no referrer, except the phase
 * of a group.
 */
export function referenceSources<T extends KubeObject>(caches: OperatorCaches, referrers: KindCache<T>): Source[] {
  const authConfigs = caches.of(externalAuthConfigCache)
  const ofAuthConfig = referrersIn(referrers, 'externalAuthConfigs')
  const throughAuthConfig = (kind: 'secrets' | 'configMaps') => {
    const authConfigsOf = referrersIn(authConfigs, kind)
    return (object: KubeObject): ObjectKey[] =>
      authConfigsOf(object).flatMap((key) => {
        const config = authConfigs.get(key)
        return config === undefined ? [] : ofAuthConfig(config)
      })
  }
  const configMaps = caches.of(configMapCache)
  const secrets = caches.of(secretCache)
  return [
    ...caches.of(groupCache).mapped(referrersIn(referrers, 'groups'), groupChanged),
    ...caches.of(toolConfigCache).mapped(referrersIn(referrers, 'toolConfigs'), specChanged),
    ...authConfigs.mapped(ofAuthConfig, specChanged),
    ...configMaps.mapped(referrersIn(referrers, 'configMaps')),
    ...secrets.mapped(referrersIn(referrers, 'secrets')),
    ...configMaps.mapped(throughAuthConfig('configMaps')),
    ...secrets.mapped(throughAuthConfig('secrets')),
  ]
}

/** Sources of a controller whose objects are referenced: wakes the objects that a changed referrer names. */
export function referrerSources(
  caches: OperatorCaches,
  to: keyof References,
  isReferrer: (kind: string) => boolean = () => true,
): Source[] {
  return caches
    .referring(to)
    .filter(({ kind }) => isReferrer(kind))
    .flatMap(({ cache, names }) =>
      cache.mapped((object) => {
        const { namespace } = object.metadata
        return namespace === undefined ? [] : names(object).map((name) => ({ namespace, name }))
      }, specChanged),
    )
}

/** Keys of the objects of a kind that reference this one, through the index. */
export function referrersIn<T extends KubeObject>(
  cache: Pick<KindCache<T>, 'byIndex'>,
  kind: keyof References,
): (object: KubeObject) => readonly ObjectKey[] {
  return ({ metadata }) => cache.byIndex(REFERENCE_INDEXES[kind], `${metadata.namespace}/${metadata.name}`).map(keyOf)
}

/** Members read only whether their group exists and is ready, not who else is a member. */
const groupChanged: Predicate<MCPGroup> = or<MCPGroup>(
  deletionStarted,
  ({ type, object, old }) => type !== 'MODIFIED' || object.status?.phase !== old?.status?.phase,
)
