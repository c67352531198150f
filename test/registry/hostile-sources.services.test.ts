import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { startBackend } from '@thv/http/testing/backend'
import { expect, onTestFinished, test } from 'vitest'
import { documentOf, eventually, registryFile, registryWorld, type Server } from './registry-world.ts'
import { startTraffic } from './traffic.ts'

const MIB = 1024 * 1024
const LARGE_MIB = 200
const LARGE_SERVERS = 10_000

test('sources that are up to no good, or just very large, keep neither the good ones from being fresh nor anybody from reading', async () => {
  const origin = await startOrigin()
  const world = registryWorld()
  const path = (name: string) => join(world.folder, name)
  writeLargeRegistry(path('large.json'))
  writeHoles(path('too-large.json'), 300 * MIB)
  writeText(path('deep.json'), `{"servers":${'['.repeat(2_000_000)}`)
  writeText(
    path('deep-entry.json'),
    `[${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)},${JSON.stringify(documentOf('io.example/beside-deep'))}]`,
  )
  const hostile: Record<string, { source: object; message: RegExp }> = {
    'too-large': { source: { file: { path: path('too-large.json') } }, message: /large|bytes/ },
    deep: { source: { file: { path: path('deep.json') } }, message: /deep|nest|JSON/ },
    'to-metadata': { source: { file: { url: `${origin.url}/to-metadata` } }, message: /link-local/ },
    'to-file': { source: { file: { url: `${origin.url}/to-file` } }, message: /scheme file/ },
    'git-to-metadata': { source: { git: { repository: `${origin.url}/to-metadata.git` } }, message: /link-local/ },
    'git-to-file': { source: { git: { repository: `${origin.url}/to-file.git` } }, message: /scheme file/ },
    looping: { source: { api: { endpoint: `${origin.url}/looping` } }, message: /cursor/ },
    endless: { source: { file: { url: `${origin.url}/endless` } }, message: /bytes/ },
    'api-hangs': { source: { api: { endpoint: `${origin.url}/hanging`, timeout: '500ms' } }, message: /within/ },
    bomb: { source: { file: { url: `${origin.url}/bomb` } }, message: /bytes/ },
  }
  const lazy = { syncPolicy: { interval: '1h' } }
  const sources = [
    { name: 'good', file: { url: `${origin.url}/good` }, syncPolicy: { interval: '1s' } },
    ...Object.entries(hostile).map(([name, { source }]) => ({ name, ...source, ...lazy })),
    { name: 'git-hangs', git: { repository: `${origin.url}/hanging.git` }, ...lazy },
    { name: 'deep-entry', file: { path: path('deep-entry.json') }, ...lazy },
    { name: 'large', file: { path: path('large.json') }, ...lazy },
  ]
  const server = await world.serve(
    world.config({
      sources,
      registries: [
        { name: 'all', sources: sources.map(({ name }) => name) },
        { name: 'few', sources: ['good', 'deep-entry'] },
      ],
      sync: { retryInterval: '1h' },
    }),
  )
  await becomesFresh(server, 0)
  await eventually('git hangs', () => origin.hanging > 0)
  expect((await server.syncStatus('git-hangs')).phase).toBe('syncing')
  const traffic = startTraffic(server.url, ['/registry/few/v0.1/servers', '/registry/all/v0.1/servers?limit=5'])

  for (const [name, { message }] of Object.entries(hostile)) {
    const status = await eventually(`${name} is refused`, async () => {
      const found = await server.syncStatus(name)
      return found.phase === 'failed' && found
    })
    expect([name, status]).toMatchObject([name, { message: expect.stringMatching(message), serverCount: 0 }])
  }
  await becomesFresh(server, origin.served)
  expect(origin.metadataAsked).toBe(0)

  const large = await eventually('the large one is synced', async () => {
    const status = await server.syncStatus('large')
    return status.phase === 'complete' && status
  })
  expect(large.serverCount).toBe(LARGE_SERVERS)
  const one = await eventually('it is served', async () => {
    const answer = await server.get('/registry/all/v0.1/servers/io.example%2Flarge-9999/versions/latest')
    return answer.status === 200 && answer
  })
  expect(one.json.server['x-filler']).toHaveLength(fillerBytes)
  expect(await server.syncStatus('deep-entry')).toMatchObject({ phase: 'complete', serverCount: 1 })
  await becomesFresh(server, origin.served)
  const peak = peakMiB(server)
  console.log(`registry with a source of ${LARGE_MIB} MiB: ${peak} MiB at most`)
  // Several times the file, since two that are as large as allowed come at the same time; but not as much as was offered.
  expect(peak).toBeLessThan(10 * LARGE_MIB)
  expect(await traffic.stop()).toEqual([])
  expect(await server.stop()).toBe(0)
})

/** Something newer than what had been fetched so far comes to be served. */
async function becomesFresh(server: Server, fetched: number): Promise<void> {
  await eventually('the good one is fresh', async () => {
    const { status, json } = await server.get('/registry/few/v0.1/servers/io.example%2Fgood/versions/latest')
    return status === 200 && Number(json.server.version.split('.').at(-1)) > fetched
  })
}

function peakMiB(server: Server): number {
  const status = readFileSync(`/proc/${server.child.pid}/status`, 'utf8')
  return Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024)
}

const fillerBytes = Math.floor((LARGE_MIB * MIB) / LARGE_SERVERS) - 250

function writeLargeRegistry(path: string): void {
  const file = openSync(path, 'w')
  const filler = 'x'.repeat(fillerBytes)
  writeSync(file, '{"servers":[')
  for (let n = 0; n < LARGE_SERVERS; n++) {
    const server = documentOf(`io.example/large-${n}`, '1.0.0', { 'x-filler': filler })
    writeSync(file, `${n === 0 ? '' : ','}${JSON.stringify({ server })}`)
  }
  writeSync(file, ']}')
  closeSync(file)
}

/** Takes no room on the disk. */
function writeHoles(path: string, bytes: number): void {
  const file = openSync(path, 'w')
  ftruncateSync(file, bytes)
  closeSync(file)
}

function writeText(path: string, text: string): void {
  const file = openSync(path, 'w')
  writeSync(file, text)
  closeSync(file)
}

async function startOrigin() {
  let served = 0
  let metadataAsked = 0
  let hanging = 0
  const chunk = Buffer.alloc(MIB, 0x20)
  const backend = await startBackend(async ({ url }, response) => {
    const { pathname } = new URL(url, 'http://x')
    if (pathname.startsWith('/latest')) metadataAsked++
    if (pathname.startsWith('/hanging.git')) hanging++
    if (pathname.startsWith('/hanging')) return
    const json = { 'content-type': 'application/json' }
    if (pathname.startsWith('/to-metadata')) {
      response.writeHead(302, { location: `http://169.254.169.254/latest${url.slice('/to-metadata.git'.length)}` }).end()
    } else if (pathname.startsWith('/to-file')) response.writeHead(302, { location: 'file:///etc/passwd' }).end()
    else if (pathname.startsWith('/looping')) {
      const page = { servers: [{ server: documentOf('io.example/looping') }], metadata: { count: 1, nextCursor: 'again' } }
      response.writeHead(200, json).end(JSON.stringify(page))
    } else if (pathname === '/endless') {
      response.writeHead(200, json)
      Readable.from(endless(chunk)).pipe(response)
    } else if (pathname === '/bomb') response.writeHead(200, { ...json, 'content-encoding': 'gzip' }).end(await bomb())
    else response.writeHead(200, json).end(registryFile([documentOf('io.example/good', `1.0.${++served}`)]))
  })
  onTestFinished(() => backend[Symbol.asyncDispose]())
  return {
    url: backend.url,
    get served() {
      return served
    },
    get hanging() {
      return hanging
    },
    get metadataAsked() {
      return metadataAsked
    },
  }
}

function* endless(chunk: Buffer): Generator<Buffer> {
  for (;;) yield chunk
}

/** Some 300 KB that unpack to 300 MB. */
async function bomb(): Promise<Buffer> {
  const { createGzip } = await import('node:zlib')
  const packer = createGzip({ level: 1 })
  const chunks: Buffer[] = []
  packer.on('data', (chunk: Buffer) => chunks.push(chunk))
  const done = new Promise((resolve) => packer.once('end', resolve))
  const space = Buffer.alloc(MIB, 0x20)
  for (let n = 0; n < 300; n++) if (!packer.write(space)) await new Promise((resolve) => packer.once('drain', resolve))
  packer.end()
  await done
  return Buffer.concat(chunks)
}
