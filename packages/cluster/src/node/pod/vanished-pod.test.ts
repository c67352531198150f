import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@thv/kernel/clock'
import type { KubeClient } from '@thv/kube/client'
import type { EventRecorder } from '@thv/kube/events'
import { KubeApiError } from '@thv/kube/kube-api-error'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
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

describe('a pod whose object is gone', () => {
  it('ends although another pod of its name refuses its status', async () => {
    let refusals = 0
    const patch = () => {
      refusals++
      return Promise.reject(
        new KubeApiError({ call: { verb: 'patch', target: 'pods default/twin' }, status: 409, body: { reason: 'Conflict' } }),
      )
    }
    const network = fakeNetwork()
    const env: NodeEnv = {
      client: { patch } as unknown as KubeClient,
      events: { record: () => undefined } as unknown as EventRecorder,
      clock: systemClock,
      images: fakeImages(),
      network,
      podEnv: {},
      folder,
      mark: `vanished${process.pid}.`,
      timings: { ...KUBELET_TIMINGS, ...QUICK },
      onError: (error) => expect(error).toBeUndefined(),
    }
    const spec = { restartPolicy: 'Never', ...script('sh', 'exit 0') } as NodePod['spec']
    const life = new PodLife({ metadata: { name: 'twin', namespace: 'default', uid: 'first' }, spec }, env)
    expect(await eventually(() => refusals > 2)).toBe(true)
    life.vanish()
    expect(await Promise.race([life.ended.then(() => 'ended'), systemClock.sleep(10_000).then(() => 'still there')])).toBe('ended')
    expect(network.pods.size).toBe(0)
  })
})
