import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bearerToken, createKubeClient } from '@thv/kube'
import { installCrds } from '@thv/resources/testing/install-crds'
import { startApiServer } from '@thv/testkit/cluster/api-server'
import { ensureBinaries } from '@thv/testkit/cluster/programs/binaries'
import { installGatewayApi } from '@thv/testkit/gateway-api/gateway-api'
import { createExports, createPlainRoutes, namespaceOf, type Size } from './export/cluster-data.ts'
import { type CountingProxy, startCountingProxy } from './export/counting-proxy.ts'
import { measureOperator } from './export/measure-operator.ts'
import { measureSource } from './export/measure-source.ts'
import { measureWatch } from './export/measure-watch.ts'
import { type Access, type ClusterRegistry, kubeconfigOf, startClusterRegistry } from './export/registry-subject.ts'
import type { Figure } from './figure.ts'

/*
 * The live cluster in the registry, on the real API server: the source, a registry server that watches or polls it, and the operator
 * that writes the export. BENCH_QUICK=1 for a look.
 */

const isQuick = process.env['BENCH_QUICK'] === '1'
const SIZE: Size = isQuick ? { namespaces: 10, perNamespace: 50 } : { namespaces: 50, perNamespace: 100 }
const ALL = SIZE.namespaces * SIZE.perNamespace
/** A tenth of the namespaces, for what must not grow with their number; and for the operator, which makes five objects for each server. */
const FEW = SIZE.namespaces / 10
const ROUNDS = isQuick ? 1 : 3
const CHANGES = isQuick ? 3 : 10
const STORM = isQuick ? 200 : 1_000
const QUIET_MS = 3_000

export async function run(log: (line: string) => void): Promise<Figure[]> {
  await ensureBinaries({ log })
  await using server = await startApiServer()
  const client = createKubeClient({ server: server.url, tls: { ca: server.caPem }, auth: bearerToken(server.adminToken) })
  await installCrds(client)
  await installGatewayApi(client)
  await using proxy = await startCountingProxy(server)
  const direct: Access = { url: server.url, caPem: server.caPem, token: server.adminToken }
  const counted: Access = { ...direct, url: proxy.url, caPem: proxy.caPem }

  log(`creating ${ALL} exported servers, half of them behind routes …`)
  await createExports(client, SIZE)
  const figures: Figure[] = []
  {
    log('poll mode, before and after routes that opt in to nothing …')
    await using registry = await startClusterRegistry({ access: counted, watch: false, count: ALL })
    const before = await requestsOfSync(registry, proxy)
    await createPlainRoutes(client, SIZE)
    const after = await requestsOfSync(registry, proxy)
    figures.push(
      { name: 'poll mode: requests per interval', unit: '', value: after.rest, baseline: before.rest, aim: { of: 'ratio', limit: 1 } },
      { name: 'poll mode: GETs of Services', unit: '', value: after.services, baseline: ALL / 2, aim: { of: 'ratio', limit: 1 } },
    )
  }
  log('the first result …')
  figures.push(...(await measureSource(direct, ROUNDS)))
  {
    await using registry = await startClusterRegistry({ access: counted, watch: true, count: ALL })
    const namespaces = Array.from({ length: FEW }, (_, team) => namespaceOf(team))
    await using small = await startClusterRegistry({ access: direct, watch: true, namespaces, count: ALL / 10 })
    figures.push(
      ...(await measureWatch({ client, proxy, registry, small, size: SIZE, quietMs: QUIET_MS, changes: CHANGES, storm: STORM, log })),
    )
  }
  const folder = await mkdtemp(join(tmpdir(), 'thv-bench-operator-'))
  const kubeconfigPath = join(folder, 'kubeconfig')
  await writeFile(kubeconfigPath, JSON.stringify(kubeconfigOf(counted)))
  const { perNamespace } = SIZE
  figures.push(
    ...(await measureOperator({ client, proxy, kubeconfigPath, teams: FEW, perNamespace, changes: CHANGES, quietMs: QUIET_MS, log })),
  )
  await rm(folder, { recursive: true })
  await client.close()
  return figures
}

/** Pages after the first of a list are left out: there is one for each 500 objects. */
async function requestsOfSync(registry: ClusterRegistry, proxy: CountingProxy): Promise<{ services: number; rest: number }> {
  proxy.taken()
  await registry.sync()
  const all = proxy.taken().filter((line) => !line.includes('continue='))
  const services = all.filter((line) => /\/services\//.test(line)).length
  return { services, rest: all.length - services }
}
