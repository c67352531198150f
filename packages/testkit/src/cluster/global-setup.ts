import { readFileSync } from 'node:fs'
import type { TestProject } from 'vitest/node'
import { accessOf, type ClusterAccess } from './cluster-access.ts'
import { startControlPlane } from './control-plane.ts'
import { binariesAvailability } from './programs/binaries.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Absent when this machine can neither find nor build the binaries. */
    thvCluster: ClusterAccess
  }
}

/**
 * Vitest calls this once per run, before the first test, and what it returns after the last. THV_TEST_CLUSTER names the file of a
 * control plane that runs already (scripts/test-cluster.ts): who runs one file again and again does not wait for a new one each time.
 */
export async function setup(project: Pick<TestProject, 'provide'>): Promise<(() => Promise<void>) | undefined> {
  const reason = reasonToSkip(process.env)
  if (reason) {
    console.error(`\n!!! NO CLUSTER TESTS: ${reason} !!!\n`)
    return undefined
  }
  const running = process.env['THV_TEST_CLUSTER']
  if (running !== undefined && !isCi(process.env)) {
    const access = JSON.parse(readFileSync(running, 'utf8')) as ClusterAccess
    // Ours must not be its own judge.
    if (access.plane === 'embedded') throw new Error(`${running} is of the embedded control plane: run --project embedded`)
    project.provide('thvCluster', access)
    return undefined
  }
  const begin = performance.now()
  const cluster = await startControlPlane()
  console.error(`control plane ${cluster.version} ready after ${((performance.now() - begin) / 1000).toFixed(1)} s`)
  project.provide('thvCluster', accessOf(cluster))
  return () => cluster.stop()
}

/** In CI nothing is skipped, and a folder that the user has named must be right: then the start itself fails with the reason. */
export function reasonToSkip(env: NodeJS.ProcessEnv, availability = () => binariesAvailability('control-plane', env)): string | undefined {
  if (isCi(env) || env['KUBEBUILDER_ASSETS']) return undefined
  const { kind, reason } = availability()
  return kind === 'unavailable' ? reason : undefined
}

export function isCi(env: NodeJS.ProcessEnv): boolean {
  return env['CI'] !== undefined && !['', '0', 'false'].includes(env['CI'])
}
