import { writeFile } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { createKubeClient, type KubeClient, loadKubeconfig, namespaces } from '@thv/kube'
import { fixtureImage } from '@thv/testkit/image/fixture-image'
import { afterAll, beforeAll, describe, type ExpectStatic, expect, test } from 'vitest'
import { ensureBundle } from '../../scripts/bundle.mjs'
import { STORIES } from '../e2e/stories/all.ts'
import { canTell, type Need, type Story, titleOf, unmetNeeds } from '../e2e/stories/story.ts'
import { openWorld } from '../e2e/stories/world.ts'
import { ensureNamespace } from './fixture-platform.ts'
import { type DataFolder, dataFolder, type PlatformProcess } from './platform-process.ts'

/* The stories that run on a real node, on the platform of this machine: the same files, no cluster, no containers. */

const STORY_LIMIT_MS = 600_000
/** Stories that are not told here, and why: see `Need`. */
const LACKING: readonly Need[] = ['containers']
const UNTOLD = [['podTemplateSpec: init container, sidecar and volumes really run where pod security is restricted', ['containers']]]
const APPS_IMAGE = 'toolhive-ts:0.1.0'

describe('on the local platform', () => {
  let folder: DataFolder
  let platform: PlatformProcess
  let client: KubeClient
  let count = 0
  beforeAll(async () => {
    folder = await dataFolder()
    const command = [process.execPath, await ensureBundle('packages/testkit/src/mcp/fixture-image-main.ts')]
    const images = ['', 'docker.io/library/'].map((host) => ({ match: `${host}${fixtureImage}`, command }))
    await writeFile(join(folder.path, 'images.yaml'), JSON.stringify({ images }))
    platform = await folder.up('--bare')
    client = createKubeClient(await loadKubeconfig({ path: platform.kubeconfigPath }))
  })
  afterAll(async () => {
    await client?.close()
    await folder?.[Symbol.asyncDispose]()
  })

  test('tells all stories but those that need what processes have not', () => {
    expect(STORIES.filter((story) => !canTell(story, LACKING)).map(({ title, needs }) => [title, needs])).toEqual(UNTOLD)
  })

  const unmet = unmetNeeds()
  for (const story of STORIES.filter((each) => !canTell(each, unmet))) test.skip(titleOf(story))
  const told = STORIES.filter((story) => canTell(story, [...LACKING, ...unmet]))
  for (const story of told.filter(({ disturbsOthers }) => !disturbsOthers))
    test.concurrent(titleOf(story), { timeout: STORY_LIMIT_MS }, ({ expect }) => tell(story, expect))
  for (const story of told.filter(({ disturbsOthers }) => disturbsOthers))
    test(titleOf(story), { timeout: STORY_LIMIT_MS }, ({ expect }) => tell(story, expect))

  async function tell(story: Story, expect: ExpectStatic): Promise<void> {
    const namespace = `story-${++count}`
    await ensureNamespace(client, namespace)
    try {
      await using world = await openWorld({
        expect,
        kubeconfigPath: platform.kubeconfigPath,
        namespace,
        operator: { namespace: 'toolhive-system', deployment: 'toolhive-operator' },
        images: { apps: APPS_IMAGE, fixture: fixtureImage, sameFixture: `docker.io/library/${fixtureImage}` },
        hostAddress: ownAddress(),
        namesInUrls: false,
        hasWebhook: false,
        reach: ({ spec }, port) => `${spec?.clusterIP}:${port}`,
      })
      await story.tell(world)
    } finally {
      await client.delete(namespaces, { name: namespace })
    }
  }
})

/** Remote servers at loopback addresses are refused by default, here as on a cluster, so they need another address of this machine. */
function ownAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  const own = all.find(({ family, internal, address }) => family === 'IPv4' && !internal && !address.startsWith('169.254.'))
  if (own === undefined) throw new Error('this machine has no address but those of loopback')
  return own.address
}
