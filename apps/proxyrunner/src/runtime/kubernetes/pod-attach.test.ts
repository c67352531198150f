import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { bearerToken } from '@thv/kube'
import { type PodSession, startPodServer, success } from '@thv/kube/testing/pod-server'
import { describe, expect, it } from 'vitest'
import { eventually } from '../testing/runtime-fixtures.ts'
import { createPodAttach } from './pod-attach.ts'

const target = { namespace: 'team-a', pod: 'demo-0', container: 'mcp' }
const never = new AbortController().signal

/** Answers every line. */
function echo(session: PodSession): void {
  session.socket.on('message', (data: Buffer) => {
    if (data[0] === 0) session.send(1, data.subarray(1))
  })
}

describe('createPodAttach', () => {
  it('joins standard input and output of the container, and leaves its errors to the logs', async () => {
    await using server = await startPodServer({ onSession: echo })
    const connection = await createPodAttach(server.connection(bearerToken('t'))).attach(target, never)
    const [session] = server.sessions
    expect(session?.url.pathname).toBe('/api/v1/namespaces/team-a/pods/demo-0/attach')
    expect(session?.url.search).toBe('?container=mcp&stdin=true&stdout=true')
    connection.stdin.cork()
    connection.stdin.write('{"a":1}\n')
    connection.stdin.write('{"b":"ü"}\n')
    connection.stdin.uncork()
    let text = ''
    for await (const chunk of connection.stdout) {
      text += chunk
      if (text.endsWith('"ü"}\n')) break
    }
    expect(text).toBe('{"a":1}\n{"b":"ü"}\n')
    await connection.close()
    expect((await connection.ended).message).toContain('closed')
    expect(session?.stdinEnded).toBe(false) // the server goes on
  })

  it('tells an end in order from a connection that broke', async () => {
    await using server = await startPodServer()
    const attach = createPodAttach(server.connection())
    const first = await attach.attach(target, never)
    server.sessions[0]?.status(success)
    server.sessions[0]?.socket.close(1000)
    expect(await first.ended).toEqual({ message: 'the stream was ended by the cluster', inOrder: true })
    await once(first.stdout.resume(), 'end')

    const second = await attach.attach(target, never)
    server.sessions[1]?.raw.destroy()
    const end = await second.ended
    expect(end.inOrder).toBeUndefined()
    expect(end.message).toContain('no connection')
    second.stdin.write('lost')
    await eventually('its input is gone', () => second.stdin.destroyed)
  })

  it('throws what the server says when it refuses', async () => {
    const body = { kind: 'Status', code: 404, reason: 'NotFound', message: 'pods "demo-0" not found' }
    await using server = await startPodServer({ refuse: () => ({ status: 404, body }) })
    await expect(createPodAttach(server.connection()).attach(target, never)).rejects.toMatchObject({ status: 404, reason: 'NotFound' })
  })

  it('listens to the signal only until it is open', async () => {
    await using server = await startPodServer({ onSession: echo })
    const stop = new AbortController()
    const connection = await createPodAttach(server.connection()).attach(target, stop.signal)
    stop.abort()
    connection.stdin.write('still here')
    const [chunk] = await once(connection.stdout, 'data')
    expect(String(chunk)).toBe('still here')
    await connection.close()

    await using silent = await startPodServer({ silent: true })
    const opening = createPodAttach(silent.connection()).attach(target, AbortSignal.timeout(50))
    await expect(opening).rejects.toMatchObject({ name: 'TimeoutError' })
    await expect(createPodAttach(silent.connection()).attach(target, AbortSignal.abort(new Error('no')))).rejects.toThrow('no')
  })

  it('applies backpressure to a server whose output is not read, and to a writer whose input is not read', async () => {
    await using server = await startPodServer()
    const connection = await createPodAttach(server.connection()).attach(target, never)
    const [session] = server.sessions
    if (session === undefined) throw new Error('no session')
    let sent = 0
    const total = 32 << 20
    const flood = () => {
      for (; sent < total && session.socket.bufferedAmount < 1 << 20; sent += 32 << 10) session.send(1, Buffer.alloc(32 << 10))
      if (sent < total) setTimeout(flood, 2)
    }
    flood()
    await settled(() => sent)
    expect(sent).toBeLessThan(total / 2)
    let read = 0
    connection.stdout.on('data', ({ length }: Buffer) => {
      read += length
    })
    await eventually('all is read', () => read === total)

    session.socket.pause()
    let written = 0
    const write = () => {
      while (written < total) {
        written += 32 << 10
        if (!connection.stdin.write(Buffer.alloc(32 << 10))) {
          connection.stdin.once('drain', write)
          return
        }
      }
    }
    write()
    await settled(() => written)
    expect(written).toBeLessThan(total / 2)
    session.socket.resume()
    await eventually('all is written', () => written === total)
    await connection.close()
  })
})

async function settled(value: () => number): Promise<void> {
  for (let before = -1; before !== value(); await sleep(150)) before = value()
}
