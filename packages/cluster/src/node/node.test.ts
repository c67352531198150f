import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { nodes, pods } from '@thv/kube/objects/resource-types'
import { processStart } from '@thv/programs/process-identity'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { condition, eventually, isReady, NAMESPACE, NODE, type NodeFixture, script, startFixture } from './testing/node-fixture.ts'

let fixture: NodeFixture
beforeEach(async () => {
  fixture = await startFixture()
})
afterEach(async () => {
  await fixture[Symbol.asyncDispose]()
  expect(fixture.errors).toEqual([])
})

const remove = (name: string) => fixture.client.delete(pods, { namespace: NAMESPACE, name })

describe('a pod', () => {
  it('runs as a process, is ready, and is gone after its deletion', async () => {
    await fixture.create('web', script('node', 'console.log("pid", process.pid); setInterval(() => {}, 1000)'))
    const pod = await fixture.until('web', isReady)
    expect(pod.status).toMatchObject({ phase: 'Running', hostIP: '127.0.0.1', podIP: expect.stringMatching(/^127\.77\./) })
    expect(
      ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map((type) => condition(pod, type)),
    ).toEqual(Array(5).fill('True'))
    expect(pod.status?.containerStatuses?.[0]).toMatchObject({
      name: 'main',
      ready: true,
      started: true,
      restartCount: 0,
      image: 'node',
      imageID: 'thv-test://node',
      containerID: expect.stringMatching(/^thv:\/\/[0-9a-f]{64}$/),
      state: { running: {} },
    })
    expect(await eventually(async () => (await fixture.logs(pod)).startsWith('pid'))).toBe(true)
    const pid = Number((await fixture.logs(pod)).split(' ')[1])
    expect(processStart(pid)).toBeDefined()
    await remove('web')
    await fixture.untilGone('web')
    expect(processStart(pid)).toBeUndefined()
    await eventually(() => fixture.network.pods.size === 0)
    expect(fixture.network.pods.size).toBe(0)
    expect(await eventually(() => !existsSync(join(fixture.folder, 'pods', pod.metadata.uid ?? '')))).toBe(true)
    await expect
      .poll(async () => (await fixture.events('web')).map((text) => text.split(':')[0]))
      .toEqual(expect.arrayContaining(['Pulling', 'Pulled', 'Created', 'Started', 'Killing']))
  })

  it('has a Node that is ready', async () => {
    const node = await fixture.client.get(nodes, { name: NODE })
    expect(node.metadata.labels).toMatchObject({ 'kubernetes.io/hostname': NODE })
    expect(node.status?.conditions?.find(({ type }) => type === 'Ready')?.status).toBe('True')
  })
})
