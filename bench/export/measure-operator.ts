import { setTimeout as sleep } from 'node:timers/promises'
import { configMaps, type KubeClient, type KubeObject, namespaces, type ResourceType } from '@thv/kube'
import { type MCPRegistry, mcpRegistryType } from '@thv/resources/kinds/mcp-registry/schema'
import type { Figure } from '../figure.ts'
import { startMeasured } from '../proxy/measured-process.ts'
import { changeUnrelated, changeUrl, namespaceOf, serverType } from './cluster-data.ts'
import { type CountingProxy, isWatch, isWrite } from './counting-proxy.ts'
import { until } from './registry-subject.ts'

export interface OperatorBench {
  readonly client: KubeClient
  readonly proxy: CountingProxy
  /** Of an administrator, through the proxy. */
  readonly kubeconfigPath: string
  /** The first ones. */
  readonly teams: number
  readonly perNamespace: number
  readonly changes: number
  readonly quietMs: number
  readonly log: (line: string) => void
}

const HOME = 'operator-mode'
const registryType = mcpRegistryType as unknown as ResourceType<MCPRegistry>

/** Mode operator: what a change costs in writes, and what the export costs in memory. */
export async function measureOperator(bench: OperatorBench): Promise<Figure[]> {
  const { client, proxy, teams, perNamespace, changes, quietMs, log } = bench
  await client.create(namespaces, { metadata: { name: HOME } } as KubeObject)
  const exported = Array.from({ length: teams }, (_, team) => namespaceOf(team))
  const metricsPort = 40_000 + Math.floor(Math.random() * 10_000)
  await using operator = await startMeasured({
    script: 'apps/operator/src/main.ts',
    args: [
      ...['--kubeconfig', bench.kubeconfigPath, '--health-probe-bind-address', '0'],
      ...['--metrics-bind-address', `127.0.0.1:${metricsPort}`],
    ],
    env: {
      ...{ LOG_LEVEL: 'warn', POD_NAMESPACE: HOME, WATCH_NAMESPACE: [HOME, ...exported].join() },
      TOOLHIVE_REGISTRY_EXPORT_NAMESPACES: exported.join(),
    },
  })
  log(`mode operator: an operator with ${teams * perNamespace} servers …`)
  await until(operator, async () => {
    const { items } = await client.listAll(serverType, { namespace: exported.at(-1) ?? '' })
    return items.every((item) => (item as { status?: { observedGeneration?: number } }).status?.observedGeneration !== undefined)
  })
  await untilQuiet(bench)
  const without = (await operator.usage({ gc: true })).rssKb / 1024
  await client.create(registryType, {
    metadata: { namespace: HOME, name: 'all' },
    spec: { registries: [{ name: 'a', managed: {} }], export: { mode: 'operator', namespaces: exported } },
  } as MCPRegistry)
  await until(
    operator,
    async () => (await client.get(registryType, { namespace: HOME, name: 'all' })).status?.exportedServers === teams * perNamespace,
  )
  await until(operator, async () =>
    (await Promise.all(exported.map((namespace) => countTold(client, namespace)))).every((count) => count === perNamespace),
  )
  await untilQuiet(bench)
  const withExport = (await operator.usage({ gc: true })).rssKb / 1024

  const writesOf = async (work: (index: number) => Promise<void>) => {
    const reconciles = await reconcilesOf(metricsPort)
    proxy.taken()
    for (let index = 0; index < changes; index++) await work(index)
    await sleep(quietMs)
    const writes = proxy.taken().filter((line) => isWrite(line) && !isWatch(line))
    if (writes.length > 0) log(`writes: ${byKind(writes)}`)
    return { writes: writes.length / changes, reconciles: (await reconcilesOf(metricsPort)) - reconciles }
  }
  log(`${changes} URLs change, one after the other; then what no URL depends on …`)
  const url = await writesOf(async (index) => {
    await changeUrl(client, 0, 0, `operator-${index}`)
    await until(operator, async () => (await exportedText(client)).includes(`/operator-${index}"`))
    await sleep(quietMs)
  })
  // The controller of registries looks at its pods now and then.
  const idle = await writesOf(async () => {})
  const unrelated = await writesOf(() => changeUnrelated(client, 'server', 0, 0))
  const route = await writesOf(() => changeUnrelated(client, 'plain route', 0, 0))
  const none = { baseline: 0, aim: { of: 'difference' as const, limit: 0.05 } }
  return [
    // One shard, and one status: that of the resource, which names its URL.
    { name: 'mode operator: writes per changed URL', unit: '', value: url.writes, baseline: 2, aim: { of: 'ratio', limit: 1 } },
    { name: 'mode operator: writes per change of no URL', unit: '', value: unrelated.writes, ...none },
    {
      ...{ name: 'mode operator: reconciles while a route without annotation changes', unit: '' },
      ...{ value: route.reconciles, baseline: idle.reconciles, aim: { of: 'difference', limit: 1 } },
    },
    { name: 'mode operator: RSS of the operator', unit: 'MB', value: withExport, baseline: without, aim: { of: 'ratio', limit: 1.5 } },
  ]
}

/** `2 PATCH mcpservers/status, 1 PATCH configmaps`. */
function byKind(lines: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const line of lines) {
    const [method = '', path = ''] = line.split(/[ ?]/)
    const [kind = '', , subresource] = path.replace(/^\/apis?\/(.*?\/)?namespaces\/[^/]+\//, '').split('/')
    const name = `${method} ${[kind, subresource].filter((part) => part !== undefined).join('/')}`
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return [...counts].map(([name, count]) => `${count} ${name}`).join(', ')
}

/** Servers whose status says that they are exported. */
async function countTold(client: KubeClient, namespace: string): Promise<number> {
  const { items } = await client.listAll(serverType, { namespace })
  const told = (item: KubeObject) =>
    (item as { status?: { conditions?: { type: string; reason: string }[] } }).status?.conditions?.some(
      ({ type, reason }) => type === 'RegistryExport' && reason === 'Exported',
    )
  return items.filter((item) => told(item) === true).length
}

/** Until no request but watches comes for a while. */
async function untilQuiet({ proxy, quietMs }: OperatorBench): Promise<void> {
  proxy.taken()
  for (let round = 0; round < 60; round++) {
    await sleep(quietMs)
    if (proxy.taken().filter((line) => !isWatch(line)).length === 0) return
  }
  throw new Error('the operator never came to rest')
}

async function exportedText(client: KubeClient): Promise<string> {
  const { items } = await client.list(configMaps, { namespace: HOME })
  return items
    .flatMap(({ metadata, data }) => (metadata.name.startsWith('all-registry-export') ? [data?.['registry.json'] ?? ''] : []))
    .join()
}

async function reconcilesOf(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  return [...text.matchAll(/^thv_operator_reconciles_total\{[^}]*\} (\d+)/gm)].reduce((sum, [, count]) => sum + Number(count), 0)
}
