import { bearerToken, createKubeClient, type KubeClient } from '@thv/kube'
import { customResourceDefinitions } from '@thv/kube/resource-types'
import type { ClusterAccess } from '@thv/testkit/cluster/cluster-access'
import { KINDS } from '../kinds.ts'
import { crdOf } from '../schema/crd.ts'

const ESTABLISHED_WITHIN_MS = 30_000

export function adminClient(access: ClusterAccess, options: { onWarning?: (text: string) => void } = {}): KubeClient {
  return createKubeClient({ server: access.url, tls: { ca: access.caPem }, auth: bearerToken(access.adminToken) }, options)
}

/** Puts all our kinds into a test cluster and waits until they are served. Safe to call from every test file. */
export async function installCrds(client: KubeClient): Promise<void> {
  for (const definition of KINDS) {
    await client.apply(customResourceDefinitions, crdOf(definition) as never, { fieldManager: 'test', force: true })
  }
  const deadline = performance.now() + ESTABLISHED_WITHIN_MS
  for (const definition of KINDS) {
    const name = `${definition.plural}.toolhive.stacklok.dev`
    for (;;) {
      const crd = await client.get(customResourceDefinitions, { name })
      if (crd.status?.conditions?.some((condition) => condition.type === 'Established' && condition.status === 'True')) break
      if (performance.now() > deadline) throw new Error(`${name} is not Established: ${JSON.stringify(crd.status?.conditions)}`)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}
