import { startBackend } from '@thv/http/testing/backend'
import { expect, onTestFinished, test } from 'vitest'
import { documentOf, eventually, registryFile, registryWorld, type Server, type ServerDocument } from './registry-world.ts'

const SERVERS = 3_000
const CHANGED = SERVERS / 10
const PASSES = 2
const SYNCS_PER_PASS = 2

test('a client of the official API pages through everything exactly once while syncs change a tenth each second', async () => {
  const origin = await startChangingOrigin()
  const world = registryWorld()
  const server = await world.serve(
    world.config({
      sources: [{ name: 'origin', file: { url: origin.url }, syncPolicy: { interval: '1s' } }],
      registries: [{ name: 'all', sources: ['origin'] }],
    }),
  )
  await server.ready()
  for (let pass = 0; pass < PASSES; pass++) {
    const first = await eventually('it serves', () => servedGeneration(server))
    const { keys, generations } = await pageThrough(server, origin)
    expect(new Set(generations).size).toBeGreaterThanOrEqual(SYNCS_PER_PASS)
    expect(keys.length).toBe(new Set(keys).size)
    const seen = new Set(keys)
    const throughout = origin.presentSince(first)
    expect(throughout.length).toBeGreaterThan(SERVERS / 2)
    expect(throughout.filter((key) => !seen.has(key))).toEqual([])
    // Every listed entry existed at some time.
    expect(keys.filter((key) => !origin.ever.has(key))).toEqual([])
  }
  expect(await server.stop()).toBe(0)
})

interface Origin {
  readonly url: string
  readonly generation: number
  readonly ever: ReadonlySet<string>
  presentSince(generation: number): string[]
}

/** Waits some times until the next generation is served, so that each pass has several in it. */
async function pageThrough(server: Server, origin: Origin): Promise<{ keys: string[]; generations: number[] }> {
  const keys: string[] = []
  const generations: number[] = []
  const limit = 20
  const pages = SERVERS / limit
  let cursor: string | undefined
  for (let page = 1; ; page++) {
    const answer = await server.get(`/registry/all/v0.1/servers?limit=${limit}${cursor === undefined ? '' : `&cursor=${cursor}`}`)
    expect(answer.status).toBe(200)
    for (const { server: document } of answer.json.servers) keys.push(keyOf(document))
    cursor = answer.json.metadata.nextCursor
    if (cursor === undefined) return { keys, generations }
    if (page % Math.floor(pages / (SYNCS_PER_PASS + 1)) === 0) generations.push(await nextGeneration(server, origin))
  }
}

async function nextGeneration(server: Server, origin: Origin): Promise<number> {
  const after = origin.generation
  return await eventually('the next generation is served', async () => {
    const generation = await servedGeneration(server)
    return generation > after && generation
  })
}

/** It may be behind what was fetched last. */
async function servedGeneration(server: Server): Promise<number> {
  const { json } = await server.get('/registry/all/v0.1/servers/io.example%2Faa-marker/versions/latest')
  return Number(json.server.description.split(' ').at(-1))
}

/** With every fetch a tenth of the servers is another: some change, some come, some go, some get another version. */
async function startChangingOrigin(): Promise<Origin> {
  let generation = 0
  const ever = new Set<string>()
  const present = new Map<string, { document: ServerDocument; since: number }>()
  const put = (document: ServerDocument) => {
    const key = keyOf(document)
    present.set(key, { document, since: present.get(key)?.since ?? generation })
    ever.add(key)
  }
  const nameOf = (n: number) => `io.example/s-${(n * 7919) % 100_003}`
  for (let n = 0; n < SERVERS; n++) put(documentOf(nameOf(n)))

  function change(): void {
    generation++
    const keys = [...present.keys()]
    for (let n = 0; n < CHANGED; n++) {
      const key = keys[(generation * 613 + n * 9) % keys.length] ?? ''
      const old = present.get(key)?.document
      if (!old || old.name.endsWith('marker')) continue
      if (n % 10 === 0) {
        present.delete(key)
        put(documentOf(nameOf(SERVERS + generation * CHANGED + n)))
      } else if (n % 10 === 1) put({ ...old, version: `2.${generation}.0` })
      else put({ ...old, description: `What it does since ${generation}` })
    }
    put(documentOf('io.example/aa-marker', '1.0.0', { description: `Generation ${generation}` }))
  }

  const backend = await startBackend((_, response) => {
    change()
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(registryFile([...present.values()].map(({ document }) => document)))
  })
  onTestFinished(() => backend[Symbol.asyncDispose]())
  return {
    url: `${backend.url}/registry.json`,
    get generation() {
      return generation
    },
    ever,
    presentSince: (since) => [...present].filter(([, entry]) => entry.since <= since).map(([key]) => key),
  }
}

function keyOf({ name, version }: ServerDocument): string {
  return `${name}@${version}`
}
