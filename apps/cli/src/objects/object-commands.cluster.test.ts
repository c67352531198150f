import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { objectStory } from './testing/object-story.ts'

describeCluster('on a real API server', () => {
  objectStory(async () => ({ access: sharedCluster(), namespace: await testNamespace('cli') }))
})
