import { PassThrough } from 'node:stream'
import { TestClock } from '@thv/kernel/clock'
import type { Pod } from '@thv/kube'
import { beforeEach, describe, expect, it } from 'vitest'
import type { StdioConnection } from '../runtime.ts'
import { readyPod } from '../testing/pods.ts'
import { type MemoryLog, memoryLog } from '../testing/runtime-fixtures.ts'
import type { AttachEnd, AttachedStream, AttachTarget } from './attach-port.ts'
import { createStdioAttacher, type PodLeases, type StdioAttacherOptions } from './stdio-attacher.ts'

const never = new AbortController().signal

class FakeCluster {
  pods: Pod[] = []
  readonly attached: (AttachTarget & { end: (end: AttachEnd) => void; isClosed: () => boolean })[] = []
  failures: unknown[] = []
  readonly #listeners = new Set<() => void>()

  set(...pods: Pod[]): void {
    this.pods = pods
    for (const listener of [...this.#listeners]) listener()
  }

  onChange = (listener: () => void) => {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  get listeners(): number {
    return this.#listeners.size
  }

  attach = async (target: AttachTarget): Promise<AttachedStream> => {
    if (this.failures.length > 0) throw this.failures.shift()
    const ended = Promise.withResolvers<AttachEnd>()
    let closed = false
    this.attached.push({ ...target, end: ended.resolve, isClosed: () => closed })
    return {
      stdin: new PassThrough(),
      stdout: new PassThrough(),
      ended: ended.promise,
      close: async () => {
        closed = true
        ended.resolve({ message: 'closed' })
      },
    }
  }
}

describe('createStdioAttacher', () => {
  let cluster: FakeCluster
  let clock: TestClock
  let log: MemoryLog
  beforeEach(() => {
    cluster = new FakeCluster()
    clock = new TestClock()
    log = memoryLog()
  })

  const attacher = (options: Partial<StdioAttacherOptions> = {}) =>
    createStdioAttacher({
      namespace: 'team-a',
      port: cluster,
      workload: cluster,
      log,
      clock,
      backoff: { baseMs: 1_000, maxMs: 15_000, jitter: 0 },
      ...options,
    })

  it('waits for a pod and attaches to the container of the server', async () => {
    const opening = attacher().open(never)
    await clock.advance(0)
    expect(cluster.attached).toEqual([])
    cluster.set(readyPod('demo-0', { restarts: 2 }))
    const connection = await opening
    expect(cluster.attached[0]).toMatchObject({ namespace: 'team-a', pod: 'demo-0', container: 'mcp' })
    expect(connection.instance).toBe('uid-demo-0/2')
  })

  it('gives each caller a pod of its own, and the next one the pod that is free again', async () => {
    cluster.set(readyPod('demo-0'), readyPod('demo-1'))
    const attach = attacher()
    const [a] = await Promise.all([attach.open(never), attach.open(never)])
    expect(cluster.attached.map(({ pod }) => pod).sort()).toEqual(['demo-0', 'demo-1'])
    let third: StdioConnection | undefined
    void attach.open(never).then((connection) => {
      third = connection
    })
    await clock.advance(60_000)
    expect(third).toBeUndefined()
    await a.close() // nothing changes in the cluster
    await clock.advance(1_000)
    expect(third?.instance).toBe(a.instance) // the same process, and the caller can tell
  })

  describe('with several runners', () => {
    /** Holders of the pods in the shared store. */
    const holders = new Map<string, { owner: string; lose: () => void }>()
    let isAway = false
    beforeEach(() => {
      holders.clear()
      isAway = false
    })
    const leasesOf = (owner: string): PodLeases => ({
      async acquire(uid) {
        if (isAway) return 'away'
        if (holders.has(uid)) return 'held'
        const { promise: ended, resolve } = Promise.withResolvers<void>()
        const lose = () => {
          holders.delete(uid)
          resolve()
        }
        holders.set(uid, { owner, lose })
        return { ended, release: async () => lose() }
      },
    })

    it('attaches to no pod of another one, and takes over the pod that is given back', async () => {
      cluster.set(readyPod('demo-0'), readyPod('demo-1'))
      const [a, b, c] = ['a', 'b', 'c'].map((owner) => attacher({ leases: leasesOf(owner) }))
      const first = await a?.open(never)
      const second = await b?.open(never)
      expect([first?.instance, second?.instance].sort()).toEqual(['uid-demo-0/0', 'uid-demo-1/0'])
      let third: StdioConnection | undefined
      void c?.open(never).then((connection) => {
        third = connection
      })
      await clock.advance(60_000)
      expect(third).toBeUndefined()
      expect(cluster.attached).toHaveLength(2)
      await a?.close()
      await clock.advance(5_000)
      expect(third?.instance).toBe(first?.instance)
      expect(holders.get('uid-demo-1')?.owner ?? '').toMatch(/[bc]/)
    })

    it('detaches when the lease is lost', async () => {
      cluster.set(readyPod('demo-0'))
      const connection = await attacher({ leases: leasesOf('a') }).open(never)
      holders.get('uid-demo-0')?.lose()
      expect(await connection.ended).toEqual({ message: 'pod demo-0 is no longer leased to this proxy' })
      expect(cluster.attached[0]?.isClosed()).toBe(true)
    })

    it('attaches to nothing while the holder is unknown, and says so once', async () => {
      cluster.set(readyPod('demo-0'))
      isAway = true
      const opening = attacher({ leases: leasesOf('a') }).open(never)
      await clock.advance(20_000)
      expect(cluster.attached).toEqual([])
      expect(log.lines.filter(({ message }) => message.includes('Redis does not answer'))).toHaveLength(1)
      isAway = false
      await clock.advance(5_000)
      expect((await opening).instance).toBe('uid-demo-0/0')
    })

    it('gives the lease back when attaching fails', async () => {
      cluster.set(readyPod('demo-0'))
      cluster.failures = [new Error('refused')]
      const opening = attacher({ leases: leasesOf('a') }).open(never)
      await clock.advance(0)
      expect(holders.size).toBe(0)
      await clock.advance(5_000)
      expect((await opening).instance).toBe('uid-demo-0/0')
    })
  })

  it('ends the connection of a pod that is replaced, even if the stream does not', async () => {
    cluster.set(readyPod('demo-0', { uid: 'old' }))
    const attach = attacher()
    const connection = await attach.open(never)
    cluster.set(readyPod('demo-0', { uid: 'new' }))
    expect(await connection.ended).toEqual({ message: 'pod demo-0 is gone' })
    expect(cluster.attached[0]?.isClosed()).toBe(true)
    const next = attach.open(never)
    await clock.advance(1_000)
    expect((await next).instance).toBe('new/0')
  })

  it('ends the connection of a pod in which nothing runs any more', async () => {
    const pod = readyPod('demo-0')
    cluster.set(pod)
    const connection = await attacher().open(never)
    cluster.set({ ...pod, status: { phase: 'Failed' } })
    expect(await connection.ended).toEqual({ message: 'pod demo-0 is gone' })
  })

  it('waits longer each time a connection ends soon, and resets the delay after one that lasted', async () => {
    cluster.set(readyPod('demo-0'))
    const attach = attacher()
    const endSoon = async () => {
      cluster.attached.at(-1)?.end({ message: 'stream ended' })
      await clock.advance(0)
    }
    await attach.open(never)
    await endSoon()
    const waits: number[] = []
    for (let round = 0; round < 3; round++) {
      const before = clock.monotonic()
      let opened = false
      void attach.open(never).then(() => {
        opened = true
      })
      while (!opened) await clock.advance(500)
      waits.push(clock.monotonic() - before)
      await endSoon()
    }
    expect(waits).toEqual([1_000, 2_000, 4_000])

    const lasting = attach.open(never)
    await clock.advance(8_000)
    await lasting
    await clock.advance(30_000)
    await endSoon()
    await expect(attach.open(never)).resolves.toBeDefined() // at once
  })

  it('tries again when attaching fails, with a growing delay', async () => {
    cluster.failures = [new Error('403'), new Error('500')]
    cluster.set(readyPod('demo-0'))
    const opening = attacher().open(never)
    await clock.advance(1_000)
    expect(cluster.attached).toHaveLength(0)
    await clock.advance(2_000)
    await opening
    expect(log.lines.filter(({ level }) => level === 'warn')).toHaveLength(2)
  })

  it('ends its wait when told to, and leaves no listener behind', async () => {
    const stop = new AbortController()
    const opening = attacher().open(stop.signal)
    stop.abort(new Error('stopped'))
    await expect(opening).rejects.toThrow('stopped')
    expect(cluster.listeners).toBe(0)
  })

  it('detaches all at close', async () => {
    cluster.set(readyPod('demo-0'), readyPod('demo-1'))
    const attach = attacher()
    const connections = await Promise.all([attach.open(never), attach.open(never)])
    await attach.close()
    expect(cluster.attached.map(({ isClosed }) => isClosed())).toEqual([true, true])
    for (const connection of connections) await connection.ended
    expect(cluster.listeners).toBe(0)
  })

  it('ends a connection that carries the name of the process before', async () => {
    cluster.set(readyPod('demo-0', { restarts: 0 }))
    const attach = attacher()
    const connection = await attach.open(never)
    expect(connection.instance).toBe('uid-demo-0/0')
    cluster.set(readyPod('demo-0', { restarts: 1 }))
    expect((await connection.ended).message).toBe('the container of pod demo-0 was restarted')
    const next = attach.open(never)
    await clock.advance(1_000)
    expect((await next).instance).toBe('uid-demo-0/1')
  })

  it('waits for the status of a pod whose stream was ended in order', async () => {
    cluster.set(readyPod('demo-0'))
    const attach = attacher({ statusLagMs: 5_000 })
    await attach.open(never)
    cluster.attached[0]?.end({ message: 'ended', inOrder: true })
    await clock.advance(0)
    const next = attach.open(never)
    await clock.advance(2_000)
    expect(cluster.attached).toHaveLength(1) // the kubelet may not have written yet what happened
    cluster.set(readyPod('demo-0', { restarts: 1 }))
    await clock.advance(0)
    expect((await next).instance).toBe('uid-demo-0/1')
  })

  it('believes an unchanged status after a while, and at once when only the connection broke', async () => {
    cluster.set(readyPod('demo-0'))
    const attach = attacher({ statusLagMs: 5_000 })
    await attach.open(never)
    cluster.attached[0]?.end({ message: 'ended', inOrder: true })
    await clock.advance(0)
    const next = attach.open(never)
    await clock.advance(4_999)
    expect(cluster.attached).toHaveLength(1)
    await clock.advance(1)
    expect((await next).instance).toBe('uid-demo-0/0')
    cluster.attached[1]?.end({ message: 'reset' })
    await clock.advance(0)
    const third = attach.open(never)
    await clock.advance(2_000)
    expect((await third).instance).toBe('uid-demo-0/0')
    expect(cluster.listeners).toBe(1)
  })

  describe('a process that is given up', () => {
    let replaced: string[]
    beforeEach(() => {
      replaced = []
    })
    const replacing = (problem?: Error) =>
      attacher({
        replacePod: async (pod) => {
          replaced.push(pod.metadata.uid ?? '')
          if (problem) throw problem
        },
      })
    const giveUp = async (attach: ReturnType<typeof attacher>, times: number) => {
      for (let n = 0; n < times; n++) {
        const opening = attach.open(never)
        await clock.advance(15_000)
        await (await opening).close()
      }
    }

    it('is replaced once, if it ran before this runner', async () => {
      cluster.set(readyPod('demo-0', { uid: 'old' }))
      const attach = replacing()
      await giveUp(attach, 1)
      expect(replaced).toEqual([])
      await giveUp(attach, 3)
      expect(replaced).toEqual(['old'])
      expect(log.text()).toContain('pod demo-0 was in use before this runner started')
    })

    it('stays, if it started under our eyes, also as the successor of one that was replaced', async () => {
      const attach = replacing()
      const opening = attach.open(never)
      await clock.advance(0)
      const pending = { ...readyPod('demo-0', { uid: 'new' }), status: { phase: 'Pending' } }
      cluster.set(pending)
      await clock.advance(0)
      cluster.set(readyPod('demo-0', { uid: 'new' }))
      await (await opening).close()
      await giveUp(attach, 5)
      cluster.set(readyPod('demo-0', { uid: 'newer' }))
      await giveUp(attach, 5)
      expect(replaced).toEqual([])
    })

    it('is not taken for useless when the runner stops, or after it was of use', async () => {
      cluster.set(readyPod('demo-0', { uid: 'old' }))
      const attach = replacing()
      await giveUp(attach, 1)
      const opening = attach.open(never)
      await clock.advance(15_000)
      await opening
      await clock.advance(30_000)
      cluster.attached.at(-1)?.end({ message: 'reset' })
      await clock.advance(0)
      await giveUp(attach, 1)
      const last = attach.open(never)
      await clock.advance(15_000)
      await last
      await attach.close()
      expect(replaced).toEqual([])
    })

    it('is named when it cannot be replaced', async () => {
      cluster.set(readyPod('demo-0', { uid: 'old' }))
      await giveUp(replacing(new Error('pods is forbidden')), 4)
      expect(replaced).toEqual(['old'])
      expect(log.lines.at(-1)).toBeDefined()
      expect(log.lines.find(({ message }) => message.includes('delete it by hand'))?.fields).toEqual({ error: 'pods is forbidden' })
    })
  })
})
