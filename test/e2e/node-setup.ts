import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { binariesAvailability } from '@thv/testkit/cluster/binaries'
import { isCi } from '@thv/testkit/cluster/global-setup'
import { startNode } from '@thv/testkit/cluster/node'
import { nodeProblem } from '@thv/testkit/cluster/node-packages'
import type {} from '@thv/testkit/cluster/test-node'
import { fixtureImage, writeFixtureImage } from '@thv/testkit/image/fixture-image'
import type { TestProject } from 'vitest/node'
import { writeImage } from '../../scripts/image.ts'

/** Vitest calls this once per run: one node with the images of the project and of the MCP fixture, for all files. */
export async function setup(project: Pick<TestProject, 'provide'>): Promise<(() => Promise<void>) | undefined> {
  const reason = reasonToSkip(process.env)
  if (reason) {
    console.error(`\n!!! NO TESTS ON A NODE: ${reason} !!!\n`)
    return undefined
  }
  const begin = performance.now()
  const node = await startNode()
  try {
    const apps = await loadImages(node.importImage)
    console.error(`node ${node.version} ready with its images after ${((performance.now() - begin) / 1000).toFixed(1)} s`)
    const { form, url, caPem, adminToken, kubeconfigPath, kubectlPath, version, nodeName, hostAddress, initPid } = node
    const access = { form, url, caPem, adminToken, kubeconfigPath, kubectlPath, version, nodeName, hostAddress, initPid }
    project.provide('thvNode', { ...access, images: { apps, fixture: fixtureImage } })
  } catch (error) {
    await node.stop()
    throw error
  }
  return () => node.stop()
}

async function loadImages(importImage: (archive: string) => Promise<void>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'thv-images-'))
  try {
    const [apps, fixture] = [join(folder, 'apps.tar'), join(folder, 'fixture.tar')]
    const { tag } = await writeImage({ output: apps })
    await writeFixtureImage(fixture)
    for (const archive of [apps, fixture]) await importImage(archive)
    return tag
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** In CI nothing is skipped: there the start itself fails with the reason. */
function reasonToSkip(env: NodeJS.ProcessEnv): string | undefined {
  if (isCi(env)) return undefined
  const binaries = binariesAvailability('node', env)
  return nodeProblem() ?? (binaries.kind === 'unavailable' ? binaries.reason : undefined)
}
