import { access } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { programEnv } from '@thv/kernel/program-scope'
import type { Connection } from '../client/connection.ts'
import { inClusterConnection, isInCluster } from './in-cluster.ts'
import { loadKubeconfig } from './kubeconfig.ts'

export interface DefaultConnectionOptions {
  /** From a flag: wins over everything. */
  kubeconfig?: string | undefined
  /** A context can only come from a kubeconfig, so with one the pod's own account is not considered. */
  context?: string | undefined
  env?: Readonly<Record<string, string | undefined>>
  home?: string
  root?: string
  clock?: Clock
}

/** Explicit kubeconfig, then KUBECONFIG, then the pod's service account, then `~/.kube/config`. */
export async function defaultConnection(options: DefaultConnectionOptions = {}): Promise<Connection> {
  const { kubeconfig, context, env = programEnv(), home = homedir(), root, clock } = options
  const common = { env, home, ...(context !== undefined && { context }), ...(clock && { clock }) }
  if (kubeconfig) return await loadKubeconfig({ ...common, path: kubeconfig })
  if (env.KUBECONFIG) return await loadKubeconfig(common)
  if (context === undefined && isInCluster(env)) return await inClusterConnection({ env, ...(root && { root }), ...(clock && { clock }) })
  if (await exists(join(home, '.kube', 'config'))) return await loadKubeconfig(common)
  throw new ThvError(
    'kubeconfig_invalid',
    'no cluster to connect to: no kubeconfig was given, KUBECONFIG is not set, this is not a pod, and ~/.kube/config does not exist',
  )
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  )
}
