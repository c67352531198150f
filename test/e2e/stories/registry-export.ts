import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { configMaps, type Deployment, deployments } from '@thv/kube'
import { kubectl } from './gateway-objects.ts'
import { listedServers, waitForServers } from './registry-client.ts'
import type { Story } from './story.ts'
import { REGISTRY, SERVER, type World } from './world.ts'

const THV = fileURLToPath(new URL('../../../apps/cli/bin/thv.js', import.meta.url))
const THV_LIMIT_MS = 120_000
const annotation = (name: string, value: string) => `toolhive.stacklok.dev/${name}=${value}`
const NAME = 'live'

export const registryExport: Story = {
  title: 'an annotated server is found by thv search, and stays listed exactly once while the export of its registry changes its mode',
  proves: [],
  async tell(world) {
    const registries = [{ name: 'published', managed: {} }]
    await world.create(SERVER, 'shown', { image: world.images.fixture, transport: 'streamable-http' })
    await world.create(REGISTRY, NAME, { registries, export: {} })
    await waitForServers(world, NAME, [])
    await search(world, 'nothing-yet')

    // A server that is published by hand is the measure: the debounce of a second comes on top.
    const publishedMs = await untilFound(world, 'io.example/published', () => publish(world, 'io.example/published'))
    const entry = `dev.stacklok.toolhive/${world.namespace}.shown`
    const annotatedMs = await untilFound(world, entry, () =>
      kubectl(
        world,
        ...['annotate', 'mcpserver', 'shown', annotation('registry-export', 'true')],
        ...[annotation('registry-url', 'https://shown.example.com/'), annotation('registry-description', 'A shown server')],
      ),
    )
    console.log(
      `thv search found an annotated server after ${Math.round(annotatedMs)} ms, a published one after ${Math.round(publishedMs)} ms`,
    )
    await kubectl(world, 'annotate', '--overwrite', 'mcpserver', 'shown', annotation('registry-url', 'javascript:nothing'))
    const wrong = await world.hasReason(SERVER, 'shown', { condition: 'RegistryExport', reason: 'InvalidRegistryURL' })
    world.expect(wrong.message).toContain('registry-url')
    await kubectl(world, 'annotate', '--overwrite', 'mcpserver', 'shown', annotation('registry-url', 'https://shown.example.com/'))
    await waitForServers(world, NAME, [entry, 'io.example/published'])

    for (const mode of ['operator', 'server']) {
      await using reads = startReading(world, entry)
      await world.edit(REGISTRY, NAME, { export: { mode } })
      await rolledOut(world, mode)
      await reads.more(20)
      world.expect([mode, await reads.stop()]).toEqual([mode, []])
    }
    await world.eventually('no ConfigMap of mode operator', async () => {
      return (await world.client.tryGet(configMaps, world.at(`${NAME}-registry-export`))) === undefined
    })
  },
}

async function baseUrl(world: World): Promise<string> {
  const { status } = await world.client.get(REGISTRY, world.at(NAME))
  return `${(await world.outside(status?.url)).replace(/\/$/, '')}/registry/${NAME}`
}

async function search(world: World, words: string): Promise<readonly { server: { name: string } }[]> {
  const args = [THV, 'search', words, '--registry', await baseUrl(world), '--output', 'json']
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: THV_LIMIT_MS })
  return JSON.parse(stdout) as { server: { name: string } }[]
}

/** From the end of the act until `thv search` shows the entry. */
async function untilFound(world: World, name: string, act: () => Promise<unknown>): Promise<number> {
  await act()
  const began = performance.now()
  await world.eventually(`thv search finds ${name}`, async () => {
    return (await search(world, name.split(/[/.]/).at(-1) ?? '')).some(({ server }) => server.name === name)
  })
  return performance.now() - began
}

async function publish(world: World, name: string): Promise<void> {
  const answer = await fetch(`${await baseUrl(world)}/v0.1/publish`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
      ...{ name, description: 'A published server', version: '1.0.0' },
      remotes: [{ type: 'streamable-http', url: 'https://published.example.com/' }],
    }),
    signal: AbortSignal.timeout(60_000),
  })
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`)
}

/** Until the pods of this mode, and no others, serve. */
async function rolledOut(world: World, mode: string): Promise<void> {
  await world.eventually(`the registry runs in mode ${mode}`, async () => {
    const config = await world.client.get(configMaps, world.at(`${NAME}-registry-server-config`))
    if (config.data?.['config.yaml']?.includes('crossNamespaceGateway') !== (mode === 'server')) return false
    const { metadata, spec, status } = (await world.client.get(deployments, world.at(`${NAME}-api`))) as Deployment
    const wanted = spec?.replicas ?? 1
    return (
      status?.observedGeneration === metadata.generation &&
      [status?.replicas, status?.updatedReplicas, status?.readyReplicas].every((count) => count === wanted)
    )
  })
}

interface Reading extends AsyncDisposable {
  more(count: number): Promise<void>
  /** Answers without the entry, or with more than one of it. */
  stop(): Promise<readonly string[]>
}

function startReading(world: World, entry: string): Reading {
  const wrong: string[] = []
  let count = 0
  let isStopped = false
  const running = (async () => {
    while (!isStopped) {
      try {
        const found = (await listedServers(world, NAME)).filter(({ name }) => name === entry)
        if (found.length !== 1) wrong.push(`answer ${count} has it ${found.length} times`)
        count++
      } catch {
        // Of a pod that ends: a Service without a proxy that drains it. What is listed is what counts here.
      }
      await sleep(20)
    }
  })()
  const stop = async () => {
    isStopped = true
    await running
    return wrong
  }
  return {
    more: async (more) => {
      const goal = count + more
      await world.eventually(`${more} more answers`, async () => count >= goal)
    },
    stop,
    [Symbol.asyncDispose]: async () => void (await stop()),
  }
}
