import { createHash } from 'node:crypto'
import { mkdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, systemClock } from '@thv/kernel/clock'
import type { ObjectEvent } from '@thv/kube/cache/reflector'
import type { SharedCaches } from '@thv/kube/cache/shared-caches'
import type { KubeClient } from '@thv/kube/client/client'
import type { EventRecorder } from '@thv/kube/events/events'
import type { Pod } from '@thv/kube/objects/builtin-kinds'
import { configMaps, nodes, pods, secrets } from '@thv/kube/objects/resource-types'
import type { KubeObject, ObjectKey } from '@thv/kube/objects/types'
import type { PodStreams } from '../apiserver/kinds/pod/pod-streams.ts'
import type { ImageResolver } from './images/image-resolver.ts'
import type { LogLimits } from './logs/container-log.ts'
import type { PodNetwork } from './network/pod-network.ts'
import { endLeftovers, removeStaleFolders } from './node-cleanup.ts'
import { keepNodeObject } from './node-object.ts'
import { nodeStreams } from './node-streams.ts'
import { KUBELET_TIMINGS, type NodeEnv, type NodeTimings } from './pod/node-env.ts'
import { PodLife } from './pod/pod-life.ts'
import { asNodePod } from './pod/pod-spec.ts'
import { SharedProcesses } from './process/shared-processes.ts'

export type { NodeTimings } from './pod/node-env.ts'

export interface NodeOptions {
  readonly client: KubeClient
  readonly caches: SharedCaches
  readonly events: EventRecorder
  /** The node's own: pods/ and logs/ lie in it. One node at a time may use it. */
  readonly folder: string
  readonly nodeName: string
  readonly images: ImageResolver
  readonly network: PodNetwork
  /** For every container, such as KUBERNETES_SERVICE_HOST. */
  readonly podEnv: Readonly<Record<string, string>>
  readonly clock?: Clock
  /** Of a kubelet unless told otherwise. */
  readonly timings?: Partial<NodeTimings>
  readonly logLimits?: LogLimits
  /** For `status.addresses` of the Node. Default 127.0.0.1. */
  readonly address?: string
  readonly onError: (error: unknown, key?: ObjectKey) => void
}

export interface LocalNode {
  /** For the API server. */
  readonly streams: PodStreams
  /** Ends all processes, gracefully and within a limit, and leaves the objects. */
  stop(): Promise<void>
}

/** Runs the pods that are bound to this node as processes of this machine. */
export async function startNode(options: NodeOptions): Promise<LocalNode> {
  const { client, caches, nodeName, clock = systemClock, onError } = options
  await mkdir(join(options.folder, 'pods'), { recursive: true, mode: 0o700 })
  const folder = await realpath(options.folder)
  const mark = `${createHash('sha256').update(folder).digest('hex').slice(0, 16)}.`
  const env: NodeEnv = {
    client,
    events: options.events,
    clock,
    images: options.images,
    network: options.network,
    podEnv: options.podEnv,
    folder,
    mark,
    sharedProcesses: new SharedProcesses({ folder, mark: `${mark}shared`, clock }),
    timings: { ...KUBELET_TIMINGS, ...options.timings },
    ...(options.logLimits && { logLimits: options.logLimits }),
    onError,
  }
  await endLeftovers(folder, env.mark)

  const stop = new AbortController()
  const lives = new Map<string, PodLife>()
  const own = caches.of(pods, { fieldSelector: `spec.nodeName=${nodeName}` })
  const nodeCache = caches.of(nodes)
  await Promise.all([own.waitForSync(), nodeCache.waitForSync()])
  await removeStaleFolders(folder, (uid) => own.store.list().some(({ metadata }) => metadata.uid === uid))
  await keepNodeObject({
    client,
    cache: nodeCache,
    name: nodeName,
    address: options.address ?? '127.0.0.1',
    clock,
    signal: stop.signal,
    onError,
  })

  function take(pod: Pod): void {
    const { uid } = pod.metadata
    const life = uid === undefined ? undefined : lives.get(uid)
    const nodePod = asNodePod(pod)
    if (nodePod === undefined) onError(new TypeError(`the pod ${pod.metadata.name} has names that no API server would allow`), pod.metadata)
    else if (life !== undefined) life.update(nodePod)
    else begin(nodePod.metadata.uid, new PodLife(nodePod, env))
  }

  function begin(uid: string, life: PodLife): void {
    lives.set(uid, life)
    void life.ended.then(() => lives.delete(uid))
  }

  const leaves = [
    own.addHandler(({ type, object, old }: ObjectEvent<Pod>) => {
      if (old !== undefined && old.metadata.uid !== object.metadata.uid) lives.get(old.metadata.uid ?? '')?.vanish()
      if (type === 'DELETED') lives.get(object.metadata.uid ?? '')?.vanish()
      else take(object)
    }),
    caches.metadataOf(configMaps).addHandler(({ object }) => tell('configMap', object)),
    caches.metadataOf(secrets).addHandler(({ object }) => tell('secret', object)),
  ]

  function tell(kind: 'configMap' | 'secret', { metadata }: KubeObject): void {
    for (const life of lives.values()) {
      if (life.pod.metadata.namespace === metadata.namespace && life.refersTo(kind, metadata.name)) life.objectsChanged()
    }
  }

  return {
    streams: nodeStreams(folder, (uid) => lives.get(uid)),
    async stop() {
      stop.abort()
      for (const leave of leaves) leave()
      await Promise.all([...lives.values()].map((life) => life.stop()))
      await env.sharedProcesses.close()
    },
  }
}
