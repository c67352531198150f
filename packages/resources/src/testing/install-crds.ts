import { createHash } from 'node:crypto'
import { bearerToken, configMaps, createKubeClient, isNotFound, type KubeClient, type ResourceType } from '@thv/kube'
import { customResourceDefinitions } from '@thv/kube/objects/resource-types'
import type { ClusterAccess } from '@thv/testkit/cluster/cluster-access'
import { KINDS } from '../kinds/kinds.ts'
import { crdOf } from '../schema/crd.ts'
import { API_GROUP, SERVED_VERSIONS } from '../schema/kind-definition.ts'

const READY_WITHIN_MS = 60_000
/** Says which definitions are in the cluster: to apply them again takes the API server a second or two, for every test file. */
const NOTE = { namespace: 'kube-system', name: 'toolhive-test-definitions' }

export function adminClient(access: ClusterAccess, options: { onWarning?: (text: string) => void } = {}): KubeClient {
  return createKubeClient({ server: access.url, tls: { ca: access.caPem }, auth: bearerToken(access.adminToken) }, options)
}

/** Puts all our kinds into a test cluster and waits until they are served. Safe to call from every test file. */
export async function installCrds(client: KubeClient): Promise<void> {
  const definitions = KINDS.map((definition) => crdOf(definition))
  const hash = createHash('sha256').update(JSON.stringify(definitions)).digest('hex')
  if ((await client.tryGet(configMaps, NOTE))?.data?.['hash'] === hash && (await areServed(client))) return
  for (const definition of definitions) {
    await client.apply(customResourceDefinitions, definition as never, { fieldManager: 'test', force: true })
  }
  const deadline = performance.now() + READY_WITHIN_MS
  for (const { plural } of KINDS) await established(client, `${plural}.${API_GROUP}`, deadline)
  // A definition is Established a moment before the server acts upon it.
  while (!(await areServed(client))) {
    if (performance.now() > deadline) throw new Error('the kinds are Established, but not served')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  await client.apply(configMaps, { metadata: NOTE, data: { hash } }, { fieldManager: 'test', force: true })
}

async function established(client: KubeClient, name: string, deadline: number): Promise<void> {
  for (;;) {
    const crd = await client.get(customResourceDefinitions, { name })
    if (crd.status?.conditions?.some((condition) => condition.type === 'Established' && condition.status === 'True')) return
    if (performance.now() > deadline) throw new Error(`${name} is not Established: ${JSON.stringify(crd.status?.conditions)}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

async function areServed(client: KubeClient): Promise<boolean> {
  const types = KINDS.flatMap(({ kind, plural }) =>
    SERVED_VERSIONS.map((version): ResourceType => ({ group: API_GROUP, version, kind, plural, namespaced: true })),
  )
  try {
    await Promise.all(types.map((type) => client.list(type, { namespace: 'default', limit: 1 })))
    return true
  } catch (error) {
    if (isNotFound(error)) return false
    throw error
  }
}
