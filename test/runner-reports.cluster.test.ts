import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  configMaps,
  getCondition,
  type KubeClient,
  type KubeObject,
  type Pod,
  type ResourceType,
  type Service,
  services,
  statefulSets,
} from '@thv/kube'
import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { describeCluster, sharedCluster } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually, type OperatorUnderTest, startOperator } from '../apps/operator/src/testing/operator-harness.ts'
import { type WorkloadSteps, workloadSteps } from '../apps/operator/src/testing/workload-steps.ts'
import { type PodProcess, startInPod } from './e2e/pod/pod-process.ts'

/*
 * Operator and runner together: what the runner finds out about an MCP server becomes the reason of Ready. There is no node here: the
 * runner is a process with what its pod would have (token of its own account, run config, name), and the test says what a kubelet would.
 */

const RUNNING: NonNullable<Pod['status']> = { phase: 'Running', conditions: [{ type: 'PodScheduled', status: 'True' }] }
const theirs = { labels: { app: 'theirs' } }

describeCluster('the cause that a runner finds, in the status of its MCPServer', () => {
  let operator: OperatorUnderTest
  let admin: KubeClient
  let namespace: string
  let steps: WorkloadSteps

  beforeAll(async () => {
    operator = await startOperator()
    ;({ admin, namespace } = operator)
    steps = workloadSteps(operator, 'MCPServer')
  })
  afterAll(async () => {
    await steps?.cleanUp()
    await operator?.stop()
  })

  /** The runner that the proxy pod of this server would run. */
  async function startRunner(name: string): Promise<PodProcess> {
    const pod = await steps.onePod(name)
    await steps.sayOfPod(pod, RUNNING)
    const { data } = await admin.get(configMaps, steps.at(`${name}-runconfig`))
    const [port, metrics] = [await freePort(), await freePort()]
    const place = { host: '127.0.0.1', port, telemetry_config: { prometheus_port: metrics } }
    return startInPod({
      cluster: sharedCluster(),
      token: await tokenOf(`${name}-proxy-runner`),
      namespace,
      name: pod.metadata.name,
      hosts: [`mcp-${name}`],
      runConfig: { ...(JSON.parse(data?.['runconfig.json'] ?? '{}') as object), ...place },
    })
  }

  async function tokenOf(account: string): Promise<string> {
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
    const answer = await admin.raw('POST', `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`, { body })
    return (answer.json() as { status: { token: string } }).status.token
  }

  /** As the kubelet says it of a pod whose container runs: there is no probe, so it is ready. */
  async function serverRuns(name: string): Promise<void> {
    await sayOfServer(name, { ready: true, restartCount: 0, state: { running: { startedAt: new Date().toISOString() } } })
  }

  async function sayOfServer(name: string, container: { readonly ready: boolean } & Record<string, unknown>): Promise<void> {
    const pod: Pod = await eventually(`pod ${name}-0`, async () => {
      const found = await steps.serverPod(name)
      return (found?.status?.conditions ?? []).length > 0 && found
    })
    const containerStatuses = [{ name: 'mcp', image: 'x', imageID: 'x', ...container }] as never
    const isReady = container.ready ? 'True' : 'False'
    await steps.sayOfPod(pod, {
      ...RUNNING,
      conditions: [
        { type: 'PodScheduled', status: 'True' },
        { type: 'Ready', status: isReady },
      ],
      containerStatuses,
    })
  }

  /** The scheduler, which finds no node, speaks too: the proxy pod runs until the cause is reported. */
  const reason = async (name: string, expected: string) =>
    await eventually(
      `Ready of ${name} has the reason ${expected}`,
      async () => {
        const { status } = await steps.get(name)
        const ready = getCondition(status?.['conditions'] as never, 'Ready')
        if (ready?.reason === 'Unschedulable') await steps.sayOfPod(await steps.onePod(name), RUNNING)
        if (ready?.reason !== expected) throw new Error(`it is ${JSON.stringify(ready)}`)
        return { ...ready, phase: status?.phase, shown: status?.message }
      },
      60_000,
    )
  const http = (mcpPort: number) => ({ image: 'example.test/server:1', transport: 'streamable-http', mcpPort })

  describe('objects of somebody else', () => {
    const set = (name: string) => ({
      metadata: { ...theirs, name, namespace },
      spec: {
        serviceName: 'theirs',
        selector: { matchLabels: theirs.labels },
        template: { metadata: theirs, spec: { containers: [{ name: 'db', image: 'example.test/db:1' }] } },
      },
    })
    const service = (name: string): Service => ({
      metadata: { ...theirs, name, namespace },
      spec: { ports: [{ name: 'theirs', port: 1 }] },
    })

    test.each([
      ['StatefulSet', 'taken-set', 'taken-set', statefulSets, set],
      ['Service', 'taken-service', 'mcp-taken-service', services, service],
      ['Service', 'taken-headless', 'mcp-taken-headless-headless', services, service],
    ] as const)('%s: Ready of %s names %s, nothing is touched, and it heals', async (kind, server, name, resource, make) => {
      const type = resource as ResourceType
      const before: KubeObject = await admin.create(type, make(name))
      await steps.create(server, http(await freePort()))
      await using runner = await startRunner(server)
      const told = await reason(server, 'WorkloadForeign')
      const named = expect.stringContaining(`${kind} ${name} already`)
      expect(told, runner.output).toMatchObject({ status: 'False', phase: 'Failed', message: named, shown: named })
      const now = await admin.get(type, { namespace, name })
      expect([now.metadata.uid, now.metadata.ownerReferences, now.metadata.labels]).toEqual([before.metadata.uid, undefined, theirs.labels])
      await admin.delete(type, { namespace, name })
      const uid = (await steps.get(server)).metadata.uid
      await eventually('the object of the server', async () => {
        const made = await admin.tryGet(type, { namespace, name })
        return made?.metadata.ownerReferences?.[0]?.uid === uid
      })
      await eventually('the runner takes it back', async () =>
        (await steps.eventsOf(server)).some(({ type: kindOf, reason: why }) => kindOf === 'Normal' && why === 'BackendRecovered'),
      )
      await eventually('Ready says something else', async () => (await steps.condition(server, 'Ready'))?.reason !== 'WorkloadForeign')
      expect(runner.output).not.toContain('Forbidden')
    })
  })

  test('a wrong mcpPort: BackendPortClosed, with the field to change; one event, and the next runner starts afresh', async () => {
    const closed = await freePort()
    await steps.create('closed', http(closed))
    {
      await using runner = await startRunner('closed')
      await serverRuns('closed')
      const told = await reason('closed', 'BackendPortClosed')
      expect(told.message, runner.output).toMatch(new RegExp(`^Nothing listens on port ${closed} of the MCP server\\..*spec\\.mcpPort`))
      const warnings = (await steps.eventsOf('closed')).filter(({ reportingController }) => reportingController?.endsWith('/proxyrunner'))
      expect(warnings.map((event) => event.reason)).toEqual(['BackendPortClosed'])
    }
    await steps.edit('closed', { mcpPort: await freePort() })
    await eventually('the old runner no longer counts', async () => {
      const [pod] = (await steps.proxyPods('closed')).filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      if (pod !== undefined) await admin.delete(steps.podType, steps.at(pod.metadata.name), { gracePeriodSeconds: 0 })
      return (await steps.condition('closed', 'Ready'))?.reason !== 'BackendPortClosed'
    })
  })

  test('a program that is not an MCP server: BackendNotMcp', async () => {
    const page = await listen(createServer((_request, response) => response.writeHead(404).end('<html>nothing here</html>')))
    try {
      await steps.create('page', http(page.port))
      await using runner = await startRunner('page')
      await serverRuns('page')
      const told = await reason('page', 'BackendNotMcp')
      expect(told.message, runner.output).toContain(`port ${page.port} is not an MCP server: POST /mcp answers 404`)
      expect(told.message).not.toContain('nothing here')
    } finally {
      page.close()
    }
  })

  test('a stdio server declared as HTTP: ServerEnded, with the hint that stdin ended it', async () => {
    await steps.create('ended', http(await freePort()))
    await using runner = await startRunner('ended')
    const terminated = { exitCode: 0, reason: 'Completed', startedAt: '2026-01-01T00:00:00Z', finishedAt: '2026-01-01T00:00:01Z' }
    const waiting = { reason: 'CrashLoopBackOff', message: 'back-off 10s' }
    await sayOfServer('ended', { ready: false, restartCount: 2, state: { waiting }, lastState: { terminated } })
    const told = await reason('ended', 'ServerEnded')
    expect(told.message, runner.output).toMatch(/exit code 0\. Its standard input is closed.*set spec\.transport to stdio/)
  })
})

async function listen(server: Server): Promise<{ port: number; close(): void }> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { port: (server.address() as AddressInfo).port, close: () => void server.close() }
}
