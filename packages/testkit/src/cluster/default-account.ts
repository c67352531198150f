import { setTimeout as sleep } from 'node:timers/promises'
import { PATIENCE_MS } from '../run/patience.ts'
import type { ClusterAccess } from './cluster-access.ts'
import { apiRequest } from './http-request.ts'

/** The controller manager makes the account `default` a moment after its namespace; until then no pod is admitted there. */
export async function waitForDefaultAccount(namespace: string, cluster: ClusterAccess, limitMs = PATIENCE_MS): Promise<void> {
  const deadline = performance.now() + limitMs
  for (;;) {
    const { status } = await apiRequest(cluster, `/api/v1/namespaces/${namespace}/serviceaccounts/default`)
    if (status === 200) return
    if (performance.now() > deadline) throw new Error(`no account "default" in namespace ${namespace} within ${limitMs} ms`)
    await sleep(20)
  }
}
