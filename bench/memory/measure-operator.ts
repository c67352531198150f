import { bearerToken, createKubeClient, type KubeClient, namespaces } from '@thv/kube'
import { installCrds } from '@thv/resources/testing/install-crds'
import { startApiServer } from '@thv/testkit/cluster/api-server'
import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { ensureBinaries } from '@thv/testkit/cluster/programs/binaries'
import type { Aim, Figure } from '../figure.ts'
import { changeServers, createServers, untilAllDone, watchProgress } from '../operator/server-load.ts'
import { startMeasured } from '../proxy/measured-process.ts'
import { memoryOf, untilQuiet } from './process-memory.ts'
import { type RssSeries, recordRss } from './rss-series.ts'
import type { State } from './states.ts'

export const SERVERS = Number(process.env['BENCH_SERVERS'] ?? 1_000)
/**
 * Two are enough for a collection, but there are ten between two of them, and V8's pool is emptied thirteen later. A busy machine takes a
 * while until the last write is done.
 */
const QUIET = { seconds: 25, limitMs: 180_000 }

const RELEASES = 'toolhive_memory_releases_total{result="done"}'
const WORST_DELAY = 'nodejs_eventloop_delay_seconds{quantile="1"}'

/** RSS of the operator after 1,000 servers were created and it had time to settle; the same API server for both, one after the other. */
export async function measureOperator(
  states: readonly State[],
  log: (line: string) => void,
): Promise<{ figures: Figure[]; series: RssSeries[] }> {
  await ensureBinaries({ log })
  await using server = await startApiServer()
  const client = createKubeClient({ server: server.url, tls: { ca: server.caPem }, auth: bearerToken(server.adminToken) })
  const measurements = new Map<State['name'], Measured>()
  const series: RssSeries[] = []
  try {
    await installCrds(client)
    for (const state of states) {
      log(`operator with ${SERVERS} servers, ${state.name} …`)
      const measured = await measureOne(state, { client, kubeconfig: server.kubeconfigPath, log })
      measurements.set(state.name, measured)
      series.push(measured.series)
    }
  } finally {
    await client.close()
  }
  const value = (name: State['name'], what: 'settledMb' | 'stallMs') => measurements.get(name)?.[what] ?? Number.NaN
  const figure = (name: string, unit: string, { of, baseline, aim }: { of: 'settledMb' | 'stallMs'; baseline: number; aim: Aim }) => ({
    ...{ name: `operator with ${SERVERS} servers, ${name}`, unit, value: value('now', of), baseline, aim },
  })
  return {
    figures: [
      figure('RSS', 'MB', { of: 'settledMb', baseline: value('before', 'settledMb'), aim: { of: 'ratio', limit: 0.58 } }),
      figure('longest stall while it gives memory back, over 0', 'ms', {
        ...{ of: 'stallMs', baseline: 0, aim: { of: 'difference', limit: 50 } },
      }),
    ],
    series,
  }
}

interface Measured {
  readonly settledMb: number
  /** Of the event loop, from the end of the work until it was quiet. */
  readonly stallMs: number
  readonly series: RssSeries
}

/** In a namespace of its own; the operator sees no other. */
async function measureOne(
  state: State,
  { client, kubeconfig, log }: { client: KubeClient; kubeconfig: string; log: (line: string) => void },
): Promise<Measured> {
  const namespace = `memory-${state.name}`
  await client.create(namespaces, { metadata: { name: namespace } })
  const metricsPort = await freePort()
  await using operator = await startMeasured({
    script: 'apps/operator/src/main.ts',
    bundle: await state.bundle('operator'),
    args: ['--kubeconfig', kubeconfig, '--metrics-bind-address', `127.0.0.1:${metricsPort}`, '--health-probe-bind-address', '0'],
    env: { ...state.env, LOG_LEVEL: 'warn', WATCH_NAMESPACE: namespace },
  })
  const recording = recordRss(state.name, operator.pid)
  const progress = await watchProgress(client, namespace)
  const started = performance.now()
  await createServers(client, { namespace, count: SERVERS })
  log(`done after ${(await untilAllDone(progress, { started, count: SERVERS })).toFixed(0)} s`)
  await progress.close()
  const metric = async (name: string) => {
    const page = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
    return Number(
      page
        .split('\n')
        .find((line) => line.startsWith(`${name} `))
        ?.split(' ')[1] ?? 0,
    )
  }
  let stallMs = 0
  const rest = async () => {
    const releases = await metric(RELEASES) // a page starts the next interval of the stalls
    if (!(await untilQuiet(operator.pid, QUIET))) log(`the operator was not quiet for ${QUIET.seconds} s: its memory is that of a busy one`)
    const stall = 1_000 * (await metric(WORST_DELAY))
    stallMs = Math.max(stallMs, stall)
    log(`${(await metric(RELEASES)) - releases} collections, longest stall ${stall.toFixed(0)} ms`)
  }
  await rest()
  await changeServers(client, namespace)
  await rest()
  const settledMb = (await memoryOf([operator.pid])).rssMb
  const series = recording.stop()
  await operator.terminate()
  return { settledMb, stallMs, series }
}
