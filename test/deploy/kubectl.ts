import { spawnSync } from 'node:child_process'
import { sharedCluster } from '@thv/testkit/cluster/test-cluster'

export interface KubectlResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** kubectl on the shared API server, as its administrator. */
export function kubectl(args: readonly string[], input?: string): KubectlResult {
  const { kubectlPath, kubeconfigPath } = sharedCluster()
  const { status, stdout, stderr } = spawnSync(kubectlPath, ['--kubeconfig', kubeconfigPath, ...args], {
    encoding: 'utf8',
    timeout: 60_000,
    maxBuffer: 32 * 1024 * 1024,
    ...(input === undefined ? {} : { input }),
  })
  return { code: status, stdout, stderr }
}

/** The API server's answer to these manifests, with unknown fields reported. */
export function dryRun(manifests: string): KubectlResult {
  const { stderr, ...result } = kubectl(['apply', '--dry-run=server', '--validate=strict', '-f', '-'], manifests)
  return { ...result, stderr: stderr.replaceAll(MADE_ANOTHER_WAY, '') }
}

/** Said of an object that another test of the shared cluster has made, and not by kubectl apply. */
const MADE_ANOTHER_WAY = /^Warning: resource \S+ is missing the kubectl\.kubernetes\.io\/last-applied-configuration annotation .*\n/gm
