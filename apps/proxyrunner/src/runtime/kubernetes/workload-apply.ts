import { jsonEqual } from '@thv/kernel/json-equal'
import { controllerOf, type KubeClient, type KubeObject, keyOf, type ResourceType, type StatefulSet } from '@thv/kube'
import type { RunConfig } from '@thv/runconfig/run-config'
import { runtimeError } from '../runtime-errors.ts'
import { GENERATION_ANNOTATION } from './pod-template.ts'

/** Owns the fields that the runner sets; the same name as the original's, so that either can take over from the other. */
export const FIELD_MANAGER = 'toolhive-container-manager'

/**
 * Whether a runner with a newer config has been here: then this one, which is about to be replaced, must not turn anything back.
 * A missing or unreadable number is no objection.
 */
export function isSuperseded(live: StatefulSet | undefined, config: RunConfig): boolean {
  // In the template it is where others put it.
  const of = (annotations: Readonly<Record<string, string>> | undefined) => annotations?.[GENERATION_ANNOTATION]
  const text = of(live?.metadata.annotations) ?? of(live?.spec?.template?.metadata?.annotations)
  if (config.mcpserver_generation === 0 || text === undefined || !/^\d+$/.test(text)) return false
  return Number(text) > config.mcpserver_generation
}

/** Objects that nobody owns may be taken over; those of somebody else never. Throws `workload_foreign`. */
export function refuseForeign(live: KubeObject, config: RunConfig): void {
  const controller = controllerOf(live)
  if (controller === undefined || controller.uid === config.owner?.uid) return
  const { kind = 'object', metadata } = live
  throw runtimeError('workload_foreign', `${kind} ${metadata.name} exists already and belongs to ${controller.kind} ${controller.name}`, {
    details: { kind, name: metadata.name, controller: controller.uid },
  })
}

/** What the API server does not let anybody change: such a StatefulSet must be made anew. */
export function needsReplacement(live: StatefulSet, desired: StatefulSet): boolean {
  return (
    live.spec?.serviceName !== desired.spec?.serviceName ||
    (live.spec?.['podManagementPolicy'] ?? 'OrderedReady') !== (desired.spec?.['podManagementPolicy'] ?? 'OrderedReady') ||
    !jsonEqual(live.spec?.selector?.matchLabels, desired.spec?.selector?.matchLabels)
  )
}

export interface Applier {
  /**
   * Applies unless the live object is as the last apply left it. Throws a conflict when the object is no longer the one given as live:
   * what was concluded from it may be wrong by now.
   */
  ensure<T extends KubeObject>(type: ResourceType<T>, desired: T, live: T | undefined): Promise<void>
  /** What the last apply of this object left, if there was one. */
  lastOf<T extends KubeObject>(type: ResourceType<T>, name: string): T | undefined
  forget(type: ResourceType, name: string): void
  readonly applies: number
}

/**
 * Server-side apply by force: fields that we set are ours, whoever changed them; fields that others added (the annotation of `kubectl
 * rollout restart`, replicas by an autoscaler) stay. An apply that changes nothing makes no event, so this cannot go in circles.
 */
export function createApplier(client: Pick<KubeClient, 'apply'>, signal: AbortSignal): Applier {
  const results = new Map<string, KubeObject>()
  const idOf = (type: ResourceType, name: string) => `${type.plural}/${name}`
  let applies = 0
  return {
    async ensure(type, desired, live) {
      const id = idOf(type, keyOf(desired).name)
      const last = results.get(id)
      if (live !== undefined && last !== undefined && jsonEqual(comparable(live), comparable(last))) return
      applies++
      const { resourceVersion } = live?.metadata ?? {}
      const pinned = resourceVersion === undefined ? desired : { ...desired, metadata: { ...desired.metadata, resourceVersion } }
      results.set(id, await client.apply(type, pinned, { fieldManager: FIELD_MANAGER, force: true, signal }))
    },
    lastOf: <T extends KubeObject>(type: ResourceType<T>, name: string) => results.get(idOf(type, name)) as T | undefined,
    forget: (type, name) => void results.delete(idOf(type, name)),
    get applies() {
      return applies
    },
  }
}

/** Without what changes by itself. */
function comparable(object: KubeObject): unknown {
  const { status: _, metadata, ...rest } = object as KubeObject & { status?: unknown }
  const { resourceVersion: __, managedFields: ___, generation: ____, ...identity } = metadata
  return { ...rest, metadata: identity }
}
