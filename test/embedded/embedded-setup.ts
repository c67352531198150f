import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { accessOf, type ClusterAccess } from '@thv/testkit/cluster/cluster-access'
import { isCi, reasonToSkip } from '@thv/testkit/cluster/global-setup'
import type { Exclusion } from '@thv/testkit/cluster/process/needs'
import { binariesAvailability, ensureBinaries } from '@thv/testkit/cluster/programs/binaries'
import { startEmbeddedServer } from '@thv/testkit/embedded/embedded-server'
import type { TestProject } from 'vitest/node'
import { exclusionTable, judgeExclusions } from './exclusion-table.ts'
import { EXCLUSIONS } from './exclusions.ts'

/**
 * Vitest calls this once per run: our own control plane for the files that also run on a real one, and after the last test a look at
 * what was left out. kubectl is the real one, so the binaries are needed here too.
 */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const reason = reasonToSkip(process.env, () => binariesAvailability('api-server'))
  if (reason) {
    console.error(`\n!!! NO TESTS ON THE EMBEDDED CONTROL PLANE: ${reason} !!!\n`)
    return undefined
  }
  const { access, stop } = await controlPlane()
  project.provide('thvCluster', access)
  return async () => {
    await stop()
    reportExclusions(project)
  }
}

async function controlPlane(): Promise<{ access: ClusterAccess; stop: () => Promise<void> }> {
  const running = process.env['THV_TEST_CLUSTER']
  if (running !== undefined && !isCi(process.env)) {
    const access = JSON.parse(readFileSync(running, 'utf8')) as ClusterAccess
    if (access.plane === 'embedded') return { access, stop: async () => undefined }
  }
  await ensureBinaries({ log: (line) => console.error(line) })
  const begin = performance.now()
  const server = await startEmbeddedServer({ controllers: true })
  console.error(`embedded control plane ${server.version} ready after ${((performance.now() - begin) / 1000).toFixed(1)} s`)
  return { access: accessOf(server), stop: () => server.stop() }
}

/** A difference throws, which fails the run. */
function reportExclusions(project: TestProject): void {
  const found: Record<string, readonly Exclusion[]> = {}
  for (const module of project.vitest.state.getTestModules()) {
    if (module.project.name === project.name) found[relative(project.config.root, module.moduleId)] = module.meta().thvExclusions ?? []
  }
  console.error(exclusionTable(found))
  const problems = judgeExclusions(EXCLUSIONS, found)
  if (problems.length > 0) throw new Error(`test/embedded/exclusions.ts says something else:\n${problems.join('\n')}`)
}
