import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { mountRoot } from '@thv/kernel/mounted-path'
import { type Connection, isNotFound, type KubeClient } from '@thv/kube'
import type { Platform } from '@thv/kube/objects/pod-security'

type Env = Readonly<Record<string, string | undefined>>

const NAMESPACE_FILE = 'var/run/secrets/kubernetes.io/serviceaccount/namespace'

/** The pod's own namespace, else POD_NAMESPACE, else that of the kubeconfig, else `default`. */
export async function resolveNamespace(options: { env: Env; connection: Connection; root?: string }): Promise<string> {
  const { env, connection, root = mountRoot(env) } = options
  const mounted = await readFile(join(root, NAMESPACE_FILE), 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return ''
    throw error
  })
  return mounted.trim() || env['POD_NAMESPACE'] || connection.namespace || 'default'
}

/** OPERATOR_OPENSHIFT decides; without it, whether the cluster serves Routes. A cluster that does not say is taken for plain Kubernetes. */
export async function detectPlatform(client: Pick<KubeClient, 'raw'>, env: Env, onError: (error: unknown) => void): Promise<Platform> {
  const told = env['OPERATOR_OPENSHIFT']
  if (told) return told === 'true' ? 'openshift' : 'kubernetes'
  try {
    await client.raw('GET', '/apis/route.openshift.io/v1', { timeoutMs: 5_000 })
    return 'openshift'
  } catch (error) {
    if (!isNotFound(error)) onError(error)
    return 'kubernetes'
  }
}
