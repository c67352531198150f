import { setTimeout as sleep } from 'node:timers/promises'
import { bearerToken, configMaps, createKubeClient, namespaces } from '@thv/kube'
import { startApiServer } from '@thv/testkit/cluster/api-server'
import { ensureBinaries } from '@thv/testkit/cluster/programs/binaries'
import { interleaved, measure } from './child.ts'
import { best, type Figure } from './figure.ts'
import { REPLAY, startReplayServer } from './kube/replay-server.ts'
import type { Report } from './kube/report.ts'

/* Costs of packages/kube. The usual client library was measured at 1.8 s and 88 MB for its import alone. */

const ROUNDS = 5
const OBJECTS = 5_000

type Log = (line: string) => void

export async function run(log: Log): Promise<Figure[]> {
  return [...(await importing()), ...(await syncing(log)), ...(await events(log))]
}

async function importing(): Promise<Figure[]> {
  const { ours, baseline } = await interleaved<Report>(
    ROUNDS,
    () => measure('kube/import-kube.ts'),
    () => measure('kube/import-baseline.ts'),
  )
  const of = (reports: Report[], what: keyof Report) => best(reports.map((report) => report[what]))
  return [
    {
      name: 'import, over undici Agent alone',
      unit: 'ms',
      value: of(ours, 'ms'),
      baseline: of(baseline, 'ms'),
      aim: { of: 'difference', limit: 40 },
    },
    {
      name: 'memory after import',
      unit: 'MB',
      value: of(ours, 'rssMb'),
      baseline: of(baseline, 'rssMb'),
      aim: { of: 'difference', limit: 10 },
    },
  ]
}

async function syncing(log: Log): Promise<Figure[]> {
  await ensureBinaries({ log })
  await using server = await startApiServer()
  const client = createKubeClient({ server: server.url, tls: { ca: server.caPem }, auth: bearerToken(server.adminToken) })
  const namespace = 'bench'
  await client.create(namespaces, { metadata: { name: namespace } })
  log(`creating ${OBJECTS} ConfigMaps …`)
  const names = Array.from({ length: OBJECTS }, (_, index) => `object-${index}`)
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      for (let name = names.pop(); name !== undefined; name = names.pop()) {
        await client.create(configMaps, { metadata: { name, namespace }, data: { text: 'x'.repeat(700) } })
      }
    }),
  )
  await client.close()
  await sleep(1_000) // the server has just worked hard; let its own queues drain
  const env = { THV_SERVER: server.url, THV_TOKEN: server.adminToken, THV_CA: server.caPem, THV_NAMESPACE: namespace }
  const { ours, baseline } = await interleaved<Report & { objects: number }>(
    ROUNDS,
    () => measure('kube/sync-kube.ts', env),
    () => measure('kube/sync-baseline.ts', env),
  )
  for (const { objects } of [...ours, ...baseline]) if (objects !== OBJECTS) throw new Error(`saw ${objects} objects instead of ${OBJECTS}`)
  const of = (reports: Report[], what: keyof Report) => best(reports.map((report) => report[what]))
  return [
    {
      name: `sync of ${OBJECTS} ConfigMaps, over bare pages`,
      unit: 'ms',
      value: of(ours, 'ms'),
      baseline: of(baseline, 'ms'),
      aim: { of: 'ratio', limit: 1.5 },
    },
    { name: 'CPU of that sync', unit: 'ms', value: of(ours, 'cpuMs'), baseline: of(baseline, 'cpuMs'), aim: { of: 'ratio', limit: 1.5 } },
  ]
}

async function events(log: Log): Promise<Figure[]> {
  const server = await startReplayServer()
  const env = { THV_SERVER: server.url }
  const { ours, baseline } = await interleaved<Report & { reconciles?: number }>(
    ROUNDS,
    () => measure('kube/events-kube.ts', env),
    () => measure('kube/events-baseline.ts', env),
  )
  server.close()
  const perEvent = (reports: Report[]) => (best(reports.map((report) => report.cpuMs)) * 1000) / REPLAY.events
  const rate = (reports: Report[]) => REPLAY.events / (best(reports.map((report) => report.ms)) / 1000)
  log(`events per second through watch → queue → reconcile: ${rate(ours).toFixed(0)} (bare lines into a Map: ${rate(baseline).toFixed(0)})`)
  return [
    {
      name: 'CPU per event, watch → queue → reconcile',
      unit: 'µs',
      value: perEvent(ours),
      baseline: perEvent(baseline),
      aim: { of: 'ratio', limit: 3 },
    },
  ]
}
