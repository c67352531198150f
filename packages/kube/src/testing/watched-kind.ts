import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { errorMessage } from '@thv/kernel/errors'
import { PATIENCE_MS } from '@thv/testkit/run/patience'
import { expect } from 'vitest'
import { Reflector, type ReflectorOptions } from '../cache/reflector.ts'
import type { KubeClient } from '../client/client.ts'
import type { KubeObject } from '../objects/types.ts'
import { type Replay, replayOf, versionsOf } from './replay.ts'

export interface WatchedKind<T extends KubeObject> extends AsyncDisposable {
  readonly reflector: Reflector<T>
  readonly replay: Replay<T>
  readonly errors: { error: unknown; phase: string; atMs: number }[]
  /**
   * Waits until cache and fresh list agree, then compares cache, list and what a handler has seen: names, uids, versions. No test may
   * write meanwhile. `truth` reads past all faults.
   */
  expectNothingMissed(truth: KubeClient, limitMs?: number): Promise<void>
}

/** A running reflector without safety checks: whatever the watch misses stays missed and is seen. */
export function watchKind<T extends KubeObject>(options: ReflectorOptions<T>): WatchedKind<T> {
  const errors: WatchedKind<T>['errors'] = []
  const begin = performance.now()
  const reflector = new Reflector<T>({
    safetyRelistMs: 0,
    pageSize: 7,
    pageTimeoutMs: 5_000,
    backoff: { baseMs: 100, maxMs: 1_000 },
    onError: (error, phase) => errors.push({ error, phase, atMs: Math.round(performance.now() - begin) }),
    ...options,
  })
  const replay = replayOf(reflector)
  const stop = new AbortController()
  const running = reflector.run(stop.signal)
  const { type, namespace } = options

  /** Details for a failed comparison. */
  function diagnosis(): string {
    const last = errors.slice(-8).map(({ error, phase, atMs }) => `${atMs} ms, ${phase}: ${errorMessage(error)}`)
    const { lastEventAt, ...stats } = reflector.stats
    const age = lastEventAt === undefined ? 'no event' : `last event ${Date.now() - lastEventAt} ms ago`
    return [`${reflector.name} after ${Math.round(performance.now() - begin)} ms, ${age}`, JSON.stringify(stats), ...last].join('\n')
  }

  return {
    reflector,
    replay,
    errors,
    async expectNothingMissed(truth, limitMs = PATIENCE_MS) {
      const { labelSelector } = options
      const scope = { namespace, labelSelector: typeof labelSelector === 'string' ? labelSelector : undefined }
      const listed = versionsOf((await truth.listAll(type, scope)).items)
      const deadline = performance.now() + limitMs
      while (!isDeepStrictEqual(versionsOf(reflector.store.list()), listed) && performance.now() < deadline) await sleep(25)
      expect(versionsOf(reflector.store.list()), diagnosis()).toEqual(listed)
      expect(versionsOf(replay.objects.values())).toEqual(listed)
      expect(replay.faults).toEqual([])
      expect(versionsOf((await truth.listAll(type, scope)).items), 'somebody wrote during the comparison').toEqual(listed)
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
    },
  }
}

/** Polls; every wait has a limit. */
export async function eventually(what: string, holds: () => boolean | Promise<boolean>, limitMs = PATIENCE_MS): Promise<void> {
  const deadline = performance.now() + limitMs
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`not within ${limitMs} ms: ${what}`)
    await sleep(25)
  }
}
