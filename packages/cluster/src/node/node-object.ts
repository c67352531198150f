import { arch, availableParallelism, platform, release, totalmem } from 'node:os'
import type { Clock } from '@thv/kernel/clock'
import type { Reflector } from '@thv/kube/cache/reflector'
import type { KubeClient } from '@thv/kube/client/client'
import { isAlreadyExists } from '@thv/kube/client/kube-api-error'
import type { KubeNode } from '@thv/kube/objects/builtin-kinds'
import { nodes } from '@thv/kube/objects/resource-types'
import { secondTime } from './pod/container-record.ts'

export interface NodeObjectOptions {
  readonly client: KubeClient
  readonly cache: Reflector<KubeNode>
  readonly name: string
  readonly address: string
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly onError: (error: unknown) => void
}

const HEARTBEAT_MS = 60_000
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' }

/** Registers this machine as a Node and keeps it ready: what somebody deletes or changes is put right. */
export async function keepNodeObject(options: NodeObjectOptions): Promise<void> {
  const { cache, name, clock, signal, onError } = options
  await register(options)
  let isWorking = false
  const repair = async () => {
    if (isWorking) return
    isWorking = true
    try {
      await register(options)
    } catch (error) {
      if (!signal.aborted) onError(error)
    } finally {
      isWorking = false
    }
  }
  const leave = cache.addHandler(({ object, type }) => {
    if (object.metadata.name === name && (type === 'DELETED' || !isReady(object))) void repair()
  })
  signal.addEventListener('abort', leave, { once: true })
  void beat()

  async function beat(): Promise<void> {
    while (!signal.aborted) {
      await clock.sleep(HEARTBEAT_MS, signal).catch(() => undefined) // the loop sees the signal
      if (!signal.aborted) await repair()
    }
  }
}

async function register({ client, name, address, clock, signal }: NodeObjectOptions): Promise<void> {
  const os = platform()
  const architecture = ARCHITECTURES[arch()] ?? arch()
  const labels = {
    'kubernetes.io/hostname': name,
    'kubernetes.io/os': os,
    'kubernetes.io/arch': architecture,
    'beta.kubernetes.io/os': os,
    'beta.kubernetes.io/arch': architecture,
  }
  const now = secondTime(clock.now())
  const before = await client.tryGet(nodes, { name }, { signal })
  const old = before?.status?.conditions?.find(({ type }) => type === 'Ready')
  const capacity = { cpu: String(availableParallelism()), memory: `${Math.floor(totalmem() / 1_024)}Ki`, pods: '500' }
  const ready = {
    type: 'Ready',
    status: 'True',
    reason: 'KubeletReady',
    message: 'the node runs pods as processes',
    lastHeartbeatTime: now,
    lastTransitionTime: old?.status === 'True' ? (old.lastTransitionTime ?? now) : now,
  }
  const status = {
    capacity,
    allocatable: capacity,
    conditions: [ready],
    addresses: [
      { type: 'InternalIP', address },
      { type: 'Hostname', address: name },
    ],
    nodeInfo: {
      machineID: '',
      systemUUID: '',
      bootID: '',
      kernelVersion: release(),
      osImage: 'processes of this machine',
      containerRuntimeVersion: 'thv://0.1.0',
      kubeletVersion: 'v1.34.1+thv',
      kubeProxyVersion: '',
      operatingSystem: os,
      architecture,
    },
  }
  if (before === undefined) {
    const node: KubeNode = { apiVersion: 'v1', kind: 'Node', metadata: { name, labels }, spec: {} }
    await client.create(nodes, node, { signal }).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error
    })
  } else if (Object.entries(labels).some(([key, value]) => before.metadata.labels?.[key] !== value)) {
    await client.patch(nodes, { name }, { kind: 'merge', body: { metadata: { labels } } }, { signal })
  }
  await client.patch(nodes, { name }, { kind: 'strategic', body: { status } }, { subresource: 'status', signal })
}

function isReady(node: KubeNode): boolean {
  return node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
}
