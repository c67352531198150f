import { noKnownServers } from '@thv/catalog/discover/entry/known-servers'
import { systemClock } from '@thv/kernel/clock'
import { releaseMemoryWhenIdle } from '@thv/kernel/idle-memory'
import { bearerToken, createKubeClient } from '@thv/kube'
import { ClusterWatch } from '../../apps/registry/src/kubernetes/cluster-watch.ts'

/* The kubernetes source in watch mode and nothing else: until its first result, and what it keeps then. It gives memory back as all our programs do. */

const { THV_SERVER = '', THV_TOKEN = '', THV_CA = '' } = process.env
const started = performance.now()
const watch = new ClusterWatch({
  source: {},
  exportOptions: { mode: 'server', crossNamespaceGateway: 'accepted' },
  intervalMs: 3_600_000,
  debounceMs: 1_000,
  clock: systemClock,
  random: Math.random,
  connect: async () => createKubeClient({ server: THV_SERVER, tls: { ca: THV_CA }, auth: bearerToken(THV_TOKEN) }),
  onChange: () => {},
})
const { count } = await watch.read(noKnownServers, { signal: AbortSignal.timeout(300_000) })
process.stdout.write(`listed ${count} in ${performance.now() - started} ms\n`)
releaseMemoryWhenIdle({ signal: new AbortController().signal, onCollected: () => process.stdout.write('collected\n') })
