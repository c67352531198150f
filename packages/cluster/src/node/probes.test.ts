import { type AddressInfo, createServer } from 'node:net'
import type { Pod } from '@thv/kube/objects/builtin-kinds'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { runHandler } from './probes/run-handler.ts'
import { condition, eventually, isReady, type NodeFixture, script, startFixture } from './testing/node-fixture.ts'

let fixture: NodeFixture
beforeEach(async () => {
  fixture = await startFixture()
})
afterEach(async () => {
  await fixture[Symbol.asyncDispose]()
  expect(fixture.errors).toEqual([])
})

/** Answers with the status that the last GET /set/STATUS named, first 503; listens a moment after its start. */
const SERVER = `
  let status = 503
  const server = require('node:http').createServer((request, response) => {
    const set = /^\\/set\\/(\\d+)/.exec(request.url)
    if (set) status = Number(set[1])
    response.writeHead(set ? 200 : request.headers['x-probe'] === 'yes' ? status : 400).end('x'.repeat(100000))
  })
  setTimeout(() => server.listen(4000, process.env.THV_TEST_ADDRESS), 100)
`
const server = (more: object) => script('node', SERVER, { ports: [{ name: 'web', containerPort: 4000 }], ...more })
const httpGet = { path: '/health', port: 'web', httpHeaders: [{ name: 'X-Probe', value: 'yes' }] }
const set = (pod: Pod, status: number) =>
  eventually(async () => (await fetch(`http://${pod.status?.podIP}:4000/set/${status}`).catch(() => undefined))?.ok === true)
const first = (pod: Pod) => pod.status?.containerStatuses?.[0]
/** Events are written behind the status. */
const isTold = (name: string, said: RegExp) => eventually(async () => (await fixture.events(name)).some((event) => said.test(event)))
const withAddress = (name: string) => fixture.until(name, (pod) => first(pod)?.state?.running !== undefined)

describe('probes', () => {
  it('make a pod ready and unready as they answer', async () => {
    await fixture.create('ready', server({ readinessProbe: { httpGet, periodSeconds: 1, failureThreshold: 1 } }))
    const pod = await withAddress('ready')
    expect([condition(pod, 'Ready'), first(pod)?.ready]).toEqual(['False', false])
    await set(pod, 204)
    await fixture.until('ready', isReady)
    await set(pod, 500)
    const unready = await fixture.until('ready', (it) => !isReady(it))
    expect([unready.status?.phase, first(unready)?.restartCount]).toEqual(['Running', 0])
    expect(await isTold('ready', /^Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 500$/)).toBe(true)
  })

  it('start a container again that does not live', async () => {
    await fixture.create('live', server({ livenessProbe: { httpGet, periodSeconds: 1, failureThreshold: 1, initialDelaySeconds: 1 } }))
    const pod = await fixture.until('live', (it) => (first(it)?.restartCount ?? 0) >= 1)
    expect(first(pod)?.lastState?.terminated).toMatchObject({ exitCode: 143, reason: 'Error' })
    expect(await isTold('live', /^Killing: Container main failed liveness probe, will be restarted$/)).toBe(true)
  })

  it('let a container start in its own time', async () => {
    const tcp = { tcpSocket: { port: 4000 } }
    await fixture.create('start', server({ startupProbe: { ...tcp, periodSeconds: 1, failureThreshold: 30 }, livenessProbe: tcp }))
    const pod = await fixture.until('start', isReady)
    expect(first(pod)).toMatchObject({ started: true, restartCount: 0 })
    await fixture.create('never', server({ startupProbe: { tcpSocket: { port: 4001 }, periodSeconds: 1, failureThreshold: 1 } }))
    const never = await fixture.until('never', (it) => (first(it)?.restartCount ?? 0) >= 1)
    expect(condition(never, 'Ready')).toBe('False')
  })

  it('are not held up by a server that changes the protocol', async () => {
    const odd = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'))
    })
    await new Promise<void>((resolve) => odd.listen(0, '127.0.0.1', resolve))
    try {
      const { port } = odd.address() as AddressInfo
      const env = { container: { name: 'main' }, address: '127.0.0.1', exec: () => Promise.reject(new Error('unused')) }
      expect(await runHandler({ httpGet: { port } }, env, AbortSignal.timeout(5_000))).toMatchObject({ ok: false })
    } finally {
      odd.close()
    }
  })

  it('run commands in the surroundings of the container, with a limit', async () => {
    const exec = { command: ['/bin/sh', '-c', 'test "$A" = 1 && test -e made || { touch asked; echo not yet; exit 1; }'] }
    const more = { env: [{ name: 'A', value: '1' }], readinessProbe: { exec, periodSeconds: 1 } }
    await fixture.create('exec', script('sh', 'until test -e asked; do sleep 0.1; done; touch made; while true; do sleep 1; done', more))
    await fixture.until('exec', isReady)
    expect(await isTold('exec', /^Unhealthy: Readiness probe failed: not yet$/)).toBe(true)
    await fixture.create('grpc', script('sh', 'sleep 600', { readinessProbe: { grpc: { port: 1 }, periodSeconds: 1 } }))
    const slow = { exec: { command: ['/bin/sleep', '60'] }, periodSeconds: 1, timeoutSeconds: 1 }
    await fixture.create('slow', script('sh', 'while true; do sleep 1; done', { readinessProbe: slow }))
    expect(await isTold('slow', /^Unhealthy: Readiness probe failed: the time limit was exceeded$/)).toBe(true)
    expect(await isTold('grpc', /^Unhealthy: .*cannot run a grpc handler/)).toBe(true)
  })
})
