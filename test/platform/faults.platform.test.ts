import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { configMaps, type KubeClient, type Pod, pods } from '@thv/kube'
import { isAlive } from '@thv/programs/process-identity'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask } from '../e2e/stories/clients.ts'
import { SERVER } from '../e2e/stories/world.ts'
import { clientOf, ensureNamespace, eventually, fixtureFolder, worldOf } from './fixture-platform.ts'
import { allGone, processesOf } from './folder-processes.ts'
import { type DataFolder, dataFolder, type PlatformProcess } from './platform-process.ts'
import { commandsWith } from './process-list.ts'
import { kubectl, kubectlMissing, thv } from './thv-command.ts'

/* Faults around a running platform: other platforms, ports, and programs that behave badly. */

const NAMESPACE = 'faults'
const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
}

let folder: DataFolder
let platform: PlatformProcess
let client: KubeClient
beforeAll(async () => {
  folder = await fixtureFolder()
  platform = await folder.up('--bare')
  client = await clientOf(platform)
  await ensureNamespace(client, NAMESPACE)
})
afterAll(async () => {
  const left = processesOf(platform)
  await client?.close()
  expect(await platform.stop()).toBe(0)
  await allGone(left)
  await folder[Symbol.asyncDispose]()
})

const at = (name: string) => ({ namespace: NAMESPACE, name })
const until = (name: string, what: string, check: (pod: Pod) => boolean) =>
  eventually(`pod ${name} ${what}`, async () => {
    const pod = await client.get(pods, at(name))
    if (check(pod)) return pod
    throw new Error(JSON.stringify(pod.status))
  })
const isReady = ({ status }: Pod) => status?.containerStatuses?.every(({ ready }) => ready) ?? false

describe('a second platform', () => {
  test('is refused on the same folder, and the first is none the worse', async () => {
    const note = join(folder.path, 'platform.json')
    const files = async () => await Promise.all([note, platform.kubeconfigPath].map((path) => readFile(path, 'utf8')))
    const before = await files()
    await expect(folder.up('--bare')).rejects.toThrow(
      new RegExp(`ended with 1:\\nthv: a platform is already running in \\S+ \\(process ${platform.pid}\\).*--data-dir`),
    )
    // Not even where the note is lost: then the lock of the data tells.
    await rename(note, `${note}.away`)
    await expect(folder.up('--bare')).rejects.toThrow(/ended with 1:\nthv: .*(?:in use|already|another)/)
    await rename(`${note}.away`, note)
    expect(await files()).toEqual(before)
    await client.create(configMaps, { metadata: at('unharmed') })
    await client.create(pods, { metadata: at('unharmed'), spec: shell('exec sleep 600') })
    await until('unharmed', 'is ready', isReady)
    await client.delete(pods, at('unharmed'), { gracePeriodSeconds: 0 })
  })

  test('is refused a port that is taken', async () => {
    await using other = await dataFolder()
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as { port: number }
    await expect(other.up('--bare', '--port', String(port))).rejects.toThrow(
      new RegExp(`ended with 1:\\nthv: port ${port} is in use; choose another with --port`),
    )
    taken.close()
  })
})

describe('a server', () => {
  test('that crashes is seen to, its proxy says so to clients, and all is well when it is mended', async () => {
    await using world = await worldOf(platform, NAMESPACE)
    await world.create(SERVER, 'broken', { image: world.images.fixture, transport: 'streamable-http', args: ['--no-such-flag'] })
    await world.hasReason(SERVER, 'broken', { condition: 'Ready', reason: 'CrashLoopBackOff' })
    // Now and then it is tried again: between the waits it is something else for a moment.
    const told = (what: string, ask: () => Promise<string>, line: RegExp) =>
      eventually(`${what} tells ${line}`, async () => line.test(await ask()), 180_000)
    await told('thv', () => thv(platform, 'get', 'pods', '-n', NAMESPACE), /^broken-0 .*CrashLoopBackOff/m)
    await told('thv', () => thv(platform, 'get', 'mcpservers', '-n', NAMESPACE), /^broken .*Failed/m)
    if (kubectlMissing() === undefined)
      await told('kubectl', () => kubectl(platform, 'get', 'pods', '-n', NAMESPACE), /^broken-0 +0\/1 +CrashLoopBackOff/m)

    const proxy = await eventually('the proxy runs', async () => (await world.proxyPods('broken'))[0]?.status?.podIP)
    const answer = await eventually('the proxy answers', () => initialize(`http://${proxy}:8080/mcp`))
    expect(answer.status).toBeGreaterThanOrEqual(500)
    expect(JSON.parse(answer.text)).toMatchObject({ jsonrpc: '2.0', error: { message: expect.any(String) } })

    await world.edit(SERVER, 'broken', { args: [] })
    const { url } = await world.reaches(SERVER, 'broken', 'Running')
    const mended = await ask(url ?? '', 'echo', { message: 'mended' })
    expect(mended.structuredContent).toEqual({ arguments: { message: 'mended' } })
    await client.delete(SERVER, at('broken'))
  })

  test('that ignores SIGTERM is gone after its grace', async () => {
    const time = uniqueTime()
    await client.create(pods, {
      metadata: at('deaf'),
      spec: { terminationGracePeriodSeconds: 2, ...shell(`trap '' TERM; while true; do sleep ${time}; done`) },
    })
    await until('deaf', 'is ready', isReady)
    // A shell is a process before it is deaf; what it starts says that it is.
    await eventually('it does not hear', () => commandsWith(time).some(({ command }) => command === `sleep ${time}`))
    const running = processesOf(platform).filter(({ pid }) => commandsWith(time).some((each) => each.pid === pid))
    expect(running.length).toBeGreaterThanOrEqual(2)
    const asked = performance.now()
    await client.delete(pods, at('deaf'))
    await eventually('all have ended', () => !running.some(isAlive))
    // It is not cut short.
    expect(performance.now() - asked).toBeGreaterThanOrEqual(2_000)
    await eventually('the pod is gone', async () => (await client.tryGet(pods, at('deaf'))) === undefined)
    await allGone(running)
  })

  test('that listens on all addresses past the guard is ended for it', async () => {
    const own = ownAddress()
    // The system chooses the port: one that is free now may be somebody's by then.
    const program = `require('net').createServer().listen(0, '0.0.0.0')`
    // Without its environment no guard is loaded.
    const container = { name: 'main', image: 'exec:///usr/bin/env', args: ['-i', process.execPath, '-e', program] }
    await client.create(pods, { metadata: at('open'), spec: { containers: [container] } })
    const pod = await until('open', 'is down', ({ status }) => status?.containerStatuses?.[0]?.state?.waiting?.reason === 'UnsafeBind')
    expect(pod.status).toMatchObject({ reason: 'UnsafeBind', message: expect.stringMatching(/0\.0\.0\.0:\d+/) })
    const port = Number(/0\.0\.0\.0:(\d+)/.exec(String(pod.status?.message))?.[1])
    for (const host of own) expect(await canConnect(host, port)).toBe(false)
    // A start would open it again for a moment: there is none.
    expect(pod.status?.containerStatuses?.[0]?.restartCount).toBe(0)
    expect(await thv(platform, 'get', 'pods', '-n', NAMESPACE)).toMatch(/open .*UnsafeBind/)
    await client.delete(pods, at('open'), { gracePeriodSeconds: 0 })
  })

  test('that listens on another port than its mcpPort reports the right port, and then serves though it accepts only loopback names', async () => {
    await using world = await worldOf(platform, NAMESPACE)
    const args = ['--host', '127.0.0.1', '--port', '18017']
    await world.create(SERVER, 'elsewhere', { image: world.images.fixture, transport: 'streamable-http', mcpPort: 18000, args })
    const explained = /Nothing listens on port 18000 .*set spec\.mcpPort to 18017\./
    const told = (what: string, ask: () => Promise<string>) =>
      eventually(`${what} names the port`, async () => explained.test(await ask()), 180_000)
    await told('thv describe', () => thv(platform, 'describe', 'mcpserver', 'elsewhere', '-n', NAMESPACE))
    expect(await thv(platform, 'get', 'mcpservers', '-n', NAMESPACE)).toMatch(/^elsewhere .*BackendPortClosed/m)
    await told('thv status', () => thv(platform, 'status'))
    await world.edit(SERVER, 'elsewhere', { mcpPort: 18017 })
    const { url } = await world.reaches(SERVER, 'elsewhere', 'Running')
    expect((await ask(url ?? '', 'echo', { message: 'hello' })).structuredContent).toEqual({ arguments: { message: 'hello' } })
    await client.delete(SERVER, at('elsewhere'))
  })

  test('finds and leaves nothing outside of its own folder, wherever its paths lead', async () => {
    const outside = await mkdtemp(join(tmpdir(), 'thv-outside-'))
    const up = '../'.repeat(20)
    await client.create(configMaps, { metadata: at('files'), data: { evil: 'evil' } })
    const climbing = {
      name: 'main',
      image: 'exec:///bin/sh',
      args: ['-c', 'pwd; echo evil > here; exec sleep 600'],
      workingDir: `/${up}${outside}/work`,
      volumeMounts: [
        { name: 'files', mountPath: `/${up}${outside}/mounted` },
        { name: 'files', mountPath: `/${up}${outside}/one`, subPath: 'evil' },
      ],
    }
    await client.create(pods, {
      metadata: at('climbing'),
      spec: { containers: [climbing], volumes: [{ name: 'files', configMap: { name: 'files' } }] },
    })
    await until('climbing', 'is ready', isReady)
    const { uid = '' } = (await client.get(pods, at('climbing'))).metadata
    const said = () => readFileSync(join(folder.path, 'node/logs', uid, 'main/0-0.log'), 'utf8')
    await eventually('it says where it is', () => existsSync(join(folder.path, 'node/logs', uid, 'main/0-0.log')) && said().includes('/'))
    expect(said()).toContain(join(folder.path, 'node/pods', uid, 'root/main'))
    expect(await readdir(outside)).toEqual([])
    await client.delete(pods, at('climbing'), { gracePeriodSeconds: 0 })
    await rm(outside, { recursive: true })
  })
})

/** A program that runs for as long as its script does. */
function shell(script: string) {
  return { containers: [{ name: 'main', image: 'exec:///bin/sh', args: ['-c', script] }] }
}

/** Told from all other programs of this machine by how long it sleeps. */
function uniqueTime(): string {
  return String(2_000_000 + process.pid)
}

async function initialize(url: string): Promise<{ status: number; text: string }> {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(INITIALIZE), signal: AbortSignal.timeout(60_000) })
  return { status: response.status, text: await response.text() }
}

function ownAddress(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  return ['127.0.0.1', ...all.filter(({ family, internal }) => family === 'IPv4' && !internal).map(({ address }) => address)]
}

function canConnect(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 30_000 })
    const end = (connected: boolean) => {
      socket.destroy()
      resolve(connected)
    }
    socket
      .on('connect', () => end(true))
      .on('error', () => end(false))
      .on('timeout', () => end(false))
  })
}
