import type { BackoffOptions } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { type LabelSelector, parseLabelSelector } from '../objects/label-selector.ts'
import type { KubeObject, ResourceType } from '../objects/types.ts'
import { Reflector } from './reflector.ts'
import type { ReflectorClient, ReflectorPhase } from './reflector-options.ts'
import { metadataOnly } from './store.ts'

export interface CacheScope {
  namespace?: string | undefined
  labelSelector?: string | LabelSelector | undefined
  fieldSelector?: string | undefined
}

/** The part of each object that a cache keeps. Shapes of one name are taken to be the same. */
export interface CacheShape<T extends KubeObject = KubeObject> {
  readonly name: string
  readonly transform: (object: T) => T
}

const METADATA_ONLY: CacheShape = { name: 'metadata', transform: metadataOnly }

export interface SharedCachesOptions {
  clock?: Clock | undefined
  pageSize?: number | undefined
  safetyRelistMs?: number | undefined
  backoff?: BackoffOptions | undefined
  /** `cache` names the reflector. */
  onError?: ((error: unknown, context: { cache: string; phase: ReflectorPhase }) => void) | undefined
}

export interface SharedCaches {
  /** The one cache of this kind, scope and shape, started by the first who asks. Without a shape it keeps all but `managedFields`. */
  of<T extends KubeObject>(type: ResourceType<T>, scope?: CacheScope, shape?: CacheShape<T>): Reflector<T>
  /** As `of`, but the cache holds identity, labels, annotations and owners only. */
  metadataOf(type: ResourceType, scope?: CacheScope): Reflector
  readonly all: readonly Reflector[]
  /** Waits for all that were asked for until now. */
  waitForSync(signal?: AbortSignal): Promise<void>
  /** Stops them all and waits until they have ended. */
  close(): Promise<void>
}

export function createSharedCaches(client: ReflectorClient, options: SharedCachesOptions = {}): SharedCaches {
  const stop = new AbortController()
  const caches = new Map<string, { reflector: Reflector; running: Promise<void> }>()

  function ask(type: ResourceType, scope: CacheScope, shape: CacheShape | undefined): Reflector {
    if (stop.signal.aborted) throw new TypeError(`the caches are closed; ${type.plural} were asked for`)
    const id = identify(type, scope, shape)
    const known = caches.get(id)
    if (known !== undefined) return known.reflector
    const reflector: Reflector = new Reflector({
      client,
      type,
      ...scope,
      transform: shape?.transform,
      clock: options.clock,
      pageSize: options.pageSize,
      safetyRelistMs: options.safetyRelistMs,
      backoff: options.backoff,
      onError: (error, phase) => options.onError?.(error, { cache: reflector.name, phase }),
    })
    caches.set(id, { reflector, running: reflector.run(stop.signal) })
    return reflector
  }

  return {
    of: <T extends KubeObject>(type: ResourceType<T>, scope: CacheScope = {}, shape?: CacheShape<T>) =>
      ask(type, scope, shape as CacheShape | undefined) as unknown as Reflector<T>,
    metadataOf: (type, scope = {}) => ask(type, scope, METADATA_ONLY),
    get all() {
      return [...caches.values()].map(({ reflector }) => reflector)
    },
    async waitForSync(signal) {
      await Promise.all([...caches.values()].map(({ reflector }) => reflector.waitForSync(signal)))
    },
    async close() {
      stop.abort()
      await Promise.all([...caches.values()].map(({ running }) => running))
    },
  }
}

/** Two ways to write one selector share a cache. */
function identify(type: ResourceType, scope: CacheScope, shape: CacheShape | undefined): string {
  const { group, version, plural } = type
  const labels = scope.labelSelector === undefined ? '' : parseLabelSelector(scope.labelSelector).text
  return JSON.stringify([group, version, plural, scope.namespace ?? '', labels, scope.fieldSelector ?? '', shape?.name ?? ''])
}
