import { request as send } from 'node:https'
import { createKubeClient } from '@thv/kube/client/client'
import { bearerToken, type Connection } from '@thv/kube/client/connection'
import { podLogs } from '@thv/kube/streams/pod-logs'
import { openPodStream, type PodStreamOptions } from '@thv/kube/streams/pod-stream'
import { type Answer, request } from '@thv/testkit/cluster/http-request'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import WebSocket from 'ws'
import { type EmbeddedApiServer, startApiServer } from '../../../api-server.ts'
import { badRequest } from '../../../objects/status-error.ts'
import { type ChildStreams, childStreams } from './testing/child-streams.ts'

const PODS = '/api/v1/namespaces/default/pods'
const pod = (name: string, containers: readonly string[], nodeName = 'here') => ({
  metadata: { name },
  spec: {
    ...(nodeName === '' ? {} : { nodeName }),
    automountServiceAccountToken: false,
    containers: containers.map((container) => ({ name: container, image: 'x' })),
  },
})

describe('logs and attach', () => {
  const errors: unknown[] = []
  const started: ChildStreams[] = []
  let server: EmbeddedApiServer
  let connection: Connection

  beforeEach(async () => {
    server = await startApiServer({ onError: (error) => errors.push(error) })
    connection = { server: server.url, tls: { ca: server.caPem }, auth: bearerToken(server.adminToken) }
    await call('/api/v1/namespaces/default/serviceaccounts', { method: 'POST', body: { metadata: { name: 'default' } } })
    for (const one of [pod('one', ['c']), pod('two', ['c', 'd']), pod('waiting', ['c'], '')])
      expect((await call(PODS, { method: 'POST', body: one })).status).toBe(201)
  })
  afterEach(async () => {
    for (const { child } of started.splice(0)) child.kill('SIGKILL')
    await server.close()
    expect(errors.splice(0)).toEqual([])
  })

  function call(path: string, options: { method?: string; body?: unknown; headers?: Record<string, string> } = {}): Promise<Answer> {
    const authorization = `Bearer ${server.adminToken}`
    return request(`${server.url}${path}`, { ...options, caPem: server.caPem, headers: { authorization, ...options.headers } })
  }
  const refusal = async (path: string, options = {}) => {
    const answer = await call(path, options)
    return [answer.status, answer.json()['message']]
  }
  function serve(script: string): ChildStreams {
    const streams = childStreams('/bin/sh', ['-c', script])
    started.push(streams)
    server.servePods(streams)
    return streams
  }
  const attach = (options: Partial<PodStreamOptions> = {}) =>
    openPodStream(connection, {
      namespace: 'default',
      pod: 'one',
      container: 'c',
      kind: 'attach',
      stdin: true,
      stdout: true,
      stderr: true,
      ...options,
    })

  it('choose the container as the real server does', async () => {
    serve('sleep 60')
    expect(await refusal(`${PODS}/none/log`)).toEqual([404, 'pods "none" not found'])
    expect(await refusal(`${PODS}/two/log`)).toEqual([400, 'a container name must be specified for pod two, choose one of: [c d]'])
    expect(await refusal(`${PODS}/two/log?container=zz`)).toEqual([400, 'container zz is not valid for pod two'])
    expect(await refusal(`${PODS}/two/attach?stdout=1`)).toEqual([
      400,
      'a container name must be specified for pod two, choose one of: [c d]',
    ])
    expect(await refusal(`${PODS}/waiting/attach?stdout=1`)).toEqual([400, 'pod waiting does not have a host assigned'])
    const nothing = await call(`${PODS}/waiting/log`)
    expect([nothing.status, nothing.text]).toEqual([204, ''])
    expect((await call(`${PODS}/one/log`, { method: 'POST', body: {} })).status).toBe(405)
  })

  it.each([
    ['tailLines=-1', 422, 'PodLogOptions "one" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0'],
    ['tailLines=x', 400, 'strconv.ParseInt: parsing "x": invalid syntax'],
    ['limitBytes=0', 422, 'PodLogOptions "one" is invalid: limitBytes: Invalid value: 0: must be greater than 0'],
    ['sinceSeconds=0', 422, 'PodLogOptions "one" is invalid: sinceSeconds: Invalid value: 0: must be greater than 0'],
    ['sinceTime=abc', 400, 'parsing time "abc" as "2006-01-02T15:04:05Z07:00": cannot parse "abc" as "2006"'],
    [
      'sinceTime=2024-01-01T00:00:00Z&sinceSeconds=3',
      422,
      'PodLogOptions "one" is invalid: []: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified',
    ],
    ['stream=All', 422, 'PodLogOptions "one" is invalid: stream: Forbidden: may not be specified'],
  ])('refuse %s', async (query, status, message) => {
    serve('sleep 60')
    expect(await refusal(`${PODS}/one/log?${query}`)).toEqual([status, message])
  })

  it('say so while there is no node, and that other streams are not there', async () => {
    expect(await refusal(`${PODS}/one/log`)).toEqual([501, expect.stringContaining('while it has no node that runs pods')])
    expect(await attach().catch((error: unknown) => error)).toMatchObject({ status: 501 })
    expect(await refusal(`${PODS}/one/exec?command=x`, { method: 'POST' })).toEqual([501, 'pods/exec is not implemented by this server'])
    expect(await attach({ kind: 'exec', command: ['x'] }).catch((error: unknown) => error)).toMatchObject({ status: 501 })
    expect(await refusal(`${PODS}/one/portforward`, { method: 'POST' })).toEqual([
      501,
      'pods/portforward is not implemented by this server',
    ])
  })

  it('pass what is asked for on to the node', async () => {
    const streams = serve('sleep 60')
    const answer = await call(`${PODS}/two/log?container=d&tailLines=7&limitBytes=9&timestamps=true&sinceTime=2024-02-29T12:00:00%2B01:00`)
    expect([answer.status, answer.text]).toEqual([200, 'one\ntwo\n'])
    expect(streams.asked).toEqual([
      {
        namespace: 'default',
        pod: 'two',
        uid: expect.stringMatching(/^[0-9a-f-]{36}$/),
        container: 'd',
        follow: false,
        previous: false,
        timestamps: true,
        tailLines: 7,
        limitBytes: 9,
        since: Date.parse('2024-02-29T11:00:00Z'),
      },
    ])
    expect(await refusal(`${PODS}/one/log?previous=true`)).toEqual([400, 'previous terminated container "c" in pod "one" not found'])
  })

  it('follow a log until the container ends', async () => {
    serve('read x; echo one; read x; echo two')
    const { child } = started[0] ?? {}
    const client = createKubeClient(connection)
    let text = ''
    child?.stdin?.write('go\n')
    for await (const bytes of podLogs(client, { namespace: 'default', pod: 'one', follow: true })) {
      text += Buffer.from(bytes).toString()
      child?.stdin?.write('go\n')
    }
    await client.close()
    expect(text).toBe('one\ntwo\n')
  })

  it('stop following when the client is gone', async () => {
    const streams = serve('while read x; do echo "$x"; done')
    const stopped = new Promise<void>((resolve) => {
      const { logs } = streams
      server.servePods({
        ...streams,
        logs(target, options) {
          options.signal.addEventListener('abort', () => resolve())
          return logs(target, options)
        },
      })
    })
    const controller = new AbortController()
    await fetchHead(`${server.url}${PODS}/one/log?follow=true`, controller.signal)
    controller.abort()
    await stopped
  })

  function fetchHead(url: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${server.adminToken}` }
      send(url, { ca: server.caPem, headers, agent: false, signal }, () => resolve())
        .on('error', reject)
        .end()
    })
  }

  it('stop for a reader that takes nothing and then goes', async () => {
    serve('yes')
    const controller = new AbortController()
    await fetchHead(`${server.url}${PODS}/one/log?follow=true`, controller.signal)
    await new Promise((resolve) => setTimeout(resolve, 300))
    controller.abort()
    await expect.poll(() => started[0]?.child.stdout?.listenerCount('data')).toBe(0)
  })

  it('attach to all streams of a program', async () => {
    serve('read line; echo "got $line"; echo problem >&2; cat; exit 3')
    const stream = await attach()
    await stream.write('hello\n')
    await stream.write('rest')
    await stream.closeStdin()
    const [stdout, stderr, end] = await Promise.all([textOf(stream.stdout), textOf(stream.stderr), stream.done])
    expect([stdout, stderr]).toEqual(['got hello\nrest', 'problem\n'])
    expect(end).toMatchObject({ status: { status: 'Success' }, error: undefined })
    await expect.poll(() => started[0]?.attached).toBe(0)
  })

  it('lose nothing in either direction when the other side is slow', async () => {
    serve('cat')
    const stream = await attach({ stderr: false })
    const total = 8 << 20
    const part = Buffer.alloc(1 << 20, 'abcdefgh')
    const writing = (async () => {
      for (let sent = 0; sent < total; sent += part.length) await stream.write(part)
      await stream.closeStdin()
    })()
    let got = 0
    for await (const bytes of stream.stdout) {
      got += bytes.length
      if (got % 7 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    }
    await writing
    expect(got).toBe(total)
  })

  it('keep little for a client that does not read', async () => {
    const { child } = serve('yes')
    const stream = await attach({ stdin: false, stderr: false, maxBufferedBytes: 1 << 20 })
    let before = -1
    let written = 0
    // The program stops once everything between it and us is full.
    for (let same = 0; same < 5; ) {
      await new Promise((resolve) => setTimeout(resolve, 100))
      written = child.stdout?.readableLength === undefined ? 0 : (child.stdout as unknown as { bytesRead: number }).bytesRead
      same = written === before ? same + 1 : 0
      before = written
    }
    expect(written).toBeLessThan(32 << 20)
    stream.close()
    await expect.poll(() => started[0]?.attached).toBe(0)
  })

  it('detach when the client goes, and leave the program running', async () => {
    const { child } = serve('while read x; do echo "$x"; done')
    const stream = await attach()
    stream.close()
    await stream.done
    await expect.poll(() => started[0]?.attached).toBe(0)
    expect(child.exitCode).toBeNull()
  })

  it('speak the older protocol too, and refuse others', async () => {
    serve('read x; echo "$x"')
    const frames: Buffer[] = []
    const socket = open('v4.channel.k8s.io')
    const closed = new Promise<number>((resolve) => socket.on('close', resolve))
    socket.on('message', (data: Buffer) => frames.push(data))
    await new Promise((resolve) => socket.on('open', resolve))
    expect(socket.protocol).toBe('v4.channel.k8s.io')
    socket.send(Buffer.concat([Buffer.from([4]), Buffer.from('{"Width":80,"Height":24}')]))
    socket.send(Buffer.concat([Buffer.from([0]), Buffer.from('hi\n')]))
    expect(await closed).toBe(1000)
    expect(frames[0]).toEqual(Buffer.from([1]))
    expect(Buffer.concat(frames.slice(1, -1)).toString()).toBe('\x01hi\n')
    expect(frames.at(-1)?.[0]).toBe(3)
    expect(JSON.parse(frames.at(-1)?.subarray(1).toString() ?? '')).toEqual({ metadata: {}, status: 'Success' })
    const other = open('v1.channel.k8s.io')
    const refused = await new Promise<number | undefined>((resolve) => {
      other.on('unexpected-response', (_request, response) => resolve(response.statusCode))
    })
    expect(refused).toBe(400)
    other.on('error', () => undefined).terminate()
  })

  function open(protocol: string): WebSocket {
    const path = `${PODS}/one/attach?container=c&stdin=1&stdout=1`
    return new WebSocket(`${server.url.replace('https', 'wss')}${path}`, [protocol], {
      ca: server.caPem,
      headers: { authorization: `Bearer ${server.adminToken}` },
    })
  }

  it('refuse what is no WebSocket, a bad token and a bad handshake', async () => {
    const streams = serve('sleep 60')
    const path = `${PODS}/one/attach?container=c&stdout=1`
    expect(await refusal(path)).toEqual([400, 'Upgrade request required'])
    expect(await refusal(path, { method: 'POST', headers: { connection: 'Upgrade', upgrade: 'SPDY/3.1' } })).toEqual([
      501,
      expect.stringContaining('attach is served over WebSockets only'),
    ])
    const upgrade = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-protocol': 'v5.channel.k8s.io' }
    expect((await call(path, { headers: { ...upgrade, authorization: 'Bearer forged-forged-forged' } })).status).toBe(401)
    expect((await call(path, { headers: { ...upgrade, 'sec-websocket-version': '12' } })).status).toBe(400)
    expect((await call(`${PODS}/one/attach?container=c`, { headers: upgrade })).status).toBe(400)
    await expect.poll(() => streams.attached).toBe(0)
    // An unknown upgrade is just a request.
    expect((await call(PODS, { headers: { connection: 'Upgrade', upgrade: 'websocket' } })).status).toBe(200)
    expect((await call(PODS, { headers: { connection: 'Upgrade', upgrade: 'h2c' } })).status).toBe(200)
  })

  it('tell the client when the node refuses or fails', async () => {
    const streams = serve('sleep 60')
    server.servePods({ ...streams, attach: async () => Promise.reject(badRequest('container c is not running')) })
    expect(await attach().catch((error: unknown) => error)).toMatchObject({
      status: 400,
      message: expect.stringContaining('is not running'),
    })
    const failing = (async function* () {
      yield { stream: 'stdout' as const, bytes: Buffer.from('a') }
      throw badRequest('the log is gone')
    })()
    server.servePods({
      ...streams,
      attach: async () => ({ output: failing, write: async () => undefined, endInput: () => undefined, close: () => undefined }),
    })
    const { done } = await attach()
    expect(await done).toMatchObject({ status: { status: 'Failure', message: 'the log is gone' } })
  })
})

async function textOf(chunks: AsyncIterable<Buffer>): Promise<string> {
  let text = ''
  for await (const chunk of chunks) text += chunk.toString()
  return text
}
