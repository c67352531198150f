import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { bearerToken } from '@thv/kube/client/connection'
import type { Pod } from '@thv/kube/objects/builtin-kinds'
import { pods } from '@thv/kube/objects/resource-types'
import { podLogs } from '@thv/kube/streams/pod-logs'
import { openPodStream } from '@thv/kube/streams/pod-stream'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AttachOptions } from '../apiserver/kinds/pod/pod-streams.ts'
import { eventually, isReady, NAMESPACE, type NodeFixture, script, startFixture } from './testing/node-fixture.ts'

let fixture: NodeFixture
beforeEach(async () => {
  fixture = await startFixture({ logLimits: { partBytes: 4_000, parts: 3 } })
})
afterEach(async () => {
  await fixture[Symbol.asyncDispose]()
  expect(fixture.errors).toEqual([])
})

const target = (pod: Pod) => ({ namespace: NAMESPACE, pod: pod.metadata.name, uid: pod.metadata.uid ?? '', container: 'main' })
const attach = (pod: Pod, more: Partial<AttachOptions> = {}) =>
  fixture.node.streams.attach(target(pod), { stdin: true, stdout: true, stderr: false, signal: new AbortController().signal, ...more })
const ready = async (name: string, spec: object): Promise<Pod> => {
  await fixture.create(name, spec)
  return await fixture.until(name, isReady)
}

describe('attach', () => {
  it('passes lines in and out, to everyone who is there', async () => {
    const pod = await ready('cat', script('sh', 'cat', { stdin: true }))
    const [one, two] = [await attach(pod), await attach(pod, { stdin: false })]
    await one.write(Buffer.from('hello\n'))
    for (const { output } of [one, two]) {
      for await (const { stream, bytes } of output) {
        expect([stream, Buffer.from(bytes).toString()]).toEqual(['stdout', 'hello\n'])
        break
      }
    }
    one.endInput() // stdin stays open for the next one
    one.close()
    const three = await attach(pod)
    await three.write(Buffer.from('again\n'))
    for await (const { bytes } of three.output) {
      expect(Buffer.from(bytes).toString()).toBe('again\n')
      break
    }
  })

  it('ends the input of a container with stdinOnce, and the output with the container', async () => {
    const pod = await ready('once', { restartPolicy: 'Never', ...script('sh', 'cat; echo done >&2', { stdin: true, stdinOnce: true }) })
    const attached = await attach(pod, { stderr: true })
    await attached.write(Buffer.from('last'))
    attached.endInput()
    const seen: string[] = []
    for await (const { stream, bytes } of attached.output) seen.push(`${stream}:${Buffer.from(bytes)}`)
    expect(seen.toSorted()).toEqual(['stderr:done\n', 'stdout:last']) // two pipes have no common order
    await fixture.until('once', ({ status }) => status?.phase === 'Succeeded')
    await expect(attach(pod)).rejects.toMatchObject({ init: { code: 404 } })
  })

  it('loses nothing with a slow reader, and lets the program wait for it', async () => {
    const text =
      'process.stdin.once("data", () => process.stdout.write("x".repeat(4 << 20) + "\\n", () => console.error("written"))); setInterval(() => {}, 1000)'
    const pod = await ready('slow', script('node', text, { stdin: true }))
    const attached = await attach(pod)
    await attached.write(Buffer.from('go\n'))
    await delay(300)
    expect(await fixture.logs(pod)).not.toContain('written')
    let size = 0
    for await (const { bytes } of attached.output) {
      size += bytes.length
      if (size % 10 === 0) await delay(1)
      if (size > 4 << 20) break
    }
    expect(size).toBe((4 << 20) + 1)
    expect(await eventually(async () => (await fixture.logs(pod)).includes('written'))).toBe(true)
  })

  it('does not let a reader that never reads keep a pod from going', async () => {
    const pod = await ready('stuck', {
      terminationGracePeriodSeconds: 1,
      ...script('sh', 'cat; while true; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done', { stdin: true, stdinOnce: true }),
    })
    const attached = await attach(pod)
    attached.endInput()
    await fixture.client.delete(pods, { namespace: NAMESPACE, name: 'stuck' })
    await fixture.untilGone('stuck')
    expect(await fixture.client.tryGet(pods, { namespace: NAMESPACE, name: 'stuck' })).toBeUndefined()
    attached.close()
  })
})

describe('by way of the API server', () => {
  it('a program is attached to and its log is read', async () => {
    const { server, client } = fixture
    server.servePods(fixture.node.streams)
    const pod = await ready('wire', script('sh', 'cat', { stdin: true }))
    const connection = { server: server.url, tls: { ca: server.caPem }, auth: bearerToken(server.adminToken) }
    const at = { namespace: NAMESPACE, pod: pod.metadata.name, container: 'main' }
    const stream = await openPodStream(connection, { ...at, kind: 'attach', stdin: true, stdout: true })
    const line = `${JSON.stringify({ jsonrpc: '2.0', text: 'x'.repeat(300_000) })}\n`
    await stream.write(line)
    let back = ''
    for await (const chunk of stream.stdout) {
      back += Buffer.from(chunk).toString()
      if (back.endsWith('\n')) break
    }
    expect(back === line).toBe(true)
    await stream.write('bye\n')
    await eventually(async () => (await fixture.logs(pod)).endsWith('bye\n'))
    const chunks: Uint8Array[] = []
    for await (const chunk of podLogs(client, { ...at, tailLines: 1 })) chunks.push(chunk)
    expect(Buffer.concat(chunks).toString()).toBe('bye\n')
  })
})

describe('logs', () => {
  const LINES = 'i=0; while [ $i -lt 200 ]; do echo "line $i ----------------------------------------"; i=$((i+1)); done; echo err >&2; '

  it('keep the last parts of what was printed', async () => {
    const pod = await ready('parts', script('sh', `${LINES} sleep 600`))
    expect(await eventually(async () => /(?=[\s\S]*line 199 -+\n)[\s\S]*err\n/.test(await fixture.logs(pod)))).toBe(true)
    const text = await fixture.logs(pod)
    expect(text).not.toContain('line 0 ')
    expect(text).toContain('line 150 ')
    const tail = await fixture.logs(pod, 'main', { tailLines: 30 })
    expect(tail.split('\n').length).toBe(31)
    expect(await fixture.logs(pod, 'main', { tailLines: 0 })).toBe('')
    expect(await fixture.logs(pod, 'main', { limitBytes: 7 })).toBe(text.slice(0, 7))
    expect(await fixture.logs(pod, 'main', { since: Date.now() + 60_000 })).toBe('')
    expect(await fixture.logs(pod, 'main', { since: 0, tailLines: 1, timestamps: true })).toMatch(
      /^\d{4}-\d\d-\d\dT[\d:.]{18}Z (err|line 199 -+)\n$/,
    )
  })

  it('are followed across parts to the end of the container', async () => {
    const text =
      'const { createHash } = require("crypto"); const hash = createHash("sha256"); let i = 0; process.stdin.once("data", () => { const timer = setInterval(() => { const line = "line " + i + " " + "-".repeat(300); hash.update(line + "\\n"); console.log(line); if (++i === 60) { clearInterval(timer); console.error(hash.digest("hex")); process.exitCode = 0; process.stdin.destroy() } }, 5) })'
    const pod = await ready('follow', { restartPolicy: 'Never', ...script('node', text, { stdin: true }) })
    const signal = new AbortController().signal
    const stream = await fixture.node.streams.logs(target(pod), { follow: true, previous: false, timestamps: false, signal })
    const attached = await attach(pod, { stdout: false })
    await attached.write(Buffer.from('go'))
    let all = ''
    for await (const chunk of stream) all += Buffer.from(chunk).toString()
    const lines = all.trimEnd().split('\n')
    const hash = createHash('sha256')
    for (const line of lines.filter((it) => it.startsWith('line'))) hash.update(`${line}\n`)
    expect(lines.filter((it) => it.startsWith('line')).length).toBe(60)
    expect(lines).toContain(hash.digest('hex'))
  })

  it('end when their reader leaves', async () => {
    const pod = await ready('quiet', script('sh', 'sleep 600'))
    const stop = new AbortController()
    const stream = await fixture.node.streams.logs(target(pod), { follow: true, previous: false, timestamps: false, signal: stop.signal })
    setTimeout(() => stop.abort(new Error('left')), 50)
    await expect(
      (async () => {
        for await (const _ of stream) expect.unreachable('it printed something')
      })(),
    ).rejects.toThrow('left')
  })

  it('say why there are none', async () => {
    await fixture.create('waiting', { containers: [{ name: 'main', image: 'missing' }] })
    const pod = await fixture.until(
      'waiting',
      ({ status }) => status?.containerStatuses?.[0]?.state?.waiting?.reason === 'ImagePullBackOff',
    )
    await expect(fixture.logs(pod)).rejects.toThrow(
      'container "main" in pod "waiting" is waiting to start: trying and failing to pull image',
    )
    const other = await ready('up', script('sh', 'sleep 600'))
    await expect(fixture.logs(other, 'main', { previous: true })).rejects.toThrow(
      'previous terminated container "main" in pod "up" not found',
    )
  })
})
