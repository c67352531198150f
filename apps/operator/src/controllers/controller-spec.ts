import type { KubeObject, ObjectKey, Outcome, ReconcileContext, Source } from '@thv/kube'
import type { CacheSpec } from '../caches/cache-spec.ts'
import type { OperatorCaches } from '../caches/operator-caches.ts'
import type { Serving } from '../deployment/status/refused-write.ts'
import type { Env } from '../environment.ts'

/** The controller of one kind, exported as `controller` by `controllers/<kind>/controller.ts`. */
export interface ControllerSpec {
  /** In logs and metrics. */
  readonly name: string
  /** Objects that are reconciled at the same time. */
  readonly concurrency: number
  /** The cache of its own kind. */
  readonly cache: CacheSpec
  /** The condition that is False while the API server refuses a write. Absent: it writes its own object only. */
  readonly refusedIn?: string
  /** The pods that serve clients, whatever the spec says by now; for a `refusedIn` of `Ready`. Undefined: none does. */
  serving?(object: KubeObject, env: Env): Serving | undefined
  reconcile(key: ObjectKey, env: Env, context: ReconcileContext): Promise<Outcome>
  /** The events that wake it, each mapped to exactly the objects that it concerns; nothing is listed and filtered. */
  sources(caches: OperatorCaches): readonly Source[]
}
