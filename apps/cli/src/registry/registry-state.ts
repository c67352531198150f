import type { KubeClient } from '@thv/kube/client/client'
import { pods } from '@thv/kube/objects/resource-types'
import { plainCall } from '../local-platform/plain-call.ts'
import { podTrouble } from '../local-platform/pod-trouble.ts'
import { refusedWrite } from '../local-platform/refused-write.ts'
import type { ServerState } from '../platform/server-states.ts'
import { plainText } from '../text/plain-text.ts'
import { REGISTRY_KEY, registryType } from './platform-registry.ts'

/** Its name among the states; a server's has its namespace before it if it is not the default one. */
export const REGISTRY = 'the registry'

const ASK_LIMIT_MS = 2_000
const POD_LABELS = `toolhive-name=${REGISTRY_KEY.name},app.kubernetes.io/component=registry-api`

/** How far the registry of the platform is; undefined where there is none. */
export async function registryState(client: KubeClient, signal?: AbortSignal): Promise<ServerState | undefined> {
  const registry = await client.tryGet(registryType, REGISTRY_KEY, { signal })
  if (registry === undefined) return undefined
  const { metadata, status = {} } = registry
  const name = REGISTRY
  if (status.url !== undefined && (await isServing(status.url, signal)))
    return { name, state: 'ready', url: `${status.url}/registry`, detail: '' }
  const { items } = await client.list(pods, { namespace: REGISTRY_KEY.namespace, labelSelector: POD_LABELS, signal })
  const trouble = items.map(podTrouble).find((each) => each !== undefined)
  if (trouble !== undefined) return { name, state: 'failing', detail: trouble }
  const refused = refusedWrite(registry)
  if (refused !== undefined) return { name, state: 'failing', detail: refused }
  if (status.phase === 'Failed' && status.observedGeneration === metadata.generation)
    return { name, state: 'failing', detail: plainText(status.message) || 'failed' }
  if (status.phase === undefined) return { name, state: 'waiting', detail: 'for the operator' }
  return { name, state: 'starting', detail: '(not responding yet)' }
}

async function isServing(url: string, signal?: AbortSignal): Promise<boolean> {
  try {
    const limit = AbortSignal.timeout(ASK_LIMIT_MS)
    const asked = { signal: signal ? AbortSignal.any([signal, limit]) : limit, until: 'head' } as const
    const { status } = await plainCall(`${url}/registry/v0.1/servers?limit=1`, asked)
    // A configuration of the user's own may ask for a token.
    return status === 200 || status === 401
  } catch (error) {
    if (signal?.aborted) throw error
    return false // not listening yet: the caller tries again
  }
}
