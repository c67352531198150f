import type { BackoffOptions } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import type { KubeClient } from '../client/client.ts'
import type { LabelSelector } from '../objects/label-selector.ts'
import type { KubeObject, ResourceType } from '../objects/types.ts'

export type ReflectorClient = Pick<KubeClient, 'list' | 'listPages' | 'watch'>

/** Where an error came from. `list`, `watch` and `safety` are retried without limit. */
export type ReflectorPhase = 'list' | 'watch' | 'safety' | 'handler'

export interface ReflectorOptions<T extends KubeObject> {
  client: ReflectorClient
  type: ResourceType<T>
  namespace?: string | undefined
  labelSelector?: string | LabelSelector | undefined
  fieldSelector?: string | undefined
  /** Reduces each object to the part that the cache keeps. Default: all but `managedFields`. */
  transform?: ((object: T) => T) | undefined
  /** The cache keeps the version of each object alone, for who takes what it needs from the events. Handlers are added before `run`. */
  versionsOnly?: boolean | undefined
  pageSize?: number | undefined
  /** Limit of one page; a list of many pages has none. */
  pageTimeoutMs?: number | undefined
  /** The server ends a watch after this, less up to a fifth so that not all watches end together. */
  watchTimeoutSeconds?: number | undefined
  /** How often to compare the cache with a fresh list. Default 30 min, less up to a fifth; 0 for never. */
  safetyRelistMs?: number | undefined
  /** How long an event may be under way before that comparison counts it as missed. */
  safetyGraceMs?: number | undefined
  backoff?: BackoffOptions | undefined
  clock?: Clock | undefined
  random?: (() => number) | undefined
  onError?: ((error: unknown, phase: ReflectorPhase) => void) | undefined
}

export interface ReflectorStats {
  /** Complete lists, those of the safety check included. */
  lists: number
  watches: number
  /** Lists that replaced the cache after the first one. */
  relists: number
  /** 410 answers: the server no longer had our resourceVersion. Normal after a restart of the server. */
  expired: number
  /** Times when the server's versions had gone back (it was restored from a backup). */
  rewinds: number
  /** Times when watches from one version kept breaking although the server answered, and a list got past it. */
  abandoned: number
  errors: number
  safetyChecks: number
  /** Changes that the watch did not bring and a safety check repaired. Should stay 0. */
  missed: number
  /** Changes and bookmarks. */
  events: number
  /** Epoch milliseconds. */
  lastEventAt: number | undefined
  /** Up to where the cache is known to be complete. */
  resourceVersion: string | undefined
}

export function newReflectorStats(): ReflectorStats {
  return {
    lists: 0,
    watches: 0,
    relists: 0,
    expired: 0,
    rewinds: 0,
    abandoned: 0,
    errors: 0,
    safetyChecks: 0,
    missed: 0,
    events: 0,
    lastEventAt: undefined,
    resourceVersion: undefined,
  }
}
