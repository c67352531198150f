import { bearerToken, createKubeClient, type KubeClient, namespaces } from '@thv/kube'
import { installCrds } from '@thv/resources/testing/install-crds'
import { startApiServer } from '@thv/testkit/cluster/api-server'
import { ensureBinaries } from '@thv/testkit/cluster/programs/binaries'
import type { Figure } from '../figure.ts'
import { changeServers, createServers, untilAllDone, watchProgress } from '../operator/server-load.ts'
import { startMeasured } from '../proxy/measured-process.ts'
import { memoryOf, untilQuiet } from './process-memory.ts'
import { type RssSeries, recordRss } from './rss-series.ts'
import type { State } from './states.ts'

export const SERVERS = Number(process.env['BENCH_SERVERS'] ?? 1_000)
/** Two are enough for a collection, but there are ten between two of them. A busy machine takes a while until the last write is done. */
const QUIET = { seconds: 15, limitMs: 180_000 }

/** RSS of the operator after 1,000 servers were created and it had time to settle; the same API server for both, one after the other. */
export async function measureOperator(
  states: readonly State[],
  log: (line: string) => void,
): Promise<{ figures: Figure[]; series: RssSeries[] }> {
  await ensureBinaries({ log })
  await using server = await startApiServer()
  const client = createKubeClient({ server: server.url, tls: { ca: server.caPem }, auth: bearerToken(server.adminToken) })
  const settled = new Map<State['name'], number>()
  const series: RssSeries[] = []
  try {
    await installCrds(client)
    for (const state of states) {
      log(`operator with ${SERVERS} servers, ${state.name} …`)
      const measured = await measureOne(state, { client, kubeconfig: server.kubeconfigPath, log })
      settled.set(state.name, measured.settledMb)
      series.push(measured.series)
    }
  } finally {
    await client.close()
  }
  const value = (name: State['name']) => settled.get(name) ?? Number.NaN
  const aim = { of: 'ratio' as const, limit: 0.58 }
  const name = `operator with ${SERVERS} servers, RSS`
  return { figures: [{ name, unit: 'MB', value: value('now'), baseline: value('before'), aim }], series }
}

/** In a namespace of its own; the operator sees no other. */
async function measureOne(
  state: State,
  { client, kubeconfig, log }: { client: KubeClient; kubeconfig: string; log: (line: string) => void },
) {
  const namespace = `memory-${state.name}`
  await client.create(namespaces, { metadata: { name: namespace } })
  await using operator = await startMeasured({
    script: 'apps/operator/src/main.ts',
    bundle: await state.bundle('operator'),
    args: ['--kubeconfig', kubeconfig, '--metrics-bind-address', '0', '--health-probe-bind-address', '0'],
    env: { ...state.env, LOG_LEVEL: 'warn', WATCH_NAMESPACE: namespace },
  })
  const recording = recordRss(state.name, operator.pid)
  const progress = await watchProgress(client, namespace)
  const started = performance.now()
  await createServers(client, { namespace, count: SERVERS })
  log(`done after ${(await untilAllDone(progress, { started, count: SERVERS })).toFixed(0)} s`)
  await progress.close()
  const rest = async () => {
    if (!(await untilQuiet(operator.pid, QUIET))) log(`the operator was not quiet for ${QUIET.seconds} s: its memory is that of a busy one`)
  }
  await rest()
  await changeServers(client, namespace)
  await rest()
  const settledMb = (await memoryOf([operator.pid])).rssMb
  const series = recording.stop()
  await operator.terminate()
  return { settledMb, series }
}
