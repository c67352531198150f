import { setTimeout as sleep } from 'node:timers/promises'
import {
  bearerToken,
  configMaps,
  createKubeClient,
  deployments,
  type KubeClient,
  type KubeObject,
  namespaces,
  type ResourceType,
  roleBindings,
  roles,
  serviceAccounts,
  services,
} from '@thv/kube'
import { mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { installCrds } from '@thv/resources/testing/install-crds'
import { startApiServer } from '@thv/testkit/cluster/api-server'
import { ensureBinaries } from '@thv/testkit/cluster/programs/binaries'
import type { Figure } from './figure.ts'
import { difference, requestsByVerb } from './operator/api-requests.ts'
import { changeServers, createServers, inParallel, untilAllDone, watchProgress } from './operator/server-load.ts'
import { startMeasured } from './proxy/measured-process.ts'

/*
 * One thousand MCPServers created at once: how long until all their children are applied and their first status is written, and what
 * that costs. The baseline is a bare client that sends the very same writes. ToolHive (Go), on such a machine: 232 s for 1,000, 24
 * requests each and still writing, 36 s CPU, 158 MB.
 */

const SERVERS = Number(process.env['BENCH_SERVERS'] ?? 1_000)
const QUIET_MS = 3_000

type Log = (line: string) => void

export async function run(log: Log): Promise<Figure[]> {
  await ensureBinaries({ log })
  await using server = await startApiServer()
  const client = createKubeClient({ server: server.url, tls: { ca: server.caPem }, auth: bearerToken(server.adminToken) })
  await installCrds(client)
  for (const name of ['bench', 'bare']) await client.create(namespaces, { metadata: { name } })

  await using operator = await startMeasured({
    script: 'apps/operator/src/main.ts',
    args: ['--kubeconfig', server.kubeconfigPath, '--metrics-bind-address', '0', '--health-probe-bind-address', '0'],
    env: { LOG_LEVEL: 'warn' },
  })
  await sleep(QUIET_MS)
  const idle = await operator.usage()
  const progress = await watchProgress(client, 'bench')
  const before = await requestsByVerb(client)
  log(`creating ${SERVERS} MCPServers …`)
  const started = performance.now()
  await createServers(client, { namespace: 'bench', count: SERVERS })
  const seconds = await untilAllDone(progress, { started, count: SERVERS })
  await progress.close()
  await sleep(QUIET_MS)
  const after = await requestsByVerb(client)
  const busy = await operator.usage()
  const settled = await operator.usage({ gc: true })
  const perServer = (difference(before, after) - SERVERS) / SERVERS // our own creates

  log('a change that concerns no object, and a quiet while …')
  const quiet = await noOpWrites(client)

  await operator.terminate() // it would look after those too
  log('the same writes by a bare client …')
  const bareSeconds = await bareWrites(client)
  await client.close()
  return [
    {
      name: `${SERVERS} MCPServers until all is applied`,
      unit: 's',
      value: seconds,
      baseline: bareSeconds,
      aim: { of: 'ratio', limit: 1.25 },
    },
    { name: 'API requests per server', unit: '', value: perServer, baseline: 12, aim: { of: 'ratio', limit: 1 } },
    { name: 'writes of a resync without changes', unit: '', value: quiet, baseline: 0, aim: { of: 'difference', limit: 0.5 } },
    { name: 'memory of the operator at work', unit: 'MB', value: busy.rssKb / 1024, baseline: idle.rssKb / 1024 },
    {
      name: 'memory with 1,000 servers, over 0',
      unit: 'MB',
      value: settled.rssKb / 1024,
      baseline: 0,
      aim: { of: 'difference', limit: 150 },
    },
    { name: 'heap of the operator in use', unit: 'MB', value: settled.heapKb / 1024, baseline: idle.heapKb / 1024 },
    { name: 'CPU of the operator', unit: 's', value: (busy.cpuUs - idle.cpuUs) / 1e6, baseline: idle.cpuUs / 1e6 },
  ]
}

/** Every object is looked at again (their Secret-free namespaces get a label on each server), and nothing may be written. */
async function noOpWrites(client: KubeClient): Promise<number> {
  const before = await requestsByVerb(client)
  const changed = await changeServers(client, 'bench')
  await sleep(QUIET_MS)
  return difference(before, await requestsByVerb(client), 'writes') - changed
}

/** In the order in which the operator sends them, with as many at a time. */
async function bareWrites(client: KubeClient): Promise<number> {
  const kinds: ResourceType<KubeObject>[] = [serviceAccounts, roles, roleBindings, configMaps, services, deployments]
  const lists = await Promise.all(kinds.map((type) => client.listAll(type, { namespace: 'bench' })))
  const byServer = new Map<string, { type: ResourceType<KubeObject>; object: KubeObject }[]>()
  kinds.forEach((type, at) => {
    for (const item of lists[at]?.items ?? []) {
      const owner = item.metadata.ownerReferences?.find(({ kind }) => kind === 'MCPServer')?.name
      if (owner === undefined) continue
      const writes = byServer.get(owner) ?? []
      byServer.set(owner, [...writes, { type, object: bare(item) }])
    }
  })
  const { items: servers } = await client.listAll(mcpServerType, { namespace: 'bench' })
  const started = performance.now()
  await inParallel(servers, async ({ metadata, spec, status }) => {
    await client.create(mcpServerType, { metadata: { name: metadata.name, namespace: 'bare' }, spec })
    for (const { type, object } of byServer.get(metadata.name) ?? [])
      await client.apply(type, object, { fieldManager: 'bare', force: true })
    const key = { namespace: 'bare', name: metadata.name }
    await client.patch(mcpServerType, key, { kind: 'merge', body: { status } }, { subresource: 'status' })
  })
  return (performance.now() - started) / 1000
}

/** As it was applied, in the other namespace. */
function bare(object: KubeObject): KubeObject {
  const { name, labels, annotations } = object.metadata
  const { metadata: _, status: __, ...rest } = object as KubeObject & { status?: unknown }
  const copy = structuredClone(rest) as Record<string, unknown>
  const spec = copy['spec'] as Record<string, unknown> | undefined
  if (object.kind === 'Service' && spec) for (const field of ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy']) delete spec[field]
  return { ...copy, metadata: { name, namespace: 'bare', ...(labels && { labels }), ...(annotations && { annotations }) } }
}
