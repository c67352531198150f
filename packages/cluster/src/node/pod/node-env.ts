import type { Clock } from '@thv/kernel/clock'
import type { KubeClient } from '@thv/kube/client/client'
import type { EventRecorder } from '@thv/kube/events/events'
import type { ObjectKey } from '@thv/kube/objects/types'
import type { ImageResolver } from '../images/image-resolver.ts'
import type { LogLimits } from '../logs/container-log.ts'
import type { PodNetwork } from '../network/pod-network.ts'
import type { SharedProcesses } from '../process/shared-processes.ts'

/** Dependencies that all pods of the node share. */
export interface NodeEnv {
  readonly client: KubeClient
  readonly events: EventRecorder
  readonly clock: Clock
  readonly images: ImageResolver
  readonly network: PodNetwork
  /** For programs that run in one process. */
  readonly sharedProcesses: SharedProcesses
  /** For every container, such as where the API server is. */
  readonly podEnv: Readonly<Record<string, string>>
  readonly folder: string
  /** Begins the mark of every process of this node, and of no other. */
  readonly mark: string
  readonly timings: NodeTimings
  readonly logLimits?: LogLimits | undefined
  readonly onError: (error: unknown, key?: ObjectKey) => void
}

/** How long things take; those of a kubelet unless told otherwise. Milliseconds. */
export interface NodeTimings {
  /** Of restarts and of pulls: the first delay and the longest. */
  readonly backoffBase: number
  readonly backoffMax: number
  /** A container that ran this long since its last delay begins again. */
  readonly backoffReset: number
  /** Until a container whose configuration is not complete, or a volume, is tried again. */
  readonly retry: number
  /** Between looks at what a container listens on; the first comes sooner. */
  readonly bindCheck: number
  /** How long containers may take to end when the node stops, at most. */
  readonly stopGrace: number
  /** How long the last output of a container that has ended may take to be read. */
  readonly drain: number
  /** How long the last status of a pod that is deleted may be refused before the pod goes without it. */
  readonly lastStatus: number
}

export const KUBELET_TIMINGS: NodeTimings = {
  backoffBase: 10_000,
  backoffMax: 300_000,
  backoffReset: 600_000,
  retry: 10_000,
  bindCheck: 60_000,
  stopGrace: 10_000,
  drain: 30_000,
  lastStatus: 10_000,
}
