import { writeFileSync } from 'node:fs'
import { accessOf } from '@thv/testkit/cluster/cluster-access'
import { startControlPlane } from '@thv/testkit/cluster/control-plane'
import { startEmbeddedServer } from '@thv/testkit/embedded/embedded-server'

/*
 * A control plane that stays, for working on one file of cluster tests: a real one, or with --embedded our own.
 *   node scripts/test-cluster.ts /tmp/cluster.json [--embedded]      and in another terminal
 *   THV_TEST_CLUSTER=/tmp/cluster.json npx vitest run --project cluster FILE      (our own: --project embedded)
 */

const [file, flag] = process.argv.slice(2)
if (file === undefined || (flag !== undefined && flag !== '--embedded')) {
  console.error('usage: node scripts/test-cluster.ts FILE [--embedded]')
  process.exit(2)
}
const cluster = flag === '--embedded' ? await startEmbeddedServer({ controllers: true }) : await startControlPlane()
const { url, version, kubeconfigPath } = cluster
writeFileSync(file, JSON.stringify(accessOf(cluster)), { mode: 0o600 })
console.log(`control plane ${version} at ${url}; kubectl --kubeconfig ${kubeconfigPath}; Ctrl-C stops it`)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void cluster.stop().then(() => process.exit(0)))
setInterval(() => undefined, 60_000)
