import { setTimeout as sleep } from 'node:timers/promises'
import { bearerToken, type ConfigMap, configMaps, createKubeClient, type KubeClient, namespaces, type ResourceType } from '@thv/kube'
import { MEMORY_SETTINGS } from '@thv/programs/memory-settings'
import { type MCPRegistry, mcpRegistryType } from '@thv/resources/kinds/mcp-registry/schema'
import { installCrds } from '@thv/resources/testing/install-crds'
import { startApiServer } from '@thv/testkit/cluster/api-server'
import { ensureBinaries } from '@thv/testkit/cluster/programs/binaries'
import { startGitServer } from '@thv/testkit/git/git-server'
import type { Figure } from './figure.ts'
import { type BareClient, startBareClient } from './mcpregistry/bare-client.ts'
import { changeOne, createMaps, LABEL, nameOf, SERVERS_PER_MAP } from './mcpregistry/data-maps.ts'
import { editLatency } from './mcpregistry/edit-latency.ts'
import { mergeCost } from './mcpregistry/merge-cost.ts'
import { difference, requestsByVerb } from './operator/api-requests.ts'
import { inParallel } from './operator/server-load.ts'
import { startMeasured } from './proxy/measured-process.ts'

/*
 * MCPRegistries on the real API server: the merge of many ConfigMaps beside a bare client that lists, parses and writes the same
 * bytes, and what many registries cost in requests and memory. BENCH_QUICK=1 for a look.
 */

const isQuick = process.env['BENCH_QUICK'] === '1'
const MAPS = isQuick ? 100 : 500
const REGISTRIES = isQuick ? 40 : 200
const NAMESPACE = 'bench'
const QUIET_MS = 5_000
const CHANGES = 10
const LARGE_SYNCS = 3
const EDITS = isQuick ? 5 : 15
const LIMIT_MS = 300_000
const type = mcpRegistryType as unknown as ResourceType<MCPRegistry>

type Log = (line: string) => void

export async function run(log: Log): Promise<Figure[]> {
  await ensureBinaries({ log })
  await using server = await startApiServer()
  const client = createKubeClient({ server: server.url, tls: { ca: server.caPem }, auth: bearerToken(server.adminToken) })
  await installCrds(client)
  for (const name of [NAMESPACE, 'bare']) await client.create(namespaces, { metadata: { name } })
  log(`creating ${MAPS} ConfigMaps of ${SERVERS_PER_MAP} servers …`)
  await createMaps(client, { namespace: NAMESPACE, count: MAPS })

  await using bare = await startBareClient(server, { from: NAMESPACE, into: 'bare' })
  await using operator = await startMeasured({
    script: 'apps/operator/src/main.ts',
    args: [
      ...['--kubeconfig', server.kubeconfigPath, '--metrics-bind-address', '0', '--health-probe-bind-address', '0'],
      '--allow-loopback-remotes', // the git server of this benchmark
    ],
    env: { ...MEMORY_SETTINGS, LOG_LEVEL: 'warn' }, // as the image runs it
  })
  await sleep(QUIET_MS)
  const figures = await merging({ client, operator, bare, log })
  figures.push(...(await manyRegistries({ client, operator, bareMb: bare.rssMb, log })))
  figures.push(await largeSyncs({ client, operator, log }))
  await client.close()
  figures.push(...(await editLatency({ rounds: EDITS, log })))
  return figures
}

interface Bench {
  readonly client: KubeClient
  readonly operator: Awaited<ReturnType<typeof startMeasured>>
  readonly log: Log
}

async function merging({ client, operator, bare, log }: Bench & { bare: BareClient }): Promise<Figure[]> {
  log('the first merge …')
  const key = { namespace: NAMESPACE, name: 'merged' }
  const started = performance.now()
  await client.create(type, {
    metadata: key,
    spec: { registries: [{ name: 'teams', configMapSelector: { matchLabels: { [LABEL]: 'true' } } }] },
  } as MCPRegistry)
  // The first of several is written last; asking for one that is not there costs the API server next to nothing.
  const first = { namespace: NAMESPACE, name: 'merged-teams-aggregated' }
  await eventually('all ConfigMaps are merged', async () => (await client.tryGet(configMaps, first)) !== undefined, 10)
  const mergeSeconds = (performance.now() - started) / 1000
  const merged = countIn(await mergedTexts(client))
  if (merged !== MAPS * SERVERS_PER_MAP) throw new Error(`${merged} servers are merged`)

  log(`${CHANGES} ConfigMaps change, one after the other; then one that no selector matches …`)
  await sleep(QUIET_MS)
  const idle = await cpuOf(operator, () => sleep(QUIET_MS))
  const before = await requestsByVerb(client)
  const busy = await cpuOf(operator, async () => {
    for (let index = 0; index < CHANGES; index++) {
      const description = `changed ${index}`
      await changeOne(client, { namespace: NAMESPACE, index, description })
      await eventually('the change is merged', async () => (await mergedTexts(client)).some((text) => text.includes(`"${description}"`)))
    }
    await sleep(QUIET_MS)
  })
  const after = await requestsByVerb(client)
  const reads = (after.get('GET') ?? 0) - (before.get('GET') ?? 0)
  const writes = difference(before, after, 'writes') - CHANGES // our own
  const bareChanges: number[] = []
  for (let index = 0; index < CHANGES; index++) bareChanges.push((await bare.change(nameOf(index))).cpuUs)
  const bareUs = bareChanges.reduce((sum, us) => sum + us, 0)
  const cost = mergeCost(MAPS)
  const cpuUs = busy.cpuUs - (idle.cpuUs * busy.seconds) / idle.seconds
  await client.create(configMaps, { metadata: { namespace: NAMESPACE, name: 'unrelated' }, data: { a: 'b' } } as ConfigMap)
  const quiet = await requestsByVerb(client)
  await sleep(QUIET_MS)
  const unrelated = difference(quiet, await requestsByVerb(client))
  return [
    { name: `${MAPS} ConfigMaps merged first`, unit: 's', value: mergeSeconds, baseline: bare.seconds, aim: { of: 'ratio', limit: 1.5 } },
    { name: 'reads per changed ConfigMap', unit: '', value: reads / CHANGES, baseline: 0, aim: { of: 'difference', limit: 1 } },
    { name: 'writes per changed ConfigMap', unit: '', value: writes / CHANGES, baseline: 0, aim: { of: 'difference', limit: 1 } },
    { name: 'reading and merging a changed ConfigMap', unit: 'ms', value: cost.merge, baseline: cost.bare, aim: { of: 'ratio', limit: 3 } },
    {
      name: 'CPU per changed ConfigMap, all of the operator',
      unit: 'ms',
      value: cpuUs / 1000 / CHANGES,
      baseline: bareUs / 1000 / CHANGES,
      // The aim is about 500 ConfigMaps: with few, the fixed cost of a reconcile is most of it.
      ...(!isQuick && { aim: { of: 'ratio', limit: 3 } as const }),
    },
    {
      name: 'requests for a ConfigMap that no selector matches',
      unit: '',
      value: unrelated,
      baseline: 0,
      aim: { of: 'difference', limit: 0.5 },
    },
  ]
}

/** Processor time of the operator meanwhile. */
async function cpuOf(operator: Bench['operator'], work: () => Promise<unknown>): Promise<{ cpuUs: number; seconds: number }> {
  const before = (await operator.usage()).cpuUs
  const started = performance.now()
  await work()
  const seconds = (performance.now() - started) / 1000
  return { cpuUs: (await operator.usage()).cpuUs - before, seconds }
}

function countIn(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Object.keys((JSON.parse(text) as { servers?: object }).servers ?? {}).length, 0)
}

async function mergedTexts(client: KubeClient): Promise<string[]> {
  const labelSelector = 'app.kubernetes.io/component=registry-aggregate'
  const { items } = await client.list(configMaps, { namespace: NAMESPACE, labelSelector })
  return items.map(({ data }) => data?.['registry.json'] ?? '')
}

async function manyRegistries({ client, operator, bareMb, log }: Bench & { bareMb: number }): Promise<Figure[]> {
  log(`${REGISTRIES} MCPRegistries …`)
  const names = Array.from({ length: REGISTRIES }, (_, index) => `registry-${index}`)
  const before = await requestsByVerb(client)
  await inParallel(names, async (name) => {
    const git = { repository: 'https://git.example.com/servers', branch: 'main' }
    await client.create(type, { metadata: { namespace: NAMESPACE, name }, spec: { registries: [{ name: 'a', git }] } } as MCPRegistry)
  })
  await eventually('all have a status', async () => {
    const { items } = await client.listAll(type, { namespace: NAMESPACE })
    return items.every(({ status }) => status?.observedGeneration !== undefined && status.apiStatus !== undefined)
  })
  await sleep(QUIET_MS)
  const after = await requestsByVerb(client)
  const each = (difference(before, after) - REGISTRIES) / REGISTRIES // our own creates

  log('every registry is looked at again …')
  const calm = await requestsByVerb(client)
  await inParallel(names, async (name) => {
    const body = { metadata: { annotations: { 'toolhive.stacklok.dev/sync-trigger': '' } } }
    await client.patch(type, { namespace: NAMESPACE, name }, { kind: 'merge', body })
  })
  await sleep(QUIET_MS)
  const resync = difference(calm, await requestsByVerb(client), 'writes') - REGISTRIES
  const settled = await operator.usage({ gc: true })
  return [
    { name: `requests per registry, of ${REGISTRIES}`, unit: '', value: each, baseline: 8, aim: { of: 'ratio', limit: 1 } },
    { name: 'writes of a resync without changes', unit: '', value: resync, baseline: 0, aim: { of: 'difference', limit: 0.5 } },
    {
      name: `memory with ${REGISTRIES} registries and ${MAPS * SERVERS_PER_MAP} merged servers`,
      unit: 'MB',
      value: settled.rssKb / 1024,
      baseline: bareMb,
      aim: { of: 'ratio', limit: 1.5 },
    },
  ]
}

/** Too large to be stored, so it comes through the fetch and the merge, and nothing of it may stay. */
async function largeSyncs({ client, operator, log }: Bench): Promise<Figure> {
  log(`${LARGE_SYNCS} syncs of 31 MiB …`)
  await using git = await startGitServer()
  const repository = await git.repository('large')
  const servers = Array.from({ length: 31 * 256 }, (_, index) => [`server-${index}`, { image: 'x', description: 'y'.repeat(4_000) }])
  await repository.commit({ 'registry.json': JSON.stringify({ servers: Object.fromEntries(servers) }) })
  const key = { namespace: NAMESPACE, name: 'large' }
  const source = { type: 'git', git: { repository: `${git.url}/large`, branch: 'main' } }
  await client.create(type, { metadata: key, spec: { source, api: { enabled: false } } } as unknown as MCPRegistry)
  const synced = async (count: number) => {
    const annotations = { 'toolhive.stacklok.dev/sync-trigger': String(count) }
    await client.patch(type, key, { kind: 'merge', body: { metadata: { annotations } } })
    await eventually('the data are refused', async () => {
      const { status } = await client.get(type, key)
      return status?.lastManualSyncTrigger === String(count) && (status.conditions ?? []).some(({ reason }) => reason === 'StorageTooLarge')
    })
    await sleep(QUIET_MS)
    return (await operator.usage({ gc: true })).rssKb / 1024
  }
  // The first one also loads the code that fetches.
  const baseline = await synced(0)
  let value = baseline
  for (let count = 1; count <= LARGE_SYNCS; count++) value = await synced(count)
  return { name: `memory after ${LARGE_SYNCS} more syncs of 31 MiB`, unit: 'MB', value, baseline, aim: { of: 'ratio', limit: 1.05 } }
}

async function eventually(what: string, check: () => Promise<boolean>, pauseMs = 100): Promise<void> {
  const deadline = performance.now() + LIMIT_MS
  while (!(await check())) {
    if (performance.now() > deadline) throw new Error(`never happened: ${what}`)
    await sleep(pauseMs)
  }
}
