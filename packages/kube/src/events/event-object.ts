import { randomInt } from 'node:crypto'
import { apiVersionOf } from '../client/paths.ts'
import type { KubeEvent, ObjectReference } from '../objects/builtin-kinds.ts'
import { microTime } from '../objects/micro-time.ts'
import type { KubeObject, ResourceType } from '../objects/types.ts'

export interface EventInput {
  readonly type: 'Normal' | 'Warning'
  /** Why, in one word for machines: `ImageMissing`. */
  readonly reason: string
  /** For people; cut at 1024 bytes. */
  readonly note: string
  /** The action during which it happened. Default `Reconcile`. */
  readonly action?: string | undefined
  readonly related?: { readonly type: ResourceType; readonly object: KubeObject } | undefined
}

export interface Reporter {
  /** Such as `toolhive.stacklok.dev/operator`. */
  readonly controller: string
  /** Which process of it: the pod's name. */
  readonly instance: string
}

/** The server's limits (events.k8s.io/v1). The note's is in bytes of UTF-8. */
const MAX_NOTE = 1024
const MAX_WORD = 128
const MAX_NAME = 253

/** Events of objects without a namespace live in `default`: the server takes no other place for them. */
function eventNamespace(object: KubeObject): string {
  return object.metadata.namespace ?? 'default'
}

/**
 * A name that no other event has: the object's, as far as it may stand in a name, and its time with a random part. Names must grow with
 * time: kubectl shows the events of an object in the order of their names, because those of events.k8s.io have no other time it sorts by.
 */
export function eventName(object: KubeObject, timeMs: number): string {
  const suffix = growingSuffix(timeMs)
  const stem = object.metadata.name
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, '-')
    .slice(0, MAX_NAME - suffix.length - 1)
    .replace(/^[.-]+|[.-]+$/g, '')
    .replace(/[.-]*\.[.-]*/g, '.')
  return stem === '' ? suffix : `${stem}.${suffix}`
}

/** The last suffix given out: of two within a millisecond the second one is the greater. */
const latest = { timeMs: -1, rest: 0 }
const REST_BITS = 20n

function growingSuffix(timeMs: number): string {
  const rest = timeMs === latest.timeMs ? latest.rest + randomInt(1, 256) : randomInt(2 ** 19)
  Object.assign(latest, { timeMs, rest })
  return ((BigInt(Math.max(0, Math.trunc(timeMs))) << REST_BITS) + BigInt(rest)).toString(16).padStart(16, '0')
}

export function eventObject(
  about: { readonly type: ResourceType; readonly object: KubeObject },
  input: EventInput,
  { reporter, name, timeMs }: { reporter: Reporter; name: string; timeMs: number },
): KubeEvent {
  const related = input.related && referenceTo(input.related.type, input.related.object)
  return {
    metadata: { name, namespace: eventNamespace(about.object) },
    eventTime: microTime(timeMs),
    type: input.type,
    reason: input.reason.slice(0, MAX_WORD),
    action: (input.action || 'Reconcile').slice(0, MAX_WORD),
    note: cutBytes(input.note, MAX_NOTE),
    regarding: referenceTo(about.type, about.object),
    ...(related && { related }),
    reportingController: reporter.controller,
    reportingInstance: reporter.instance.slice(0, MAX_WORD),
  }
}

/** Repeats of the same thing: same object, not only same name, and same words. */
export function eventKey(object: KubeObject, { type, reason, note, action }: EventInput): string {
  const { uid, namespace, name } = object.metadata
  return JSON.stringify([uid ?? [namespace, name], type, reason, note, action])
}

export function cutBytes(text: string, limit: number): string {
  const bytes = Buffer.from(text.toWellFormed(), 'utf8')
  if (bytes.length <= limit) return text.toWellFormed()
  let end = limit - Buffer.byteLength('…')
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return `${bytes.subarray(0, end).toString('utf8')}…`
}

function referenceTo(type: ResourceType, { metadata }: KubeObject): ObjectReference {
  const { namespace, name, uid, resourceVersion } = metadata
  return {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    name,
    ...(namespace !== undefined && { namespace }),
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
  }
}
