import type { Clock } from '@thv/kernel/clock'
import {
  type CacheShape,
  createSharedCaches,
  type KubeClient,
  type KubeObject,
  type SharedCaches,
  type SharedCachesOptions,
} from '@thv/kube'
import type { References } from '../references/references.ts'
import { BUILT_IN_CACHES, configMapCache } from './built-in-caches.ts'
import type { CacheSpec } from './cache-spec.ts'
import { type ConfigMapReader, configMapReader } from './config-map-content.ts'
import { type KindCache, kindCache } from './kind-cache.ts'
import { addReferenceIndexes, REFERENCE_INDEXES } from './reference-indexes.ts'

/** One cache per kind for all controllers. */
export interface OperatorCaches {
  /** Throws a RangeError for a spec that is neither built in nor the `cache` of a controller. */
  of<T extends KubeObject>(spec: CacheSpec<T>): KindCache<T>
  /** The kinds whose specs have `references`, sorted by kind. */
  referring(to: keyof References): readonly ReferringKind[]
  readonly all: readonly KindCache[]
  readonly configMapContent: ConfigMapReader
  readonly shared: SharedCaches
}

export interface ReferringKind {
  readonly kind: string
  readonly cache: KindCache
  /** Names of the objects that an object of this kind references. */
  names(object: KubeObject): readonly string[]
  /** The objects that reference `namespace/name`. */
  objects(key: string): readonly KubeObject[]
}

export interface OperatorCachesOptions {
  readonly client: KubeClient
  /** Besides the built-in kinds. */
  readonly specs: readonly CacheSpec[]
  /** Undefined: all. */
  readonly namespaces: readonly string[] | undefined
  readonly clock?: Clock
  readonly onError?: SharedCachesOptions['onError']
}

export function createOperatorCaches({ client, specs, namespaces, clock, onError }: OperatorCachesOptions): OperatorCaches {
  const shared = createSharedCaches(client, { clock, onError })
  const scopes: readonly { namespace?: string }[] = namespaces === undefined ? [{}] : namespaces.map((namespace) => ({ namespace }))

  function open<T extends KubeObject>(spec: CacheSpec<T>): KindCache<T> {
    const { type, shape, labelSelector, fieldSelector } = spec
    const reflectors = scopes.map(
      (scope) =>
        [scope.namespace ?? '', shared.of(type, { ...scope, labelSelector, fieldSelector }, shape as unknown as CacheShape<T>)] as const,
    )
    const cache = kindCache(new Map(reflectors))
    if (spec.references !== undefined) addReferenceIndexes(cache, spec.references)
    if (spec.index !== undefined) cache.addIndex(spec.index.name, spec.index.valuesOf)
    return cache
  }

  const caches = new Map([...new Set([...BUILT_IN_CACHES, ...specs])].map((spec) => [spec, open(spec)]))
  const of = <T extends KubeObject>(spec: CacheSpec<T>): KindCache<T> => {
    const cache = caches.get(spec)
    if (cache === undefined) throw new RangeError(`no cache of ${spec.type.plural} was declared`)
    return cache as unknown as KindCache<T>
  }
  return {
    of,
    referring: (to) => referringKinds([...caches], to),
    all: [...caches.values()],
    configMapContent: configMapReader(client, of(configMapCache)),
    shared,
  }
}

export function referringKinds(caches: readonly (readonly [CacheSpec, KindCache])[], to: keyof References): ReferringKind[] {
  return caches
    .flatMap(([spec, cache]) => {
      const { type, references } = spec
      if (references === undefined) return []
      return {
        kind: type.kind,
        cache,
        names: (object: KubeObject) => references(object)[to] ?? [],
        objects: (key: string) => cache.byIndex(REFERENCE_INDEXES[to], key),
      }
    })
    .toSorted((a, b) => (a.kind < b.kind ? -1 : 1))
}
