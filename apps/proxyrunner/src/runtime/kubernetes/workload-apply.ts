import { jsonEqual } from '@thv/kernel/json'
import { controllerOf, type KubeClient, type KubeObject, keyOf, onlyIfAbsent, type ResourceType, type StatefulSet } from '@thv/kube'
import type { RunConfig } from '@thv/runconfig/run-config'
import { runtimeError } from '../runtime-errors.ts'
import { workloadNames } from './desired-objects.ts'
import { GENERATION_ANNOTATION } from './pod-template.ts'

/** Owns the fields that the runner sets. ToolHive (Go) uses the same name, so that either runner can take over from the other. */
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

/**
 * Whether the runner may change or delete an object: our owner controls it, or it has no owner and both our labels and our field manager
 * say that a runner of this server made it. `live` must come with its `managedFields`.
 */
export function isOurs(live: KubeObject, config: RunConfig): boolean {
  const { ownerReferences = [], labels = {}, managedFields = [] } = live.metadata
  if (ownerReferences.length > 0) return config.owner !== undefined && controllerOf(live)?.uid === config.owner.uid
  const own = { toolhive: 'true', ...workloadNames(config).selector }
  return (
    Object.entries(own).every(([label, value]) => labels[label] === value) &&
    managedFields.some((entry) => (entry as { manager?: unknown }).manager === FIELD_MANAGER)
  )
}

/** Throws `workload_foreign` unless the object is ours. */
export function refuseForeign(live: KubeObject, { type, config }: { type: ResourceType; config: RunConfig }): void {
  if (isOurs(live, config)) return
  const { name } = live.metadata
  const owner = controllerOf(live) ?? live.metadata.ownerReferences?.[0]
  const whose = owner === undefined ? 'which this server did not make' : `which belongs to ${owner.kind} ${owner.name}`
  const message = `There is a ${type.kind} ${name} already, ${whose}: delete it, or give this server another name.`
  throw runtimeError('workload_foreign', message, { details: { kind: type.kind, name } })
}

/** Immutable fields: such a StatefulSet must be created again. */
export function needsReplacement(live: StatefulSet, desired: StatefulSet): boolean {
  return (
    live.spec?.serviceName !== desired.spec?.serviceName ||
    (live.spec?.['podManagementPolicy'] ?? 'OrderedReady') !== (desired.spec?.['podManagementPolicy'] ?? 'OrderedReady') ||
    !jsonEqual(live.spec?.selector?.matchLabels, desired.spec?.selector?.matchLabels)
  )
}

export interface Applier {
  /**
   * Applies unless the live object is as the last apply left it. Throws a conflict when the object has changed since, or exists although
   * no live one was given: it may not be ours.
   */
  ensure<T extends KubeObject>(type: ResourceType<T>, desired: T, live: T | undefined): Promise<void>
  /** The result of the last apply of this object, if there was one. */
  lastOf<T extends KubeObject>(type: ResourceType<T>, name: string): T | undefined
  forget(type: ResourceType, name: string): void
  readonly applies: number
}

/**
 * Server-side apply by force: fields that we set are ours, also when others changed them; fields that others added (the annotation of `kubectl
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
      const pinned = live === undefined ? onlyIfAbsent(desired) : { ...desired, metadata: { ...desired.metadata, resourceVersion } }
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
