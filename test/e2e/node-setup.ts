import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { accessOf } from '@thv/testkit/cluster/cluster-access'
import { isCi } from '@thv/testkit/cluster/global-setup'
import { type NodeCluster, startNode } from '@thv/testkit/cluster/node/node'
import { nodeProblem } from '@thv/testkit/cluster/node/node-packages'
import type {} from '@thv/testkit/cluster/node/test-node'
import { guardedFolderPrefix, startGuard } from '@thv/testkit/cluster/process/process-guard'
import { binariesAvailability } from '@thv/testkit/cluster/programs/binaries'
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
  const folder = await mkdtemp(join(tmpdir(), `${guardedFolderPrefix}images-`))
  const guard = startGuard()
  guard.removeAtEnd(folder)
  try {
    const [node, archives] = await both(startNode(), writeImages(folder))
    try {
      for (const path of archives.paths) await node.importImage(path)
    } catch (error) {
      await node.stop()
      throw error
    }
    console.error(`node ${node.version} ready with its images after ${((performance.now() - begin) / 1000).toFixed(1)} s`)
    const { nodeName, hostAddress, initPid } = node
    project.provide('thvNode', { ...accessOf(node), nodeName, hostAddress, initPid, images: archives.images })
    return () => node.stop()
  } finally {
    await guard.close()
  }
}

async function writeImages(folder: string) {
  const [apps, fixture] = [join(folder, 'apps.tar'), join(folder, 'fixture.tar')]
  const { tag } = await writeImage({ output: apps })
  await writeFixtureImage(fixture)
  return { paths: [apps, fixture], images: { apps: tag, fixture: fixtureImage } }
}

/** When the images fail, the node must not stay; when the node fails, the images must be done with their folder. */
async function both<I>(starting: Promise<NodeCluster>, writing: Promise<I>): Promise<[NodeCluster, I]> {
  const [node, images] = await Promise.allSettled([starting, writing])
  if (node.status === 'rejected') throw node.reason
  if (images.status === 'fulfilled') return [node.value, images.value]
  await node.value.stop()
  throw images.reason
}

/** In CI nothing is skipped: there the start itself fails with the reason. */
function reasonToSkip(env: NodeJS.ProcessEnv): string | undefined {
  if (isCi(env)) return undefined
  const binaries = binariesAvailability('node', env)
  return nodeProblem() ?? (binaries.kind === 'unavailable' ? binaries.reason : undefined)
}
