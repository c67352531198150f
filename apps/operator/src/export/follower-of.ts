import type { ResourceKind } from '@thv/catalog/discover/objects/mcp-resource'
import type { ConditionUpdate, KubeObject, ObjectKey, Source } from '@thv/kube'
import { serviceCache } from '../caches/built-in-caches.ts'
import type { KindCache } from '../caches/kind-cache.ts'
import type { OperatorCaches } from '../caches/operator-caches.ts'
import type { Env } from '../environment.ts'
import { ExportFollower } from './export-follower.ts'
import { resourceCondition } from './resource-export.ts'

type WokenKind = 'MCPRegistry' | ResourceKind

interface Shared {
  readonly listeners: Map<WokenKind, Set<(key: ObjectKey) => void>>
  follower: ExportFollower | undefined
}

/** One follower per operator, begun by the first who asks and ended with the controllers. */
const shared = new WeakMap<OperatorCaches, Shared>()

function sharedOf(caches: OperatorCaches): Shared {
  const known = shared.get(caches) ?? { listeners: new Map(), follower: undefined }
  shared.set(caches, known)
  return known
}

/** Wakes a controller when the export of one of its objects changes. */
export function exportSource(caches: OperatorCaches, kind: WokenKind): Source {
  return {
    name: 'registry exports',
    hasSynced: true,
    waitForSync: async () => {},
    subscribe(enqueue) {
      const own = sharedOf(caches)
      const all = own.listeners.get(kind) ?? new Set()
      own.listeners.set(kind, all.add(enqueue))
      return () => {
        all.delete(enqueue)
        if ([...own.listeners.values()].some(({ size }) => size > 0)) return
        void own.follower?.close()
        own.follower = undefined
      }
    },
  }
}

/** For metrics. */
export function gatewayKindChanges(caches: OperatorCaches): number {
  return sharedOf(caches).follower?.kindChanges ?? 0
}

/** Whether the exports are those of all changes that the caches hold. */
export function isExportSettled(caches: OperatorCaches): boolean {
  return sharedOf(caches).follower?.isSettled ?? true
}

/** Undefined when no controller runs any more. */
export function followerOf(env: Env): ExportFollower | undefined {
  const own = sharedOf(env.caches)
  if (own.follower !== undefined || own.listeners.size === 0) return own.follower
  if (![...own.listeners.values()].some(({ size }) => size > 0)) return undefined
  const { caches, client, clock, log, settings, events, exportDebounceMs: debounceMs } = env
  own.follower = new ExportFollower({
    client,
    clock,
    log,
    settings,
    events,
    random: Math.random,
    ...(debounceMs !== undefined && { debounceMs }),
    caches: {
      registries: cacheOf(caches, 'MCPRegistry'),
      services: caches.of(serviceCache) as unknown as KindCache,
      resources: {
        MCPServer: cacheOf(caches, 'MCPServer'),
        MCPRemoteProxy: cacheOf(caches, 'MCPRemoteProxy'),
        VirtualMCPServer: cacheOf(caches, 'VirtualMCPServer'),
      },
    },
    wake: (kind, key) => {
      for (const enqueue of own.listeners.get(kind) ?? []) enqueue(key)
    },
  })
  return own.follower
}

function cacheOf(caches: OperatorCaches, kind: string): KindCache {
  const found = caches.all.find(({ reflectors }) => reflectors[0]?.type.kind === kind)
  if (found === undefined) throw new RangeError(`no cache of ${kind} was declared`)
  return found
}

/** The condition of a resource about its export. `unknown`: the one that it has stays. */
export function exportConditionOf(kind: ResourceKind, { metadata }: KubeObject, env: Env): ConditionUpdate | undefined | 'unknown' {
  const { namespace = '', name } = metadata
  const outcome = followerOf(env)?.outcomeOf(kind, { namespace, name }) ?? undefined
  return outcome === 'unknown' ? outcome : resourceCondition(outcome, namespace)
}
