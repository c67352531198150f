import { PassThrough } from 'node:stream'
import { systemClock } from '@thv/kernel/clock'
import type { Pod } from '@thv/kube'
import { type PodServer, type PodSession, startPodServer, success } from '@thv/kube/testing/pod-server'
import { describe, expect, it } from 'vitest'
import { fixtureServer, type ServerEnds, scriptedServer } from '../../backends/stdio/testing/pipe-runtime.ts'
import { startStdioRunner } from '../../backends/stdio/testing/stdio-runner.ts'
import { eventually, openLegacy, textOf } from '../../backends/stdio/testing/wire-client.ts'
import type { Runtime } from '../runtime.ts'
import { readyPod } from '../testing/pods.ts'
import { memoryLog } from '../testing/runtime-fixtures.ts'
import { createPodAttach } from './pod-attach.ts'
import { createStdioAttacher } from './stdio-attacher.ts'

type Serve = (ends: ServerEnds) => void

/** A pod whose container outlives those who attach to it, behind a server that speaks the protocol of attach. */
class OnePod {
  pods: Pod[]
  readonly sessions: PodSession[] = []
  readonly replaced: string[] = []
  readonly #serve: Serve
  readonly #listeners = new Set<() => void>()
  #generation = 0
  #restarts = 0
  #container: ServerEnds

  constructor(serve: Serve) {
    this.#serve = serve
    this.#container = this.#run()
    this.pods = [this.#pod()]
  }

  onChange = (listener: () => void) => {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  attached(session: PodSession): void {
    this.sessions.push(session)
    session.socket.on('message', (data: Buffer) => {
      if (data[0] === 0) this.#container.input.write(data.subarray(1))
    })
  }

  /** The container ends, the stream with it, and the kubelet starts the next one and tells of it later. */
  crash(statusLagMs: number): void {
    this.#restarts++
    this.#container = this.#run()
    const session = this.sessions.at(-1)
    session?.status(success)
    session?.socket.close(1000)
    setTimeout(() => this.#tell(), statusLagMs)
  }

  /** As the StatefulSet does after a deletion. */
  async replace(pod: Pod): Promise<void> {
    this.replaced.push(pod.metadata.uid ?? '')
    this.#generation++
    this.#restarts = 0
    this.#container = this.#run()
    this.#tell()
  }

  #tell(): void {
    this.pods = [this.#pod()]
    for (const listener of [...this.#listeners]) listener()
  }

  #pod(): Pod {
    return readyPod('demo-0', { uid: `uid-${this.#generation}`, restarts: this.#restarts })
  }

  #run(): ServerEnds {
    const ends: ServerEnds = {
      input: new PassThrough(),
      output: new PassThrough(),
      index: 0,
      write: (text) => this.#container === ends && this.sessions.at(-1)?.send(1, text),
      exit: () => {},
      ended: new Promise(() => {}),
    }
    this.#serve(ends)
    return ends
  }

  runtime(server: PodServer): Runtime {
    const attacher = createStdioAttacher({
      namespace: 'team-a',
      port: createPodAttach(server.connection()),
      workload: this,
      log: memoryLog(),
      clock: systemClock,
      backoff: { baseMs: 1, maxMs: 5 },
      statusLagMs: 2_000,
      replacePod: (pod) => this.replace(pod),
    })
    return {
      name: 'kubernetes',
      stdioCapacity: 1,
      startServer: () => Promise.reject(new Error('not a server with HTTP')),
      openStdio: (signal) => attacher.open(signal),
      close: () => attacher.close(),
    }
  }
}

async function withPod(serve: Serve) {
  const pod = new OnePod(serve)
  const server = await startPodServer({ onSession: (session) => pod.attached(session) })
  const start = () => startStdioRunner({ runtime: pod.runtime(server), config: { backoff: { baseMs: 1, maxMs: 20 }, probeTimeoutMs: 50 } })
  return { pod, start, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

/** Takes one handshake for life, as many published servers do, and counts them. */
function onceServer() {
  const greetings: string[] = []
  const serve: Serve = (ends) => {
    let isGreeted = false
    const answer = scriptedServer(({ id, method }, write) => {
      if (method === 'tools/call') write({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'done' }] } })
    })
    const filtered = new PassThrough()
    answer({ ...ends, input: filtered })
    let held = ''
    ends.input.on('data', (chunk: Buffer) => {
      held += chunk
      const lines = held.split('\n')
      held = lines.pop() ?? ''
      for (const line of lines) {
        const { id, method } = JSON.parse(line) as { id?: unknown; method?: string }
        if (method === 'initialize') greetings.push(isGreeted ? 'refused' : 'taken')
        if (id !== undefined && (method === 'initialize' ? isGreeted : !isGreeted)) {
          ends.write(`${JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32600, message: 'not now' } })}\n`)
        } else filtered.write(`${line}\n`)
        if (method === 'initialize') isGreeted = true
      }
    })
  }
  return { greetings, serve }
}

describe('a stdio server in a pod', () => {
  it('is served through attach, with messages of any size', async () => {
    await using cluster = await withPod(fixtureServer({ era: 'legacy' }))
    await using runner = await cluster.start()
    const client = await openLegacy(runner.url)
    const text = 'zwölf 🥊 '.repeat(100_000)
    expect(JSON.parse(textOf(await client.tool('echo', { text })))).toEqual({ text })
    const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => client.tool('echo', { n })))
    expect(answers.map((answer) => JSON.parse(textOf(answer)))).toEqual(Array.from({ length: 50 }, (_, n) => ({ n })))
  })

  it('is not greeted again after a broken connection, and is after a crash, whose status comes late', async () => {
    const { greetings, serve } = onceServer()
    await using cluster = await withPod(serve)
    const { pod } = cluster
    await using runner = await cluster.start()
    const client = await openLegacy(runner.url)
    expect(textOf(await client.tool('x'))).toBe('done')

    pod.sessions.at(-1)?.raw.destroy()
    await eventually('it is attached again', () => pod.sessions.length === 2 && runner.backend.status.ready)
    expect(textOf(await client.tool('x'))).toBe('done')
    expect(greetings).toEqual(['taken'])

    pod.crash(200)
    await eventually('the new one is greeted', () => greetings.length === 2 && runner.backend.status.ready)
    expect(textOf(await client.tool('x'))).toBe('done')
    expect(greetings).toEqual(['taken', 'taken'])
    expect(pod.replaced).toEqual([])
  })

  it('is replaced when it was greeted by the runner before and refuses another one', async () => {
    const { greetings, serve } = onceServer()
    await using cluster = await withPod(serve)
    const { pod } = cluster
    {
      await using first = await cluster.start()
      await eventually('it is ready', () => first.backend.status.ready)
    }
    await using second = await cluster.start()
    await eventually('it is ready again', () => second.backend.status.ready)
    expect(pod.replaced).toEqual(['uid-0'])
    expect(greetings).toEqual(['taken', 'refused', 'refused', 'taken'])
    expect(textOf(await (await openLegacy(second.url)).tool('x'))).toBe('done')
  })
})
