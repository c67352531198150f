import { randomBytes } from 'node:crypto'
import { describe, inject } from 'vitest'
import type { ClusterAccess } from './cluster-access.ts'
import { waitForDefaultAccount } from './default-account.ts'
import type {} from './global-setup.ts'
import { apiRequest } from './http-request.ts'
import { isExcluded, type Need } from './process/needs.ts'

export type { ClusterAccess } from './cluster-access.ts'

/**
 * The one control plane of this vitest run: API server and controllers, no node. Files share it, two at a time, so each works in namespaces
 * of its own.
 */
export function sharedCluster(): ClusterAccess {
  const cluster = provided()
  if (!cluster) throw new Error('no API server in this run: use describeCluster in a file *.cluster.test.ts')
  return cluster
}

/** `describe`, or skipped where no API server can run (never in CI: there the run fails before). See needs.ts for `needs`. */
export function describeCluster(name: string, fn: () => void, { needs = [] }: { readonly needs?: readonly Need[] } = {}): void {
  if (isExcluded(name, needs)) return
  if (provided()) describe(name, fn)
  else describe.skip(name, fn)
}

/** Creates a unique namespace; with controllers it is ready for pods, so its `default` account is there. It is left behind. */
export async function testNamespace(prefix = 'test', cluster: ClusterAccess = sharedCluster()): Promise<string> {
  const name = `${prefix}-${randomBytes(5).toString('hex')}`
  if ((await createNamespace(name, cluster)) === 409) throw new Error(`namespace ${name} exists already`)
  if (cluster.form !== 'api-server') await waitForDefaultAccount(name, cluster)
  return name
}

/** For manifests that name their namespace. Other files may use the same one: take care of what you create in it. */
export async function ensureNamespace(name: string, cluster: ClusterAccess = sharedCluster()): Promise<void> {
  await createNamespace(name, cluster)
}

async function createNamespace(name: string, cluster: ClusterAccess): Promise<201 | 409> {
  const { status, text } = await apiRequest(cluster, '/api/v1/namespaces', { method: 'POST', body: { metadata: { name } } })
  if (status !== 201 && status !== 409) throw new Error(`namespace ${name} was not created: ${status} ${text}`)
  return status
}

function provided(): ClusterAccess | undefined {
  return inject('thvCluster')
}
