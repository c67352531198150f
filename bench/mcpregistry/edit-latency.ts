import { watch } from 'node:fs'
import { glob, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ConfigMap, configMaps, createKubeClient, type KubeClient, loadKubeconfig, pods, type ResourceType } from '@thv/kube'
import { type MCPRegistry, mcpRegistryType } from '@thv/resources/kinds/mcp-registry/schema'
import { ensureBundle } from '../../scripts/bundle.mjs'
import { runUp } from '../cluster/up.ts'
import { type Figure, median } from '../figure.ts'

const NAMESPACE = 'default'
const LIMIT_MS = 60_000
/** The registry server waits this long after a change of its files, so that several count as one. */
const DEBOUNCE_MS = 200
const LABEL = { 'bench.example.com/edits': 'yes' }
const SHAPES = {
  mounted: { configMapRef: { name: 'mounted' } },
  selected: { configMapSelector: { matchLabels: LABEL } },
} as const
type Shape = keyof typeof SHAPES
const type = mcpRegistryType as unknown as ResourceType<MCPRegistry>

/**
 * From the edit of a ConfigMap until the API of a registry answers with it, on the embedded platform, beside a bare watcher of the very
 * file that the API's pod has mounted. Both see each edit.
 */
export async function editLatency({ rounds, log }: { rounds: number; log: (line: string) => void }): Promise<Figure[]> {
  log(`${rounds} edits of a ConfigMap on the embedded platform …`)
  for (const app of ['cli', 'operator', 'proxyrunner', 'registry']) await ensureBundle(`apps/${app}/src/main.ts`)
  const folder = await mkdtemp(join(tmpdir(), 'thv-bench-edits-'))
  const platform = await runUp(folder, ['--no-examples', '--no-registry'])
  const client = createKubeClient(await loadKubeconfig({ path: join(folder, 'kubeconfig') }))
  try {
    const figures: Figure[] = []
    for (const shape of ['mounted', 'selected'] as const) {
      const place = await registryOf(client, shape, folder)
      const answers: number[] = []
      const sights: number[] = []
      for (let round = 0; round <= rounds; round++) {
        const { answered, seen } = await edit(client, place, `edit ${round} of ${shape}`)
        if (round === 0) continue // warms both
        answers.push(answered)
        sights.push(seen)
      }
      figures.push({
        name: `edit of a ${shape} ConfigMap until the API answers, less the debounce`,
        unit: 'ms',
        value: median(answers) - DEBOUNCE_MS,
        baseline: median(sights),
        aim: { of: 'ratio', limit: 2 },
      })
    }
    return figures
  } finally {
    await client.close()
    await platform.stop()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

interface Place {
  readonly shape: Shape
  readonly url: string
  /** In the folder of the API's pod. */
  readonly file: string
}

async function registryOf(client: KubeClient, shape: Shape, folder: string): Promise<Place> {
  const key = { namespace: NAMESPACE, name: shape }
  await client.create(configMaps, {
    metadata: { ...key, ...(shape === 'selected' && { labels: LABEL }) },
    data: data('first'),
  } as ConfigMap)
  await client.create(type, { metadata: key, spec: { registries: [{ name: 'teams', ...SHAPES[shape] }] } } as MCPRegistry)
  const url = await eventually(`${shape} has a URL`, async () => {
    const { status } = await client.get(type, key)
    return status?.phase === 'Ready' ? status.url : undefined
  })
  const answer = `${url.replace(/\/$/, '')}/registry/${shape}/v0.1/servers`
  await eventually(`${shape} answers`, async () => (await bodyOf(answer)).includes('first') || undefined)
  const { items } = await client.list(pods, { namespace: NAMESPACE, labelSelector: `toolhive-name=${shape}` })
  const file = await eventually('the mounted file', async () => {
    for await (const path of glob(`**/pods/${items[0]?.metadata.uid}/volumes/*/registry.json`, { cwd: folder })) return join(folder, path)
    return undefined
  })
  return { shape, url: answer, file }
}

function data(description: string): Record<string, string> {
  return { 'registry.json': JSON.stringify({ servers: { fetch: { image: 'example.com/fetch:1', description } } }) }
}

/** Both from the moment in which the edit is sent, in ms. */
async function edit(client: KubeClient, { shape, url, file }: Place, word: string): Promise<{ answered: number; seen: number }> {
  const watcher = sightOf(file, word)
  try {
    const started = performance.now()
    const answer = eventually(
      `the API answers with ${word}`,
      async () => ((await bodyOf(url)).includes(word) ? performance.now() : undefined),
      5,
    )
    await client.patch(configMaps, { namespace: NAMESPACE, name: shape }, { kind: 'merge', body: { data: data(word) } })
    const [answered, seen] = await Promise.all([answer, watcher.seen])
    return { answered: answered - started, seen: seen - started }
  } finally {
    watcher.close()
  }
}

/** A bare watcher: reads the file at each event of its folder until the word is in it. */
function sightOf(file: string, word: string): { readonly seen: Promise<number>; close(): void } {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const look = async () => {
    const text = await readFile(file, 'utf8').catch(() => '')
    if (text.includes(word)) resolve(performance.now())
  }
  const watcher = watch(dirname(file), () => void look())
  const limit = setTimeout(() => reject(new Error(`the watcher never saw ${word}`)), LIMIT_MS)
  return {
    seen: promise,
    close() {
      clearTimeout(limit)
      watcher.close()
    },
  }
}

async function bodyOf(url: string): Promise<string> {
  return await (await fetch(url, { signal: AbortSignal.timeout(5_000) })).text()
}

async function eventually<T>(what: string, check: () => Promise<T | undefined>, pauseMs = 50): Promise<T> {
  const deadline = performance.now() + LIMIT_MS
  for (;;) {
    const result = await check().catch(() => undefined)
    if (result !== undefined) return result
    if (performance.now() > deadline) throw new Error(`never happened: ${what}`)
    await sleep(pauseMs)
  }
}
