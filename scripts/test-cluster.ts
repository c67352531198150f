import { writeFileSync } from 'node:fs'
import { startControlPlane } from '@thv/testkit/cluster/control-plane'

/*
 * A real control plane that stays, for working on one file of cluster tests:
 *   node scripts/test-cluster.ts /tmp/cluster.json      and in another terminal
 *   THV_TEST_CLUSTER=/tmp/cluster.json npx vitest run --project cluster FILE
 */

const file = process.argv[2]
if (file === undefined) {
  console.error('usage: node scripts/test-cluster.ts FILE')
  process.exit(2)
}
const cluster = await startControlPlane()
const { form, url, caPem, adminToken, kubeconfigPath, kubectlPath, version } = cluster
writeFileSync(file, JSON.stringify({ form, url, caPem, adminToken, kubeconfigPath, kubectlPath, version }), { mode: 0o600 })
console.log(`control plane ${version} at ${url}; kubectl --kubeconfig ${kubeconfigPath}; Ctrl-C stops it`)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void cluster.stop().then(() => process.exit(0)))
setInterval(() => undefined, 60_000)
