import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@thv/kernel/clock'
import type { KubeClient } from '@thv/kube/client/client'
import { KubeApiError } from '@thv/kube/client/kube-api-error'
import type { EventRecorder } from '@thv/kube/events/events'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SharedProcesses } from '../process/shared-processes.ts'
import { fakeImages } from '../testing/fake-images.ts'
import { fakeNetwork } from '../testing/fake-network.ts'
import { eventually, QUICK, script } from '../testing/node-fixture.ts'
import { KUBELET_TIMINGS, type NodeEnv } from './node-env.ts'
import { PodLife } from './pod-life.ts'
import type { NodePod } from './pod-spec.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'thv-vanished-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** A node whose API server refuses every status. */
function refusing(status: number, calls: { remove?: () => Promise<void> } = {}) {
  const seen = { refusals: 0 }
  const patch = () => {
    seen.refusals++
    return Promise.reject(
      new KubeApiError({ call: { verb: 'patch', target: 'pods default/twin' }, status, body: { reason: 'Refused by the test' } }),
    )
  }
  const network = fakeNetwork()
  const env: NodeEnv = {
    client: { patch, delete: calls.remove } as unknown as KubeClient,
    events: { record: () => undefined } as unknown as EventRecorder,
    clock: systemClock,
    images: fakeImages(),
    network,
    sharedProcesses: new SharedProcesses({ folder, mark: `vanished${process.pid}.shared` }),
    podEnv: {},
    folder,
    mark: `vanished${process.pid}.`,
    timings: { ...KUBELET_TIMINGS, ...QUICK, lastStatus: 200 },
    onError: (error) => expect(error).toMatchObject({ status: 422 }),
  }
  return { seen, env, network }
}

const POD: NodePod = {
  metadata: { name: 'twin', namespace: 'default', uid: 'first' },
  spec: { restartPolicy: 'Never', ...script('sh', 'exit 0') } as NodePod['spec'],
}
const outcome = (life: PodLife) => Promise.race([life.ended.then(() => 'ended'), systemClock.sleep(60_000).then(() => 'still there')])

describe('a pod whose object is gone', () => {
  it('ends although another pod of its name refuses its status', async () => {
    const { seen, env, network } = refusing(409)
    const life = new PodLife(POD, env)
    expect(await eventually(() => seen.refusals > 2)).toBe(true)
    life.vanish()
    expect(await outcome(life)).toBe('ended')
    expect(network.pods.size).toBe(0)
  })
})

describe('a pod that is deleted', () => {
  it('goes although its last status is rejected each time', async () => {
    let removed = 0
    const { seen, env, network } = refusing(422, { remove: async () => void removed++ })
    const life = new PodLife(POD, env)
    expect(await eventually(() => seen.refusals > 2)).toBe(true)
    expect(removed).toBe(0)
    life.update({ ...POD, metadata: { ...POD.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } })
    expect(await outcome(life)).toBe('ended')
    expect(removed).toBe(1)
    expect(network.pods.size).toBe(0)
  })
})
