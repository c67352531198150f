import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { connect } from 'node:tls'
import { configMaps, type KubeClient } from '@thv/kube'
import { positiveCount } from '@thv/testkit/run/run-environment'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { accessTo, clientOf, ensureNamespace, eventually, type PlatformAccess } from './fixture-platform.ts'
import { type DataFolder, dataFolder, type PlatformProcess } from './platform-process.ts'

/* Many who watch, and some who do not read what they watch. SOAK_WATCHERS=1000 (`npm run soak`) makes more of them. */

const WATCHERS = positiveCount('SOAK_WATCHERS', 100)
const WRITES = 50
const NAMESPACE = 'watched'
const MAPS = `/api/v1/namespaces/${NAMESPACE}/configmaps`
/** Together more than what sockets and the history of the store hold. */
const UNREAD = { writes: 100, bytes: 400_000, watchers: 20 }
/** Were everything kept for each of them, it would be 800 MB. */
const SLACK_BYTES = 400 << 20

let folder: DataFolder
let platform: PlatformProcess
let client: KubeClient
let access: PlatformAccess
beforeAll(async () => {
  folder = await dataFolder({ nodeArgs: ['--import', new URL('../../scripts/testing/print-loaded.mjs', import.meta.url).href] })
  platform = await folder.up('--bare')
  client = await clientOf(platform)
  access = await accessTo(platform)
  await ensureNamespace(client, NAMESPACE)
})
afterAll(async () => {
  await client?.close()
  await folder?.[Symbol.asyncDispose]()
})

const revision = async () => (await client.list(configMaps, { namespace: NAMESPACE })).metadata.resourceVersion ?? ''

describe(`${WATCHERS} watchers`, () => {
  test('all get all events, in order', async () => {
    const before = residentBytes(platform.pid)
    const path = `${MAPS}?watch=true&resourceVersion=${await revision()}`
    const watchers: Watch[] = []
    // Not all handshakes at once: they are not what this is about.
    for (let made = 0; made < WATCHERS; made += 50)
      watchers.push(...(await Promise.all(Array.from({ length: Math.min(50, WATCHERS - made) }, () => openWatch(path)))))
    const opened = residentBytes(platform.pid)
    const started = performance.now()
    for (let index = 0; index < WRITES; index++) await client.create(configMaps, { metadata: { namespace: NAMESPACE, name: `m${index}` } })
    const names = Array.from({ length: WRITES }, (_, index) => `m${index}`)
    await eventually('everybody has seen everything', () => watchers.every(({ seen }) => seen.length >= WRITES), 120_000)
    const ms = Math.round(performance.now() - started)
    const after = residentBytes(platform.pid)
    for (const { seen, end } of watchers) {
      expect(seen).toEqual(names)
      end()
    }
    const [idle, open, busy] = [before, opened, after].map((bytes) => `${(bytes / (1 << 20)).toFixed(0)} MiB`)
    console.log(
      `${WATCHERS} watchers, ${WRITES} writes: all seen after ${ms} ms; memory ${idle} before, ${open} with watchers, ${busy} after`,
    )
  })
})

describe('watchers that never read', () => {
  test('cost no more than what is kept anyway, lose their connection, and disturb no other client', async () => {
    // The cost of the writes alone; the engine decides when garbage is collected.
    const alone = await writeLarge()
    const path = `${MAPS}?watch=true&resourceVersion=${await revision()}`
    await using reader = await openWatch(path)
    const silent = await Promise.all(Array.from({ length: UNREAD.watchers }, () => openUnread(path)))
    const watched = await writeLarge()
    const [first, second] = [alone, watched].map((bytes) => `${(bytes / (1 << 20)).toFixed(0)} MiB`)
    console.log(`memory while ${UNREAD.writes} large objects are written: ${first}, with ${UNREAD.watchers} who never read: ${second}`)
    expect(watched - alone).toBeLessThan(SLACK_BYTES)
    await eventually('the reader has seen all', () => reader.seen.length >= UNREAD.writes, 120_000)
    for (const { isClosed } of silent) await eventually('the connection is closed', isClosed)
    expect((await client.get(configMaps, { namespace: NAMESPACE, name: 'large' })).data?.['text']).toMatch(/^100 /)
  })
})

test('no source map was read for all the connections that ended, from the start of the platform to its end', async () => {
  await client.close()
  expect(await platform.stop()).toBe(0)
  const lines = platform.output().split('\n')
  expect(lines).toContainEqual(expect.stringMatching(/^loaded file:.+apps-cli-src-main/))
  expect(lines.filter((line) => /^read .+\.map$/.test(line))).toEqual([])
})

/** The most memory that was seen meanwhile. */
async function writeLarge(): Promise<number> {
  let most = 0
  await client.apply(configMaps, { metadata: { namespace: NAMESPACE, name: 'large' } }, { fieldManager: 'test' })
  for (let index = 1; index <= UNREAD.writes; index++) {
    const data = { text: `${index} `.padEnd(UNREAD.bytes, 'x') }
    await client.patch(configMaps, { namespace: NAMESPACE, name: 'large' }, { kind: 'merge', body: { data } })
    most = Math.max(most, residentBytes(platform.pid))
  }
  return most
}

interface Watch extends AsyncDisposable {
  /** Names of the objects. */
  readonly seen: readonly string[]
  end(): void
}

async function openWatch(path: string): Promise<Watch> {
  const headers = { authorization: `Bearer ${access.adminToken}` }
  const call: ClientRequest = request(`${access.url}${path}`, { ca: access.caPem, headers, agent: false })
  call.on('error', () => undefined) // `end` breaks it off
  call.end()
  const [response] = (await once(call, 'response')) as [IncomingMessage]
  const seen: string[] = []
  let rest = ''
  response.on('error', () => undefined)
  response.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) seen.push((JSON.parse(line) as { object: { metadata: { name: string } } }).object.metadata.name)
  })
  const end = () => void call.destroy()
  return { seen, end, [Symbol.asyncDispose]: async () => end() }
}

/** Asks, waits for the beginning of the answer, and never reads again. */
async function openUnread(path: string): Promise<{ isClosed: () => boolean }> {
  const { hostname, port } = new URL(access.url)
  const socket = connect({ host: hostname, port: Number(port), ca: access.caPem })
  let closed = false
  socket
    .on('error', () => undefined)
    .on('close', () => {
      closed = true
    })
  await once(socket, 'secureConnect')
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${access.adminToken}\r\n\r\n`)
  await once(socket, 'data')
  socket.pause()
  // A broken connection shows only on a write or read.
  const isClosed = () => {
    if (!closed) socket.write('\r\n')
    return closed
  }
  return { isClosed }
}

function residentBytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1_024
}
