import { type AddressInfo, connect, createServer } from 'node:net'
import { type ConfigMap, configMaps, type Pod, pods, type Secret, secrets } from '@thv/kube'
import { startPostgres } from '@thv/testkit/postgres/postgres'
import { waitForServers } from './registry-client.ts'
import type { Story } from './story.ts'
import { REGISTRY, type World } from './world.ts'

const NAMES = ['fetch', 'time']
const READERS = 3

export const registryReplicas: Story = {
  title: 'two replicas of a registry on PostgreSQL: one goes under load, and no read fails',
  proves: [],
  needs: ['database'],
  async tell(world) {
    await using postgres = await startPostgres()
    const database = await postgres.createDatabase()
    await using way = await forward(world.hostAddress, { host: database.host, port: database.port })
    const password = Buffer.from(database.password).toString('base64')
    await world.client.create(secrets, { metadata: world.at('database'), data: { password } } as Secret)
    const servers = Object.fromEntries(NAMES.map((name) => [name, { image: `ghcr.io/org/${name}:1` }]))
    const data = { 'registry.json': JSON.stringify({ servers }) }
    await world.client.create(configMaps, { metadata: world.at('servers'), data } as ConfigMap)
    const secret = { name: 'database', key: 'password' }
    await world.create(REGISTRY, 'shared', {
      registries: [{ name: 'servers', configMapRef: { name: 'servers' } }],
      replicas: 2,
      databaseConfig: {
        ...{ host: world.hostAddress, port: way.port, database: database.database },
        ...{ user: database.user, migrationUser: database.user },
        ...{ dbAppUserPasswordSecretRef: secret, dbMigrationUserPasswordSecretRef: secret },
      },
    })
    await waitForServers(
      world,
      'shared',
      NAMES.map((name) => `io.github.stacklok/${name}`),
    )
    await world.hasReason(REGISTRY, 'shared', { condition: 'SharedStore', reason: 'SharedStoreAvailable' })
    const twoReady = async () => (await world.client.get(REGISTRY, world.at('shared'))).status?.readyReplicas === 2
    await world.eventually('both replicas are ready', twoReady)
    const { url } = await world.reaches(REGISTRY, 'shared', 'Ready')
    const path = '/registry/shared/v0.1/servers'
    const ofService = `${(await world.outside(url)).replace(/\/$/, '')}${path}`
    const more = async (reads: Reads) => {
      const before = reads.answered()
      await world.eventually('the registry is read', async () => reads.answered() > before + 100)
    }
    const replaced = (victim: Pod | undefined) =>
      world.eventually('another one takes its place', async () => {
        const now = await apiPods(world)
        return now.length === 2 && now.every(({ metadata }) => metadata.uid !== victim?.metadata.uid) && (await twoReady())
      })

    // A pod that is asked to go, as by a rollout or a drained node: no read through the Service fails.
    const reads = startReads(ofService)
    await more(reads)
    const [victim] = await apiPods(world)
    await world.client.delete(pods, world.at(victim?.metadata.name ?? ''))
    await more(reads)
    await replaced(victim)
    await more(reads)
    world.expect(await reads.stop()).toEqual([])

    // A pod that is taken away takes the reads with it that it was answering. The other one misses nothing, and the Service leads to it.
    const [taken, kept] = await apiPods(world)
    const beside = startReads(`http://${kept?.status?.podIP}:8080${path}`)
    await more(beside)
    await world.client.delete(pods, world.at(taken?.metadata.name ?? ''), { gracePeriodSeconds: 0 })
    await more(beside)
    await replaced(taken)
    await more(beside)
    world.expect(await beside.stop()).toEqual([])
    const after = startReads(ofService)
    await more(after)
    world.expect(await after.stop()).toEqual([])
  },
}

async function apiPods({ client, namespace }: World) {
  return (await client.list(pods, { namespace, labelSelector: 'app.kubernetes.io/name=shared-api' })).items
}

type Reads = ReturnType<typeof startReads>

/** Clients that read all the time, each request on a connection of its own. Gives what went wrong. */
function startReads(url: string) {
  const stopped = new AbortController()
  const failures: string[] = []
  let answered = 0
  const read = async () => {
    while (!stopped.signal.aborted) {
      try {
        const answer = await fetch(url, { headers: { connection: 'close' }, signal: AbortSignal.timeout(60_000) })
        const { servers } = (await answer.json()) as { servers?: unknown[] }
        if (answer.status === 200 && servers?.length === NAMES.length) answered++
        else failures.push(`${answer.status} with ${servers?.length} servers`)
      } catch (error) {
        failures.push(`${error} ${(error as Error).cause ?? ''}`)
      }
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  const running = Array.from({ length: READERS }, read)
  return {
    answered: () => answered,
    async stop() {
      stopped.abort()
      await Promise.all(running)
      return failures
    },
  }
}

/** Pods reach the database, which listens on this machine alone, through a port of another address. */
async function forward(host: string, to: { host: string; port: number }) {
  const server = createServer((client) => {
    const target = connect(to)
    for (const [from, into] of [[client, target] as const, [target, client] as const]) {
      from.on('error', () => into.destroy())
      from.pipe(into)
    }
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, host, resolve))
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.close() // connections of the pods may still be open
    },
  }
}
