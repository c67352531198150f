import { systemClock } from '@thv/kernel/clock'
import { KubeApiError, type KubeClient, type KubeObject, type ResourceType } from '@thv/kube'
import { expect, it } from 'vitest'
import { configOf, memoryLog } from '../testing/runtime-fixtures.ts'
import { desiredObjects } from './desired-objects.ts'
import { keepWorkload } from './workload-keeper.ts'

const namespace = 'team'

/** An API server without objects that refuses StatefulSets while `refuses` is set. */
function refusingServer() {
  const state = { refuses: true, tries: 0 }
  const client = {
    listPages: async function* () {
      yield { metadata: { resourceVersion: '1' }, items: [] }
    },
    list: async () => ({ metadata: { resourceVersion: '1' }, items: [] }),
    listAll: async () => ({ metadata: { resourceVersion: '1' }, items: [] }),
    tryGet: async () => undefined,
    watch: async function* (_: ResourceType, { signal }: { signal?: AbortSignal }) {
      await new Promise((resolve) => signal?.addEventListener('abort', resolve, { once: true }))
      yield* []
    },
    apply: async (type: ResourceType, object: KubeObject) => {
      if (type.kind === 'StatefulSet') state.tries++
      if (type.kind === 'StatefulSet' && state.refuses)
        throw new KubeApiError({
          call: { verb: 'apply', target: 'statefulsets.apps team/demo', object: { kind: 'StatefulSet', namespace, name: 'demo' } },
          status: 403,
          body: { reason: 'Forbidden', message: 'statefulsets.apps "demo" is forbidden: exceeded quota: small, used: 1, limited: 1' },
        })
      return { ...object, metadata: { ...object.metadata, uid: '1', resourceVersion: '2', generation: 1 } }
    },
  }
  return { state, client: client as unknown as KubeClient }
}

it('reports a StatefulSet that the API server keeps refusing, until it is accepted', async () => {
  const config = configOf({ transport: 'streamable-http', target_port: 9000 })
  const desired = desiredObjects(config, { namespace, platform: 'kubernetes' })
  const { state, client } = refusingServer()
  const stop = new AbortController()
  const keeper = keepWorkload({ config, namespace, desired, client, log: memoryLog(), clock: systemClock }, stop.signal)
  await expect
    .poll(() => keeper.problem, { timeout: 30_000 })
    .toEqual({
      reason: 'WriteRefused',
      message:
        'The API server does not let the proxy write StatefulSet demo: exceeded quota: small, used: 1, limited: 1. Raise the quota, or delete objects that are not needed.',
    })
  expect(state.tries).toBeGreaterThan(1)
  state.refuses = false
  await expect.poll(() => keeper.problem, { timeout: 30_000 }).toBeUndefined()
  stop.abort()
  await keeper.done
})
