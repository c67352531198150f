import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Pod } from '@thv/kube/objects/builtin-kinds'
import { pods } from '@thv/kube/objects/resource-types'
import { processStart } from '@thv/programs/process-identity'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { fakeImages, program } from './testing/fake-images.ts'
import { eventually, isReady, NAMESPACE, type NodeFixture, startFixture } from './testing/node-fixture.ts'

const HOST = fileURLToPath(new URL('testing/host-main.ts', import.meta.url))
const image = program('shared', [], {
  env: { NODE_OPTIONS: '--max-old-space-size=64' },
  programs: { runner: [process.execPath, HOST] },
  hosts: { runner: [] },
})

describe('pods whose programs share a process', () => {
  let fixture: NodeFixture
  beforeEach(async () => {
    fixture = await startFixture({ images: fakeImages({ shared: async () => image }) })
  })
  afterEach(async () => {
    await fixture[Symbol.asyncDispose]()
    expect(fixture.errors).toEqual([])
  })
  const remove = (name: string) => fixture.client.delete(pods, { namespace: NAMESPACE, name })
  const declare = (name: string, fault: string, more: object = {}) => {
    const env = [{ name: 'THV_NAME', value: name }]
    const containers = [{ name: 'main', image: 'shared', command: ['runner'], args: [fault], env }]
    return fixture.create(name, { terminationGracePeriodSeconds: 1, ...more, containers })
  }
  const start = async (name: string, fault = 'none') => {
    await declare(name, fault)
    return await fixture.until(name, isReady)
  }
  const stateOf = ({ status }: Pod) => status?.containerStatuses?.[0]
  /** The process that a program says it runs in, once it has said so. */
  const pidOf = async (pod: Pod): Promise<number> => {
    let pid = ''
    await eventually(async () => {
      const text = await fixture.logs(pod).catch(() => '') // none while it waits for its next start
      pid = /^pid (\d+) /m.exec(text)?.[1] ?? ''
      return pid !== ''
    })
    return Number(pid)
  }
  const restarted = (name: string, exitCode: number) =>
    fixture.until(name, (pod) => (stateOf(pod)?.restartCount ?? 0) >= 1 && stateOf(pod)?.lastState?.terminated?.exitCode === exitCode)

  it('have one process, and each its own variables, folder, log and end', async () => {
    const [one, two] = [await start('one'), await start('two')]
    const pid = await pidOf(one)
    expect(await pidOf(two)).toBe(pid)
    expect(await fixture.logs(one)).toMatch(new RegExp(`^pid ${pid} one \\S*${one.metadata.uid}`))
    expect(await fixture.logs(two)).toMatch(new RegExp(`^pid ${pid} two \\S*${two.metadata.uid}`))
    await remove('one')
    await fixture.untilGone('one')
    const after = await fixture.get('two')
    expect(after && [isReady(after), stateOf(after)?.restartCount]).toEqual([true, 0])
    expect(await fixture.logs(two)).not.toContain('stopping')
    await remove('two')
    await fixture.untilGone('two')
    expect(await eventually(() => processStart(pid) === undefined)).toBe(true)
  })

  it('end with their own exit codes', async () => {
    const well = await start('well')
    await declare('seven', 'exit', { restartPolicy: 'Never' })
    const ended = await fixture.until('seven', ({ status }) => status?.phase === 'Failed')
    expect(stateOf(ended)?.state?.terminated).toMatchObject({ exitCode: 7, reason: 'Error' })
    expect(stateOf((await fixture.get('well')) ?? well)?.restartCount).toBe(0)
  })

  it.each(['throw', 'reject'])('fail alone when nothing catches an error: %s', async (fault) => {
    const well = await start('well')
    await declare('bad', fault)
    const bad = await restarted('bad', 1)
    expect(await fixture.logs(bad, 'main', { previous: true })).toMatch(/Error: (thrown|rejected)[\s\S]*stopping/)
    expect(stateOf((await fixture.get('well')) ?? well)?.restartCount).toBe(0)
    expect(await fixture.logs(well)).not.toMatch(/Error|stopping/)
    await eventually(async () => (await pidOf(bad)) === (await pidOf(well)))
    expect(await pidOf(bad)).toBe(await pidOf(well))
  })

  it('end alone when they do not stop in time while the process runs', async () => {
    const well = await start('well')
    const pid = await pidOf(well)
    expect(await pidOf(await start('lingering', 'linger'))).toBe(pid)
    await remove('lingering')
    await fixture.untilGone('lingering')
    expect(await pidOf(await start('next'))).toBe(pid)
    expect(stateOf((await fixture.get('well')) ?? well)).toMatchObject({ restartCount: 0, ready: true })
    expect(await fixture.logs(well)).not.toContain('stopping')
  })

  it('end alone when they are deleted while they start, or at once', async () => {
    const well = await start('well')
    const pid = await pidOf(well)
    for (let round = 0; round < 8; round++) {
      const name = `brief-${round}`
      await declare(name, 'linger')
      await setTimeout(4 * round) // at another step of its start each time
      await fixture.client.delete(pods, { namespace: NAMESPACE, name }, { gracePeriodSeconds: round % 2 })
      await fixture.untilGone(name)
    }
    expect(await pidOf(await start('next'))).toBe(pid)
    expect(stateOf((await fixture.get('well')) ?? well)).toMatchObject({ restartCount: 0, ready: true })
  })

  it('share a hang: the process is killed when one of them does not stop in time, and the others start again', async () => {
    const well = await start('well')
    const pid = await pidOf(well)
    expect(await pidOf(await start('stuck', 'hang'))).toBe(pid) // it prints that, and hangs
    await remove('stuck')
    await fixture.untilGone('stuck')
    await restarted('well', 137)
    expect(processStart(pid)).toBeUndefined()
  })

  it('share a leak: all of them end with the process, and the log of each says why', async () => {
    const well = await start('well')
    await declare('leaking', 'leak', { restartPolicy: 'Never' })
    await restarted('well', 134)
    expect(await fixture.logs(well, 'main', { previous: true })).toContain('heap out of memory')
    const leaking = await fixture.until('leaking', ({ status }) => status?.phase === 'Failed')
    expect(stateOf(leaking)?.state?.terminated?.exitCode).toBe(134)
  })

  it('lose no line of a flood, and say what was dropped when the reader is slow', async () => {
    const pod = await start('loud', 'flood')
    await eventually(async () => (await fixture.logs(pod)).endsWith('the end\n'))
    const lines = (await fixture.logs(pod)).trim().split('\n')
    const dropped = lines.reduce((sum, line) => sum + Number(/^(\d+) log lines were dropped/.exec(line)?.[1] ?? 0), 0)
    expect(lines.filter((line) => /^\d+ x+$/.test(line)).length + dropped).toBe(20_000)
  })

  it('are gone with a node that stops, and come back with it', async () => {
    const pid = await pidOf(await start('one'))
    await fixture.restart()
    expect(processStart(pid)).toBeUndefined()
    const again = await fixture.until('one', isReady)
    expect(await pidOf(again)).toBeGreaterThan(0)
  })
})
