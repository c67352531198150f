import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Pod } from '@thv/kube/objects/builtin-kinds'
import { pods } from '@thv/kube/objects/resource-types'
import { processStart } from '@thv/programs/process-identity'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually, isReady, NAMESPACE, type NodeFixture, script, startFixture } from './testing/node-fixture.ts'

const FOREVER = 'while true; do sleep 1; done'

describe('faults', () => {
  let fixture: NodeFixture
  beforeEach(async () => {
    fixture = await startFixture()
  })
  afterEach(async () => {
    await fixture[Symbol.asyncDispose]()
    expect(fixture.errors).toEqual([])
  })
  const remove = (name: string) => fixture.client.delete(pods, { namespace: NAMESPACE, name })
  const lineOf = async (name: string): Promise<string> => {
    const pod = await fixture.until(name, isReady)
    await eventually(async () => (await fixture.logs(pod)).endsWith('\n'))
    return (await fixture.logs(pod)).trim()
  }

  it('takes along what a program has put into a session of its own', async () => {
    await fixture.create('fork', script('sh', `(setsid sh -c 'echo $$$$; sleep 600' &); ${FOREVER}`))
    const pid = Number(await lineOf('fork'))
    expect(processStart(pid)).toBeDefined()
    await remove('fork')
    await fixture.untilGone('fork')
    expect(await eventually(() => processStart(pid) === undefined)).toBe(true)
  })

  it('hurries when a second deletion gives less time', async () => {
    await fixture.create('hurry', { terminationGracePeriodSeconds: 3_600, ...script('sh', `trap '' TERM; echo up; ${FOREVER}`) })
    await lineOf('hurry')
    await remove('hurry')
    await fixture.until('hurry', ({ metadata }) => metadata.deletionTimestamp !== undefined)
    await fixture.client.delete(pods, { namespace: NAMESPACE, name: 'hurry' }, { gracePeriodSeconds: 1 })
    await fixture.untilGone('hurry')
    await fixture.create('force', script('sh', `trap '' TERM; echo $$$$; ${FOREVER}`))
    const pid = Number(await lineOf('force'))
    await fixture.client.delete(pods, { namespace: NAMESPACE, name: 'force' }, { gracePeriodSeconds: 0 })
    expect(await eventually(() => processStart(pid) === undefined)).toBe(true)
  })

  it('bears output without end and without lines', async () => {
    await fixture.create('huge', {
      restartPolicy: 'Never',
      ...script('node', 'process.stdout.write("x".repeat(3 << 20), () => console.log("end"))'),
    })
    const pod = await fixture.until('huge', ({ status }) => status?.phase === 'Succeeded')
    const text = await fixture.logs(pod)
    expect([text.length, text.endsWith('xend\n')]).toEqual([(3 << 20) + 4, true])
  })

  it('fails a container that listens on all addresses, unless its pod may', async () => {
    fixture.network.unsafe = ['0.0.0.0:3001']
    await fixture.create('open', script('sh', FOREVER))
    const annotations = { 'toolhive.stacklok.dev/allow-unsafe-bind': 'true' }
    await fixture.create('allowed', script('sh', FOREVER), { annotations })
    const pod = await fixture.until('open', ({ status }) => status?.reason === 'UnsafeBind')
    expect(pod.status?.message).toMatch(/listens on 0\.0\.0\.0:3001.*allow-unsafe-bind/)
    await fixture.until('allowed', isReady)
    // It is not started again before it may.
    const down = await fixture.until('open', ({ status }) => status?.containerStatuses?.[0]?.state?.waiting?.reason === 'UnsafeBind')
    expect(down.status?.containerStatuses?.[0]?.restartCount).toBe(0)
    await fixture.client.patch(pods, { namespace: NAMESPACE, name: 'open' }, { kind: 'merge', body: { metadata: { annotations } } })
    await fixture.until('open', (it) => isReady(it) && it.status?.containerStatuses?.[0]?.restartCount === 1)
  })

  it('says where a container listens that does not listen on a port it declares', async () => {
    fixture.network.ports = [8017]
    const spec = (port: number) => ({ containers: [{ name: 'main', image: 'sh', args: [FOREVER], ports: [{ containerPort: port }] }] })
    await fixture.create('wrong', spec(8000))
    await fixture.create('right', spec(8017))
    const found = ({ status }: Pod) => status?.conditions?.find(({ type }) => type === 'toolhive.stacklok.dev/ListeningPorts')
    const wrong = await fixture.until('wrong', (pod) => found(pod)?.status === 'True')
    expect(found(wrong)).toMatchObject({ message: 'The processes listen on 8017, not on a declared port.' })
    expect(found(await fixture.until('right', isReady))).toBeUndefined()
    fixture.network.ports = [8000, 8017]
    await fixture.until('wrong', (pod) => found(pod)?.status === 'False')
  })

  it('runs 50 pods at once', async () => {
    const names = Array.from({ length: 50 }, (_, index) => `many-${index}`)
    await Promise.all(names.map((name) => fixture.create(name, script('sh', FOREVER))))
    const list = async () => (await fixture.client.list(pods, { namespace: NAMESPACE })).items
    expect(await eventually(async () => (await list()).filter(isReady).length === names.length, 120_000)).toBe(true)
    await Promise.all(names.map(remove))
    expect(await eventually(async () => (await list()).length === 0, 120_000)).toBe(true)
    expect(await eventually(() => fixture.network.pods.size === 0)).toBe(true)
  })

  it('starts its pods again after a restart, as their next run', async () => {
    await fixture.create('again', script('sh', `echo $$$$; ${FOREVER}`))
    await fixture.create('never', { restartPolicy: 'Never', ...script('sh', FOREVER) })
    const half = (name: string, text: string) => ({ name, image: 'sh', args: [text] })
    await fixture.create('half', { restartPolicy: 'OnFailure', containers: [half('short', 'exit 0'), half('long', FOREVER)] })
    const [long, short] = ['long', 'short'].map((name) => (pod: Pod) => pod.status?.containerStatuses?.find((one) => one.name === name))
    await fixture.until('half', (pod) => long?.(pod)?.state?.running !== undefined && short?.(pod)?.state?.terminated !== undefined)
    const pid = Number(await lineOf('again'))
    await fixture.until('never', isReady)
    await fixture.restart()
    expect(processStart(pid)).toBeUndefined()
    const pod = await fixture.until('again', (it) => isReady(it) && it.status?.containerStatuses?.[0]?.restartCount === 1)
    expect(pod.status?.containerStatuses?.[0]?.lastState?.terminated).toMatchObject({ exitCode: 137, reason: 'ContainerStatusUnknown' })
    expect(await fixture.logs(pod, 'main', { previous: true })).toBe(`${pid}\n`)
    await fixture.until('never', ({ status }) => status?.phase === 'Failed')
    const halves = await fixture.until('half', (it) => long?.(it)?.restartCount === 1 && long(it)?.state?.running !== undefined)
    expect(short?.(halves)).toMatchObject({ restartCount: 0, state: { terminated: { exitCode: 0 } } })
  })

  it('lets go of a pod that somebody else still holds', async () => {
    await fixture.create('held', script('sh', FOREVER), { finalizers: ['test.thv/held'] })
    await fixture.until('held', isReady)
    await remove('held')
    const held = await fixture.until('held', ({ metadata }) => metadata.deletionGracePeriodSeconds === 0)
    expect(held.status?.containerStatuses?.[0]?.state?.terminated?.exitCode).toBe(143)
    expect(await eventually(() => fixture.network.pods.size === 0)).toBe(true)
    await fixture.client.patch(pods, { namespace: NAMESPACE, name: 'held' }, { kind: 'merge', body: { metadata: { finalizers: null } } })
    await fixture.untilGone('held')
  })
})

describe('kill -9 of the node', () => {
  const children: ChildProcess[] = []
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
  })

  it('leaves no process behind, not even one that left its group', async () => {
    const main = join(import.meta.dirname, 'testing', 'node-main.ts')
    const child = spawn(process.execPath, [main], { stdio: ['ignore', 'pipe', 'inherit'] })
    children.push(child)
    const [chunk] = (await Promise.race([once(child.stdout, 'data'), once(child, 'exit')])) as [Buffer]
    const { pids, folder } = JSON.parse(chunk.toString()) as { pids: number[]; folder: string }
    expect(pids.length).toBe(6)
    expect(pids.map(processStart)).not.toContain(undefined)
    child.kill('SIGKILL')
    expect(await eventually(() => pids.every((pid) => processStart(pid) === undefined))).toBe(true)
    rmSync(folder, { recursive: true, force: true })
  })
})
