import type { Clock } from '@thv/kernel/clock'
import { type KubeClient, type KubeObject, type ObjectEvent, Reflector } from '@thv/kube'
import type { ServedResource } from '../served-resources.ts'

export interface KindMonitorsOptions {
  readonly client: KubeClient
  readonly clock: Clock
  readonly onEvent: (event: ObjectEvent) => void
  readonly onError: (error: unknown) => void
}

export interface KindMonitors {
  /** Begins to watch what is new in the list and ends the watches of what is not in it any more; returns those. */
  follow(resources: readonly ServedResource[]): StoppedKind[]
  /** Whether the content of all kinds is known. A kind that cannot be read is given up after a while. */
  readonly ready: boolean
  close(): Promise<void>
}

export interface StoppedKind {
  readonly resource: ServedResource
  /** Its last known state. */
  readonly objects: readonly KubeObject[]
}

interface Monitor {
  readonly resource: ServedResource
  readonly reflector: Reflector
  readonly startedAt: number
  readonly stop: AbortController
  readonly ended: Promise<void>
}

const PATIENCE_MS = 30_000

/** One watch per kind, for kinds that come and go. Of each object only what says who owns it is kept. */
export function createKindMonitors({ client, clock, onEvent, onError }: KindMonitorsOptions): KindMonitors {
  const monitors = new Map<string, Monitor>()
  const ending = new Set<Promise<void>>()

  function start(resource: ServedResource): Monitor {
    const stop = new AbortController()
    const reflector = new Reflector({ client, type: resource, clock, transform: ownershipOnly, onError })
    reflector.addHandler((event) => {
      if (!stop.signal.aborted) onEvent(event)
    })
    return { resource, reflector, stop, startedAt: clock.monotonic(), ended: reflector.run(stop.signal) }
  }

  function end({ stop, ended }: Monitor): void {
    stop.abort()
    const settled = ended.finally(() => ending.delete(settled))
    ending.add(settled)
  }

  return {
    follow(resources) {
      const wanted = new Map(resources.map((resource) => [idOf(resource), resource]))
      const stopped: StoppedKind[] = []
      for (const [id, monitor] of monitors) {
        if (wanted.has(id)) continue
        monitors.delete(id)
        stopped.push({ resource: monitor.resource, objects: monitor.reflector.store.list() })
        end(monitor)
      }
      for (const [id, resource] of wanted) if (!monitors.has(id)) monitors.set(id, start(resource))
      return stopped
    },
    get ready() {
      const now = clock.monotonic()
      return [...monitors.values()].every(({ reflector, startedAt }) => reflector.hasSynced || now - startedAt > PATIENCE_MS)
    },
    async close() {
      for (const monitor of monitors.values()) end(monitor)
      monitors.clear()
      await Promise.all(ending)
    },
  }
}

function idOf({ group, version, plural }: ServedResource): string {
  return `${group}/${version}/${plural}`
}

function ownershipOnly({ apiVersion, kind, metadata }: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion, ownerReferences, finalizers, deletionTimestamp } = metadata
  return {
    ...(apiVersion === undefined ? {} : { apiVersion }),
    ...(kind === undefined ? {} : { kind }),
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(ownerReferences === undefined ? {} : { ownerReferences }),
      ...(finalizers === undefined ? {} : { finalizers }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    },
  }
}
