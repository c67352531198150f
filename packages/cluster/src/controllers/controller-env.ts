import type { Clock } from '@thv/kernel/clock'
import type { Controller, EventRecorder, KubeClient, ObjectKey, SharedCaches } from '@thv/kube'

/** Dependencies of every controller of the platform. Nothing in it says whether the API server is ours or a real one. */
export interface ControllerEnv {
  readonly client: KubeClient
  readonly caches: SharedCaches
  readonly events: EventRecorder
  readonly clock: Clock
  readonly onError: (error: unknown, key?: ObjectKey) => void
}

/** Something that works until the signal aborts. A `Controller` is one; a few are more than one queue. */
export type RunningController = Pick<Controller, 'name' | 'run'>

export type ControllerFactory = (env: ControllerEnv) => RunningController
