import type { TestProject } from 'vitest/node'
import { startApiServer } from './api-server.ts'
import { binariesAvailability } from './binaries.ts'
import type { ClusterAccess } from './cluster-access.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Absent when this machine can neither find nor build the binaries. */
    thvCluster: ClusterAccess
  }
}

/** Vitest calls this once per run, before the first test, and what it returns after the last. */
export async function setup(project: Pick<TestProject, 'provide'>): Promise<(() => Promise<void>) | undefined> {
  const reason = reasonToSkip(process.env)
  if (reason) {
    console.error(`\n!!! NO CLUSTER TESTS: ${reason} !!!\n`)
    return undefined
  }
  const begin = performance.now()
  const server = await startApiServer()
  console.error(`API server ${server.version} ready after ${((performance.now() - begin) / 1000).toFixed(1)} s`)
  const { url, caPem, adminToken, kubeconfigPath, kubectlPath, version } = server
  project.provide('thvCluster', { url, caPem, adminToken, kubeconfigPath, kubectlPath, version })
  return () => server.stop()
}

/** In CI nothing is skipped, and a folder that the user has named must be right: then the start itself fails with the reason. */
export function reasonToSkip(env: NodeJS.ProcessEnv, availability = () => binariesAvailability(env)): string | undefined {
  const ci = env['CI'] !== undefined && !['', '0', 'false'].includes(env['CI'])
  if (ci || env['KUBEBUILDER_ASSETS']) return undefined
  const { kind, reason } = availability()
  return kind === 'unavailable' ? reason : undefined
}
