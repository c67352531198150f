import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { type KubeClient, type ObjectKey, pods, services, statefulSets } from '@thv/kube'
import { adminClient, installCrds } from '@thv/resources/testing/install-crds'
import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { spawnFixture } from '@thv/testkit/mcp/fixture-process'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runnerToken } from '../../apps/proxyrunner/src/runtime/testing/runner-role.ts'
import { startInPod } from './pod/pod-process.ts'
import { serviceBefore } from './pod/service.ts'

/*
 * The runner with exactly what a pod has (environment, mounted files, the rights of its account), on a real control plane. There is no
 * node here: the test says that the pod of the StatefulSet is ready, and stands for the Service in front of it.
 */

const PATIENT = { timeout: 30_000, interval: 50 }
/** The garbage collector looks for new kinds every half a minute. */
const COLLECTED = { timeout: 90_000, interval: 200 }

describeCluster('thv-proxyrunner run in a pod', () => {
  let admin: KubeClient
  beforeAll(async () => {
    admin = adminClient(sharedCluster())
    await installCrds(admin)
  })
  afterAll(() => admin?.close())

  test(
    'reads the mounted run config, makes the workload with the account of its pod, and serves it when it is ready ' +
      '[002-204] [002-220] [002-223] [002-224] [002-227] [002-228] [002-230] [002-231]',
    async () => {
      const namespace = await testNamespace('in-pod')
      const key = { namespace, name: 'demo' }
      const owner = await createMcpServer(namespace)
      await using fixture = await spawnFixture({ era: 'dual' })
      await using service = await serviceBefore(fixture.url)
      const port = await freePort()
      const base = `http://127.0.0.1:${port}`
      const status = async (path: string) => (await fetch(base + path).catch(() => undefined))?.status
      {
        await using runner = startInPod({
          cluster: sharedCluster(),
          token: await runnerToken(admin, namespace, 'demo'),
          namespace,
          hosts: ['mcp-demo'],
          runConfig: {
            ...{ schema_version: 'v0.1.0', name: 'demo', image: 'registry.example.com/mcp/demo:1', owner },
            ...{ transport: 'streamable-http', host: '127.0.0.1', port, target_port: service.port },
          },
        })
        await expect.poll(() => status('/health'), PATIENT).toBe(200)
        await expect
          .poll(() => admin.tryGet(statefulSets, key), PATIENT)
          .toMatchObject({
            metadata: { ownerReferences: [{ kind: 'MCPServer', name: 'demo', uid: owner.uid, controller: true }] },
          })
        // The server behind the Service could answer by now; what is missing is the word of the StatefulSet.
        await quiet()
        expect(await status('/ready'), runner.output).toBe(503)
        await makeReady(key)
        await expect.poll(() => status('/ready'), PATIENT).toBe(200)
        expect(await greeting(`${base}/mcp`)).toBe('Hello, pod!')
        expect(runner.output).not.toContain('Forbidden')
      }
      // A runner that ends leaves its workload; the owner takes it along.
      expect(await admin.tryGet(statefulSets, key)).toBeDefined()
      await admin.raw('DELETE', mcpServersOf(namespace, 'demo'))
      await expect.poll(() => admin.tryGet(statefulSets, key), COLLECTED).toBeUndefined()
      await expect.poll(async () => (await admin.list(services, { namespace })).items, COLLECTED).toEqual([])
    },
  )

  async function createMcpServer(namespace: string) {
    const body = {
      ...{ apiVersion: 'toolhive.stacklok.dev/v1beta1', kind: 'MCPServer', metadata: { name: 'demo' } },
      spec: { image: 'registry.example.com/mcp/demo:1' },
    }
    const { metadata } = (await admin.raw('POST', mcpServersOf(namespace), { body })).json() as { metadata: { uid: string } }
    return { api_version: body.apiVersion, kind: body.kind, name: 'demo', uid: metadata.uid }
  }

  /** The kubelet's report on the pod of the StatefulSet. */
  async function makeReady(statefulSet: ObjectKey): Promise<void> {
    const key = { ...statefulSet, name: `${statefulSet.name}-0` }
    await expect.poll(() => admin.tryGet(pods, key), PATIENT).toBeDefined()
    const running = { name: 'mcp', image: 'x', imageID: 'x', ready: true, restartCount: 0, state: { running: {} } }
    const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }], containerStatuses: [running] }
    await admin.patch(pods, key, { kind: 'merge', body: { status } }, { subresource: 'status' })
  }
})

function mcpServersOf(namespace: string, name?: string): string {
  const all = `/apis/toolhive.stacklok.dev/v1beta1/namespaces/${namespace}/mcpservers`
  return name === undefined ? all : `${all}/${name}`
}

/** Long enough for a runner that does not wait to be ready. */
function quiet(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1_500))
}

async function greeting(url: string): Promise<string | undefined> {
  const client = new Client({ name: 'test', version: '1.0.0' })
  // The SDK's own type of the transport is not exact about optional members.
  await client.connect(new StreamableHTTPClientTransport(new URL(url)) as never)
  const { content } = await client.callTool({ name: 'greet', arguments: { name: 'pod' } })
  await client.close()
  return (content as { text?: string }[])[0]?.text
}
