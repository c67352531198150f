import { createKubeClient, type KubeClient, loadKubeconfig, namespaces } from '@thv/kube'
import { describeNode, sharedNode } from '@thv/testkit/cluster/node/test-node'
import { testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, type ExpectStatic, test } from 'vitest'
import { type InstalledOperator, installOperator } from './install-operator.ts'
import { STORIES } from './stories/all.ts'
import { canTell, type Story, titleOf, unmetNeeds } from './stories/story.ts'
import { openWorld } from './stories/world.ts'

/* The operator as people install it, on a real node: charts, image, pods, attach, clients outside the cluster. */

const STORY_LIMIT_MS = 600_000

describeNode('on a real node', () => {
  let operator: InstalledOperator
  let client: KubeClient
  beforeAll(async () => {
    const { kubeconfigPath, images } = sharedNode()
    client = createKubeClient(await loadKubeconfig({ path: kubeconfigPath }))
    operator = await installOperator({ kubeconfigPath, image: images.apps })
  }, 20 * 60_000)
  afterAll(() => client?.close())

  const unmet = unmetNeeds()
  for (const story of STORIES.filter((each) => !canTell(each, unmet))) test.skip(titleOf(story))
  const told = STORIES.filter((each) => canTell(each, unmet))
  for (const story of told.filter(({ disturbsOthers }) => !disturbsOthers))
    test.concurrent(titleOf(story), { timeout: STORY_LIMIT_MS }, ({ expect }) => tell(story, expect))
  for (const story of told.filter(({ disturbsOthers }) => disturbsOthers))
    test(titleOf(story), { timeout: STORY_LIMIT_MS }, ({ expect }) => tell(story, expect))

  async function tell(story: Story, expect: ExpectStatic): Promise<void> {
    const node = sharedNode()
    const namespace = await testNamespace('story', node)
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
    await client.patch(namespaces, { name: namespace }, { kind: 'merge', body: { metadata: { labels } } })
    try {
      await using world = await openWorld({
        expect,
        kubeconfigPath: node.kubeconfigPath,
        namespace,
        operator,
        images: { ...node.images, sameFixture: `docker.io/library/${node.images.fixture}` },
        hostAddress: node.hostAddress,
        namesInUrls: true,
        hasWebhook: true,
        // The host has a route to the addresses of Services.
        reach: ({ spec }, port) => `${spec?.clusterIP}:${port}`,
      })
      await story.tell(world)
    } finally {
      // Its remaining processes would only take processor time from the others.
      await client.delete(namespaces, { name: namespace })
    }
  }
})
