import type { Clock } from '@thv/kernel/clock'
import type { KubeClient, KubeObject } from '@thv/kube'
import type { Logger } from '@thv/telemetry/log'
import type { OperatorCaches } from './caches/operator-caches.ts'
import type { ChildApplier } from './deployment/child-applier.ts'
import type { OperatorSettings } from './operator-settings.ts'

/** The dependencies of every reconciler. */
export interface Env {
  readonly client: KubeClient
  readonly caches: OperatorCaches
  readonly children: ChildApplier
  readonly events: EventSink
  readonly settings: OperatorSettings
  readonly clock: Clock
  readonly log: Logger
  /** For tests: without a change for so long, the exports of registries are computed again. */
  readonly exportDebounceMs?: number
}

export interface EventSink {
  /** Never throws and never waits; repetitions are counted together. `regarding` must carry apiVersion and kind. */
  record(regarding: KubeObject, event: OperatorEvent): void
}

export interface OperatorEvent {
  readonly type: 'Normal' | 'Warning'
  /** One word in CamelCase. */
  readonly reason: string
  readonly note: string
  /** The operator's action. Default `Reconcile`. */
  readonly action?: string
}
