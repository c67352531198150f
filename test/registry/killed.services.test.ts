import { setTimeout as sleep } from 'node:timers/promises'
import { soakRounds } from '@thv/testkit/run/run-environment'
import { expect, test } from 'vitest'
import { documentOf, eventually, registryWorld, type Server, type ServerDocument } from './registry-world.ts'

const ROUNDS = 3 * soakRounds()
const PUBLISHERS = 6
const NAMES = 20

test('a server with the embedded store that is killed while many publish keeps all that it acknowledged, and nothing by half', {
  timeout: 120_000 + ROUNDS * 60_000,
}, async () => {
  const world = registryWorld()
  const config = world.config({ sources: [{ name: 'own', managed: {} }], registries: [{ name: 'all', sources: ['own'] }] })
  const acknowledged = new Map<string, ServerDocument>()
  const sent = new Map<string, ServerDocument>()
  let last = -1
  for (let round = 0; round < ROUNDS; round++) {
    const server = await world.serve(config)
    await server.ready()
    expect(await checkKept(server, { acknowledged, sent })).toBeGreaterThan(last)
    last = acknowledged.size
    const publishing = Array.from({ length: PUBLISHERS }, (_, n) => publishUntilKilled(server, { sent, acknowledged, from: n }))
    await eventually('some are published', () => acknowledged.size >= last + 40)
    await sleep(round * 3) // each time in another moment of a write
    await server.kill()
    await Promise.all(publishing)
  }
  const server = await world.serve(config)
  await server.ready()
  await checkKept(server, { acknowledged, sent })
  expect(acknowledged.size).toBeGreaterThan(40 * ROUNDS)
  // A lost entry can be published now, and a stored one exists already.
  for (const document of [...sent.values()].slice(-PUBLISHERS)) {
    expect((await server.publish(document)).status).toBeOneOf(acknowledged.has(keyOf(document)) ? [409] : [200, 409])
  }
  expect(await server.stop()).toBe(0)
})

interface Books {
  readonly sent: Map<string, ServerDocument>
  readonly acknowledged: Map<string, ServerDocument>
}

async function publishUntilKilled(server: Server, { sent, acknowledged, from }: Books & { from: number }): Promise<void> {
  while (server.child.exitCode === null && server.child.signalCode === null) {
    const n = sent.size
    // Long enough that half of it would show.
    const document = documentOf(`io.example/server-${n % NAMES}`, `1.${from}.${n}`, { 'x-filler': `${n}-`.repeat(500) })
    sent.set(keyOf(document), document)
    try {
      const answer = await server.publish(document)
      expect(answer.status).toBe(200)
      acknowledged.set(keyOf(document), document)
    } catch (error) {
      if ((error as Error).name === 'AssertionError') throw error
      return // killed
    }
  }
}

/** Gives how many there are. */
async function checkKept(server: Server, { acknowledged, sent }: Books): Promise<number> {
  const there = new Map<string, ServerDocument>()
  let cursor: string | undefined
  do {
    const page = await server.get(`/registry/all/v0.1/servers?limit=500${cursor === undefined ? '' : `&cursor=${cursor}`}`)
    for (const { server: document } of page.json.servers) there.set(keyOf(document), document)
    cursor = page.json.metadata.nextCursor
  } while (cursor !== undefined)
  expect([...acknowledged.keys()].filter((key) => !there.has(key))).toEqual([])
  for (const [key, document] of there) expect(document).toEqual(sent.get(key))
  return there.size
}

function keyOf({ name, version }: ServerDocument): string {
  return `${name}@${version}`
}
