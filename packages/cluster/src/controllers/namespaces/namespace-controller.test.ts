import { systemClock } from '@thv/kernel/clock'
import type { KubeClient, KubeObject, SharedCaches } from '@thv/kube'
import { describe, expect, it } from 'vitest'
import type { ControllerEnv } from '../controller-env.ts'
import { namespaceController } from './namespace-controller.ts'

describe('namespaceController', () => {
  it('leaves a new namespace alone that has the name of the one in the cache', async () => {
    const old = {
      metadata: { name: 'team', uid: 'old', deletionTimestamp: '2026-01-01T00:00:00Z' },
      spec: { finalizers: ['kubernetes'] },
    }
    const cache = {
      name: 'namespaces',
      store: { get: () => old, list: () => [old] },
      hasSynced: true,
      waitForSync: async () => undefined,
      addHandler(handler: (event: { type: string; object: KubeObject }) => void) {
        handler({ type: 'ADDED', object: old })
        return () => undefined
      },
    }
    const looked = Promise.withResolvers<void>()
    const emptied: string[] = []
    const client = {
      async tryGet() {
        looked.resolve()
        return { metadata: { name: 'team', uid: 'new' } }
      },
      async raw(_method: string, path: string) {
        emptied.push(path)
        return { json: () => ({ items: [] }) }
      },
    }
    const env: ControllerEnv = {
      client: client as unknown as KubeClient,
      caches: { of: () => cache } as unknown as SharedCaches,
      events: { record: () => undefined } as unknown as ControllerEnv['events'],
      clock: systemClock,
      onError: (error) => expect(error).toBeUndefined(),
    }
    const stop = new AbortController()
    const running = namespaceController(env).run(stop.signal)
    await looked.promise
    stop.abort()
    await running // what was begun is brought to its end
    expect(emptied).toEqual([])
  })
})
