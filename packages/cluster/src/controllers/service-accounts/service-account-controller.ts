import {
  configMaps,
  createController,
  done,
  isAlreadyExists,
  isForbidden,
  isNotFound,
  type KubeObject,
  namespaces,
  type ObjectKey,
  type Outcome,
  type ReconcileContext,
  serviceAccounts,
  watchMapped,
  watchSelf,
} from '@thv/kube'
import type { ControllerEnv, RunningController } from '../controller-env.ts'

const ACCOUNT = 'default'
const ROOT_CA = 'kube-root-ca.crt'

export interface ServiceAccountSettings {
  /** CA by which pods trust the API server, in each namespace as ConfigMap `kube-root-ca.crt`. Without it there is none. */
  readonly rootCaPem?: string | undefined
}

/** Each namespace has an account that pods run as when they name none, and the authority of the API server. */
export function serviceAccountController(env: ControllerEnv, settings: ServiceAccountSettings = {}): RunningController {
  const { client, caches } = env
  const spaces = caches.of(namespaces)
  const accounts = caches.metadataOf(serviceAccounts, { fieldSelector: `metadata.name=${ACCOUNT}` })
  const authorities = caches.of(configMaps, { fieldSelector: `metadata.name=${ROOT_CA}` })

  async function reconcile({ name: namespace }: ObjectKey, { signal }: ReconcileContext): Promise<Outcome> {
    const space = spaces.store.get({ name: namespace })
    if (space === undefined || space.metadata.deletionTimestamp !== undefined) return done
    if (accounts.store.get({ namespace, name: ACCOUNT }) === undefined)
      await unlessTooLate(client.create(serviceAccounts, { metadata: { namespace, name: ACCOUNT } }, { signal }))
    if (settings.rootCaPem !== undefined) await keepAuthority(namespace, settings.rootCaPem, signal)
    return done
  }

  async function keepAuthority(namespace: string, pem: string, signal: AbortSignal): Promise<void> {
    const current = authorities.store.get({ namespace, name: ROOT_CA })
    const data = { 'ca.crt': pem }
    if (current === undefined) await unlessTooLate(client.create(configMaps, { metadata: { namespace, name: ROOT_CA }, data }, { signal }))
    else if (current.data?.['ca.crt'] !== pem || Object.keys(current.data).length !== 1)
      await unlessTooLate(client.update(configMaps, { ...current, data }, { signal }))
  }

  return createController({
    name: 'service-accounts',
    reconcile,
    sources: [watchSelf(spaces), watchMapped(accounts, namespaceKey), watchMapped(authorities, namespaceKey)],
    concurrency: 2,
    clock: env.clock,
    onError: env.onError,
  })
}

function namespaceKey({ metadata }: KubeObject): ObjectKey[] {
  return metadata.namespace === undefined ? [] : [{ name: metadata.namespace }]
}

/** Somebody else made it, or the namespace has begun to go: both are seen by the caches soon. */
async function unlessTooLate(call: Promise<KubeObject>): Promise<void> {
  try {
    await call
  } catch (error) {
    if (!isAlreadyExists(error) && !isNotFound(error) && !isForbidden(error)) throw error
  }
}
