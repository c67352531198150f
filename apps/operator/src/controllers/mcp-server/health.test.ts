import type { ContainerStatus, Deployment, Pod, StatefulSet } from '@thv/kube'
import { WorkloadReason } from '@thv/resources/shared/workload-conditions'
import { workloadUrl } from '@thv/resources/shared/workload-url'
import { describe, expect, it } from 'vitest'
import type { RunnerReport } from '../../proxy/runner-report.ts'
import { mcpRemoteProxyHealth } from '../mcp-remote-proxy/health.ts'
import { mcpServerHealth } from './health.ts'

const deployment = (replicas?: number, more: Partial<Deployment> = {}): Deployment => ({
  metadata: { name: 'demo' },
  spec: replicas === undefined ? {} : { replicas },
  ...more,
})
const statefulSet = (replicas?: number): StatefulSet => ({ metadata: { name: 'demo' }, spec: replicas === undefined ? {} : { replicas } })

function pod(name: string, container: Partial<ContainerStatus>, status: Partial<NonNullable<Pod['status']>> = {}): Pod {
  const containerName = name.startsWith('proxy') ? 'toolhive' : 'mcp'
  return {
    metadata: { name },
    spec: { containers: [{ name: containerName, image: `example.com/${containerName}:1` }] },
    status: { phase: 'Running', containerStatuses: [{ name: containerName, ...container }], ...status },
  }
}

const ready = (name: string): Pod => pod(name, { ready: true, state: { running: {} } }, { conditions: [{ type: 'Ready', status: 'True' }] })
const starting = (name: string): Pod => pod(name, { ready: false, state: { running: {} } })
const waiting = (name: string, reason: string, message?: string): Pod =>
  pod(name, { ready: false, state: { waiting: { reason, ...(message && { message }) } } }, { phase: 'Pending' })
const crashing = (name: string, exitCode = 1, reason = 'Error'): Pod =>
  pod(name, {
    ready: false,
    restartCount: 5,
    state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 5m0s' } },
    lastState: { terminated: { exitCode, reason, message: 'a secret' } },
  })
const going = (given: Pod): Pod => ({ ...given, metadata: { ...given.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } })
const over = (name: string): Pod => ({ metadata: { name }, status: { phase: 'Failed', reason: 'Evicted' } })
const unschedulable = (name: string): Pod => ({
  metadata: { name },
  status: {
    phase: 'Pending',
    conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes are available: no disk.' }],
  },
})

interface Case {
  readonly name: string
  readonly deployment?: Deployment
  readonly statefulSet?: StatefulSet
  readonly proxy?: Pod[]
  readonly server?: Pod[]
  readonly report?: RunnerReport
  readonly expected: { phase: string; reason: string; message?: string | RegExp; readyReplicas?: number }
}

const RUNNING = { deployment: deployment(), statefulSet: statefulSet() }

const CASES: readonly Case[] = [
  { name: 'nothing yet', expected: { phase: 'Pending', reason: 'NotReady', message: /Deployment of the proxy does not exist/ } },
  {
    name: 'no pods yet',
    deployment: deployment(),
    expected: { phase: 'Pending', reason: 'NotReady', message: /proxy to make the StatefulSet/ },
  },
  {
    name: 'all is well',
    ...RUNNING,
    proxy: [ready('proxy-1')],
    server: [ready('demo-0')],
    expected: { phase: 'Running', reason: 'Ready', message: '1 of 1 proxy pods ready.', readyReplicas: 1 },
  },
  {
    name: 'a wrong port, as the runner tells',
    ...RUNNING,
    proxy: [starting('proxy-1')],
    server: [ready('demo-0')],
    report: { reason: 'BackendPortClosed', message: 'Nothing listens on port 1.' },
    expected: { phase: 'Pending', reason: 'BackendPortClosed', message: 'Nothing listens on port 1.' },
  },
  {
    name: 'an object of somebody else, as the runner tells',
    deployment: deployment(),
    proxy: [starting('proxy-1')],
    report: { reason: 'WorkloadForeign', message: 'There is a StatefulSet demo already.' },
    expected: { phase: 'Failed', reason: 'WorkloadForeign', message: 'There is a StatefulSet demo already.' },
  },
  {
    name: 'a server that ends in good order, as the runner tells',
    ...RUNNING,
    proxy: [starting('proxy-1')],
    server: [crashing('demo-0', 0, 'Completed')],
    report: { reason: 'ServerEnded', message: 'It ended.' },
    expected: { phase: 'Failed', reason: 'ServerEnded', message: 'It ended.' },
  },
  {
    name: 'a server that crashes, whatever the runner tells',
    ...RUNNING,
    proxy: [starting('proxy-1')],
    server: [crashing('demo-0', 137, 'OOMKilled')],
    report: { reason: 'ServerEnded', message: 'It ended.' },
    expected: { phase: 'Failed', reason: 'CrashLoopBackOff', message: /out of memory/ },
  },
  {
    name: 'a pod that cannot start, whatever the runner tells',
    ...RUNNING,
    proxy: [starting('proxy-1')],
    server: [waiting('demo-0', 'ErrImagePull', 'not found')],
    report: { reason: 'ServerEnded', message: 'It ended.' },
    expected: { phase: 'Pending', reason: 'ErrImagePull' },
  },
  {
    name: 'a server that works again, whatever the runner told',
    ...RUNNING,
    proxy: [ready('proxy-1')],
    server: [ready('demo-0')],
    report: { reason: 'BackendPortClosed', message: 'Nothing listens on port 1.' },
    expected: { phase: 'Running', reason: 'Ready', message: '1 of 1 proxy pods ready.' },
  },
  {
    name: 'a proxy without its StatefulSet',
    deployment: deployment(),
    proxy: [ready('proxy-1')],
    expected: { phase: 'Pending', reason: 'NotReady', readyReplicas: 1 },
  },
  {
    name: 'a server that has just gone, while its proxy is still ready',
    ...RUNNING,
    proxy: [ready('proxy-1')],
    server: [going(ready('demo-0'))],
    expected: { phase: 'Pending', reason: 'NotReady', message: /Waiting for the pods of StatefulSet demo/, readyReplicas: 1 },
  },
  {
    name: 'one of two servers',
    deployment: deployment(),
    statefulSet: statefulSet(2),
    proxy: [ready('proxy-1')],
    server: [ready('demo-0'), starting('demo-1')],
    expected: { phase: 'Running', reason: 'Ready', message: '1 of 1 proxy pods ready. Waiting: 1 of 2 MCP server pods ready.' },
  },
  {
    name: 'a proxy that starts',
    ...RUNNING,
    proxy: [starting('proxy-1')],
    server: [ready('demo-0')],
    expected: { phase: 'Pending', reason: 'NotReady', message: 'Waiting: 0 of 1 proxy pods ready.' },
  },
  {
    name: 'a server that starts',
    ...RUNNING,
    proxy: [starting('proxy-1')],
    server: [starting('demo-0')],
    expected: { phase: 'Pending', reason: 'NotReady', message: 'Waiting: 0 of 1 MCP server pods ready.' },
  },
  {
    name: 'containers that are being made',
    ...RUNNING,
    proxy: [waiting('proxy-1', 'ContainerCreating')],
    server: [waiting('demo-0', 'PodInitializing')],
    expected: { phase: 'Pending', reason: 'NotReady' },
  },
  {
    name: 'no pods asked for',
    deployment: deployment(0),
    statefulSet: statefulSet(),
    proxy: [going(ready('proxy-1'))],
    expected: { phase: 'Stopped', reason: 'ScaledToZero', readyReplicas: 0 },
  },
  {
    name: 'a server scaled to 0',
    deployment: deployment(),
    statefulSet: statefulSet(0),
    proxy: [starting('proxy-1')],
    expected: { phase: 'Pending', reason: 'NotReady', message: /scaled to 0 pods/ },
  },
  {
    name: 'a server whose pods are refused',
    ...RUNNING,
    proxy: [starting('proxy-1')],
    expected: { phase: 'Pending', reason: 'NotReady', message: /kubectl describe statefulset demo/ },
  },
  {
    name: 'an image of the server that cannot be pulled',
    ...RUNNING,
    proxy: [starting('proxy-1')],
    server: [waiting('demo-0', 'ImagePullBackOff', 'Back-off pulling image "example.com/mcp:1"')],
    expected: {
      phase: 'Pending',
      reason: 'ImagePullBackOff',
      message:
        'Container mcp (image example.com/mcp:1) of MCP pod demo-0: ImagePullBackOff: Back-off pulling image "example.com/mcp:1". Check the image and resourceOverrides.proxyDeployment.imagePullSecrets.',
    },
  },
  {
    name: 'a package that cannot be installed where packages run as they are: the node says what to do',
    ...RUNNING,
    proxy: [starting('proxy-1')],
    server: [
      {
        ...waiting('demo-0', 'ImagePullBackOff', 'npm says 404'),
        spec: { containers: [{ name: 'mcp', image: 'npx://thing@1.0.0' }] },
      },
    ],
    expected: {
      phase: 'Pending',
      reason: 'ImagePullBackOff',
      message: 'Container mcp (image npx://thing@1.0.0) of MCP pod demo-0: ImagePullBackOff: npm says 404.',
    },
  },
  {
    name: 'a long message of the node: its beginning and its end, where the cause and the advice stand',
    ...RUNNING,
    proxy: [starting('proxy-1')],
    server: [waiting('demo-0', 'ImagePullBackOff', `failed to pull: ${'x'.repeat(2_000)}: registry.test says 403. Log in first.`)],
    expected: {
      phase: 'Pending',
      reason: 'ImagePullBackOff',
      message: /: failed to pull: x+ … x+: registry\.test says 403\. Log in first\. Check the image/,
    },
  },
  {
    name: 'an image of the proxy that cannot be pulled',
    ...RUNNING,
    proxy: [waiting('proxy-1', 'ErrImagePull')],
    expected: { phase: 'Pending', reason: 'ErrImagePull', message: /TOOLHIVE_RUNNER_IMAGE/ },
  },
  {
    name: 'an image that is none',
    ...RUNNING,
    proxy: [starting('proxy-1')],
    server: [waiting('demo-0', 'InvalidImageName')],
    expected: { phase: 'Failed', reason: 'InvalidImageName' },
  },
  {
    name: 'a Secret that is missing',
    ...RUNNING,
    proxy: [starting('proxy-1')],
    server: [waiting('demo-0', 'CreateContainerConfigError', 'secret "x" not found')],
    expected: { phase: 'Pending', reason: 'CreateContainerConfigError', message: /secret "x" not found/ },
  },
  {
    name: 'a server that crashes',
    ...RUNNING,
    proxy: [starting('proxy-1')],
    server: [crashing('demo-0', 3)],
    expected: {
      phase: 'Failed',
      reason: 'CrashLoopBackOff',
      message:
        'Container mcp (image example.com/mcp:1) of MCP pod demo-0: CrashLoopBackOff, exit code 3. Look at its log: kubectl logs demo-0 -c mcp --previous',
    },
  },
  {
    name: 'a server without memory',
    ...RUNNING,
    proxy: [starting('proxy-1')],
    server: [crashing('demo-0', 137, 'OOMKilled')],
    expected: { phase: 'Failed', reason: 'CrashLoopBackOff', message: /out of memory: raise its limit/ },
  },
  {
    name: 'a proxy that crashes',
    ...RUNNING,
    proxy: [crashing('proxy-1')],
    server: [ready('demo-0')],
    expected: { phase: 'Failed', reason: 'CrashLoopBackOff', message: /proxy pod proxy-1/ },
  },
  {
    name: 'a crash that is worse than a pull',
    ...RUNNING,
    proxy: [waiting('proxy-1', 'ErrImagePull'), crashing('proxy-2')],
    expected: { phase: 'Failed', reason: 'CrashLoopBackOff' },
  },
  {
    name: 'a node that has started again for the third time',
    ...RUNNING,
    proxy: [
      pod('proxy-1', {
        ready: false,
        restartCount: 3,
        state: { running: {} },
        lastState: { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown' } },
      }),
    ],
    server: [ready('demo-0')],
    expected: { phase: 'Pending', reason: 'NotReady' },
  },
  {
    name: 'one that has just ended',
    ...RUNNING,
    proxy: [pod('proxy-1', { state: { terminated: { exitCode: 2 } } })],
    expected: { phase: 'Failed', reason: 'ContainerTerminated', message: /exit code 2/ },
  },
  {
    name: 'an unknown reason',
    ...RUNNING,
    proxy: [waiting('proxy-1', 'SomethingNew', 'told')],
    expected: { phase: 'Pending', reason: 'NotReady', message: /SomethingNew: told/ },
  },
  {
    name: 'no node',
    ...RUNNING,
    proxy: [unschedulable('proxy-1')],
    expected: { phase: 'Pending', reason: 'Unschedulable', message: 'Proxy pod proxy-1 finds no node: 0/3 nodes are available: no disk' },
  },
  {
    name: 'no node for the server',
    ...RUNNING,
    proxy: [starting('proxy-1')],
    server: [unschedulable('demo-0')],
    expected: { phase: 'Pending', reason: 'Unschedulable' },
  },
  {
    name: 'an evicted pod and nothing else',
    ...RUNNING,
    proxy: [over('proxy-1')],
    expected: { phase: 'Failed', reason: 'PodFailed', message: /Evicted/ },
  },
  {
    name: 'an evicted pod whose successor starts',
    ...RUNNING,
    proxy: [over('proxy-1'), starting('proxy-2')],
    server: [ready('demo-0')],
    expected: { phase: 'Pending', reason: 'NotReady' },
  },
  {
    name: 'a bad rollout beside a good pod',
    deployment: deployment(2),
    statefulSet: statefulSet(),
    proxy: [ready('proxy-1'), crashing('proxy-2')],
    server: [ready('demo-0')],
    expected: {
      phase: 'Running',
      reason: 'Ready',
      message: /^1 of 2 proxy pods ready\. Container toolhive .* CrashLoopBackOff/,
      readyReplicas: 1,
    },
  },
  {
    name: 'pods that are going count for nothing',
    ...RUNNING,
    proxy: [going(ready('proxy-1')), going(crashing('proxy-2'))],
    server: [ready('demo-0')],
    expected: { phase: 'Pending', reason: 'NotReady', readyReplicas: 0 },
  },
  {
    name: 'pods that admission refuses',
    statefulSet: statefulSet(),
    deployment: deployment(1, {
      status: { conditions: [{ type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: 'pods "x" is forbidden: quota' }] },
    }),
    expected: { phase: 'Pending', reason: 'PodCreationFailed', message: /forbidden: quota/ },
  },
]

describe('mcpServerHealth', () => {
  it.each(CASES)('$name', ({ deployment: given, statefulSet: set, proxy = [], server = [], report, expected }) => {
    const health = mcpServerHealth({ deployment: given, statefulSet: set, proxyPods: proxy, serverPods: server, report })
    const { message, ...rest } = expected
    expect(health).toMatchObject(rest)
    if (message instanceof RegExp) expect(health.message).toMatch(message)
    else if (message !== undefined) expect(health.message).toBe(message)
    expect([...Object.values(WorkloadReason), 'Ready']).toContain(health.reason)
    expect(health.message).not.toContain('a secret')
  })

  it('says the same of a server that crashes again and again, whatever it is doing just now', () => {
    const last = { terminated: { exitCode: 1 } }
    const states: Partial<ContainerStatus>[] = [
      { state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s' } }, lastState: last },
      { state: { running: {} }, lastState: last },
      { state: { terminated: { exitCode: 1 } }, lastState: last },
    ]
    const seen = states.map((state) =>
      mcpServerHealth({
        ...RUNNING,
        proxyPods: [starting('proxy-1')],
        serverPods: [pod('demo-0', { ready: false, restartCount: 4, ...state })],
      }),
    )
    expect(new Set(seen.map((health) => JSON.stringify(health))).size).toBe(1)
    expect(seen[0]?.phase).toBe('Failed')
  })

  it('does not call it a crash that a container has once been restarted', () => {
    const once = pod('demo-0', { ready: false, restartCount: 1, state: { running: {} }, lastState: { terminated: { exitCode: 1 } } })
    expect(mcpServerHealth({ ...RUNNING, proxyPods: [starting('proxy-1')], serverPods: [once] }).phase).toBe('Pending')
  })
})

describe('mcpRemoteProxyHealth', () => {
  const health = (proxyPods: Pod[], given: Deployment | undefined = deployment()) => mcpRemoteProxyHealth({ deployment: given, proxyPods })

  it('has its own words', () => {
    expect(health([ready('proxy-1')])).toMatchObject({
      phase: 'Ready',
      reason: 'DeploymentReady',
      readyReplicas: 1,
      serverReadyReplicas: 0,
    })
    expect(health([starting('proxy-1')])).toMatchObject({
      phase: 'Pending',
      reason: 'DeploymentNotReady',
      message: 'Waiting: 0 of 1 proxy pods ready.',
    })
    expect(health([crashing('proxy-1')])).toMatchObject({ phase: 'Failed', reason: 'CrashLoopBackOff' })
    expect(health([], deployment(0))).toMatchObject({ phase: 'Pending', reason: 'ScaledToZero' })
  })
})

describe('workloadUrl', () => {
  const at = { name: 'demo', namespace: 'team-a', proxyPort: 8080, clusterDomain: 'cluster.local' }

  it.each([
    ['MCPServer', 'streamable-http', 'http://mcp-demo-proxy.team-a.svc.cluster.local:8080/mcp'],
    ['MCPServer', 'sse', 'http://mcp-demo-proxy.team-a.svc.cluster.local:8080/sse#demo'],
    ['MCPRemoteProxy', 'streamable-http', 'http://mcp-demo-remote-proxy.team-a.svc.cluster.local:8080/mcp'],
    ['MCPRemoteProxy', 'sse', 'http://mcp-demo-remote-proxy.team-a.svc.cluster.local:8080/sse#demo'],
  ] as const)('of an %s that speaks %s', (kind, proxyMode, url) => {
    expect(workloadUrl({ ...at, kind, proxyMode })).toBe(url)
  })
})
