import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { sharedCluster } from '@thv/testkit/cluster/test-cluster'

export interface KubectlResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** `kubectl apply -f -` on the shared API server, as a user types it. JSON is YAML, too. */
export async function kubectlApply(object: object): Promise<KubectlResult> {
  const { kubectlPath, kubeconfigPath } = sharedCluster()
  const child = spawn(kubectlPath, ['--kubeconfig', kubeconfigPath, 'apply', '-f', '-'], { timeout: 60_000 })
  child.stdin.end(JSON.stringify(object))
  const ended = new Promise<number | null>((resolve, reject) => child.once('close', resolve).once('error', reject))
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  return { code, stdout, stderr }
}
