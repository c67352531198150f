import type { PodPlace } from '../network/pod-network.ts'
import type { PodVolumes } from '../volumes/pod-volumes.ts'
import type { NodeEnv } from './node-env.ts'
import type { NodePod } from './pod-spec.ts'

/** State that the containers of one pod share. */
export interface PodContext {
  readonly env: NodeEnv
  /** As it is now. */
  readonly pod: NodePod
  readonly place: PodPlace
  readonly volumes: PodVolumes
  /** Of the pod. */
  readonly folder: string
  /** The status of some container has changed. */
  changed(): void
  event(type: 'Normal' | 'Warning', reason: string, note: string): void
  /** Waits, and less when one of the objects that the pod refers to has changed. */
  waitForChange(ms: number, signal: AbortSignal): Promise<void>
}
