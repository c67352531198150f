import { PassThrough } from 'node:stream'
import { type KubeClient, type Pod, pods, roles } from '@thv/kube'
import { itNeeds } from '@thv/testkit/cluster/process/needs'
import { describeCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { startTestServer, type TestServer } from '@thv/testkit/test-server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { adminClient, runnerClient, runnerRules } from '../testing/runner-role.ts'
import { configOf, eventually, memoryLog } from '../testing/runtime-fixtures.ts'
import type { AttachEnd, AttachPort } from './attach-port.ts'
import { createKubernetesRuntime } from './kubernetes-runtime.ts'

/** A runner that was restarted, and a pod that has been spoken to before and refuses to be greeted again. */
describeCluster('a pod that the runner before has used', () => {
  let cluster: TestServer
  let admin: KubeClient

  beforeAll(async () => {
    cluster = await startTestServer()
    admin = adminClient(cluster)
  })
  afterAll(async () => {
    await admin?.close()
    await cluster?.stop()
  })

  async function giveUpTwice(mayDeletePods: boolean) {
    const namespace = await testNamespace('replaced', cluster)
    const client = await runnerClient(admin, { namespace, name: 'demo', cluster })
    if (!mayDeletePods) {
      const rules = runnerRules('demo').filter(({ resources, verbs }) => !(resources?.includes('pods') && verbs.includes('delete')))
      await admin.apply(roles, { metadata: { namespace, name: 'demo-proxy-runner' }, rules }, { fieldManager: 'test', force: true })
      await eventually('the API server knows that', async () => !(await mayDeletePod(client, namespace)))
    }
    const pod = await createReadyPod(namespace)
    const log = memoryLog()
    const attachBackoff = { baseMs: 10, maxMs: 50 }
    const runtime = createKubernetesRuntime({ config: configOf({}), client, namespace, log, attachBackoff, attach: silentPort() })
    try {
      for (let n = 0; n < 2; n++) {
        const connection = await runtime.openStdio(AbortSignal.timeout(60_000))
        expect(connection.instance).toBe(`${pod.metadata.uid}/0`)
        await connection.close()
      }
    } finally {
      await runtime.close()
      await client.close()
    }
    return { log, find: () => admin.tryGet(pods, { namespace, name: 'demo-0' }) }
  }

  async function mayDeletePod(client: KubeClient, namespace: string): Promise<boolean> {
    const spec = { resourceAttributes: { resource: 'pods', verb: 'delete', name: 'demo-0', namespace } }
    const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec }
    const answer = await client.raw('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', { body })
    return (answer.json() as { status: { allowed: boolean } }).status.allowed
  }

  async function createReadyPod(namespace: string): Promise<Pod> {
    const metadata = { namespace, name: 'demo-0', labels: { app: 'demo', 'toolhive-basename': 'demo' } }
    const pod = await admin.create<Pod>(pods, { metadata, spec: { containers: [{ name: 'mcp', image: 'x:1' }] } })
    const state = { running: { startedAt: '2026-01-01T00:00:00Z' } }
    const status = {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'True' }],
      containerStatuses: [{ name: 'mcp', restartCount: 0, ready: true, image: 'x:1', imageID: '', state }],
    }
    await admin.patch(pods, { namespace, name: 'demo-0' }, { kind: 'merge', body: { status } }, { subresource: 'status' })
    return pod
  }

  test('is deleted, where the runner has the right', async () => {
    const { find, log } = await giveUpTwice(true)
    await eventually('the pod is going', async () => {
      const pod = await find()
      return pod === undefined || pod.metadata.deletionTimestamp !== undefined
    })
    expect(log.text()).toContain('it is replaced')
    expect(log.text()).not.toContain('by hand')
  })

  itNeeds(['rbac'], 'stays where it has not, and the log says what to do', async () => {
    const { find, log } = await giveUpTwice(false)
    expect((await find())?.metadata.deletionTimestamp).toBeUndefined()
    const line = log.lines.find(({ message }) => message.includes('delete it by hand'))
    expect(String(line?.fields['error'])).toContain('pods "demo-0" is forbidden')
  })
})

function silentPort(): AttachPort {
  return {
    attach: async () => {
      const ended = Promise.withResolvers<AttachEnd>()
      const close = async () => ended.resolve({ message: 'closed' })
      return { stdin: new PassThrough(), stdout: new PassThrough(), ended: ended.promise, close }
    },
  }
}
