import type { ObjectEvent } from '../cache/event-feed.ts'
import type { Reflector } from '../cache/reflector.ts'
import { formatKey, keyOf } from '../objects/object-key.ts'
import type { KubeObject } from '../objects/types.ts'

/** State rebuilt from the events of a reflector alone. Events that do not fit together are kept in `faults`. */
export interface Replay<T extends KubeObject> {
  readonly objects: Map<string, T>
  readonly events: ObjectEvent<T>[]
  readonly faults: string[]
}

export function replayOf<T extends KubeObject>(reflector: Pick<Reflector<T>, 'addHandler'>): Replay<T> {
  const replay: Replay<T> = { objects: new Map(), events: [], faults: [] }
  reflector.addHandler((event) => {
    const key = formatKey(keyOf(event.object))
    const known = replay.objects.get(key)
    const { uid } = event.object.metadata
    replay.events.push(event)
    if (event.type === 'ADDED' ? known !== undefined : known?.metadata.uid !== uid) replay.faults.push(`${event.type} ${key} does not fit`)
    if (event.type !== 'ADDED' && event.old !== known) replay.faults.push(`${event.type} ${key}: old is not the last state`)
    if (event.type === 'DELETED') replay.objects.delete(key)
    else replay.objects.set(key, event.object)
  })
  return replay
}

/** name → version, to compare caches, replays and lists. */
export function versionsOf(objects: Iterable<KubeObject>): Record<string, string> {
  const rows = [...objects].map(
    (object) => [formatKey(keyOf(object)), `${object.metadata.uid}@${object.metadata.resourceVersion}`] as const,
  )
  return Object.fromEntries(rows.sort(([a], [b]) => (a < b ? -1 : 1)))
}
