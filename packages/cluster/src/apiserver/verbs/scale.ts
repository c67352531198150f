import { parseLabelSelector } from '@thv/kube/objects/label-selector'
import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { type ApiAnswer, type ApiCall, storedObject } from '../http/request-context.ts'
import type { FieldTracker } from '../objects/field-tracker.ts'
import { at, isObject, metaOf, type ScalePaths, textAt, withAt } from '../objects/served-kind.ts'
import { badRequest, conflict, invalid, invalidValue, noSuchPath } from '../objects/status-error.ts'
import { updateDecoded } from './update-object.ts'
import { writeOptions } from './write-options.ts'

/** The `autoscaling/v1` Scale of an object: its number of replicas under one path for all kinds. */
export function getScale(call: ApiCall): ApiAnswer {
  return { status: 200, text: JSON.stringify(scaleOf(pathsOf(call), storedObject(call).body)) }
}

/** `change` makes the Scale that is wanted from the one that is. */
export function putScale(call: ApiCall, change: (current: JsonObject) => Json, tracker: FieldTracker): ApiAnswer {
  const paths = pathsOf(call)
  const old = storedObject(call)
  const wanted = change(scaleOf(paths, old.body))
  const options = writeOptions(call, 'UpdateOptions')
  if (!isObject(wanted)) throw badRequest('the object provided is not a Scale')
  const replicas = at(wanted, 'spec', 'replicas') ?? 0
  // The schema of a custom kind says so itself, in other words.
  if (!call.kind.custom && !(typeof replicas === 'number' && Number.isInteger(replicas) && replicas >= 0)) {
    const wrong = invalidValue('spec.replicas', replicas, 'must be greater than or equal to 0')
    throw invalid({ group: 'autoscaling', kind: 'Scale', plural: 'scales' }, old.name, [wrong])
  }
  const version = textAt(wanted, 'metadata', 'resourceVersion')
  if (version !== '' && version !== String(old.revision)) throw conflict(call.kind, old.name)
  const body = withAt(old.body, paths.spec, replicas)
  const inner: ApiCall = { ...call, path: { ...call.path, subresource: undefined } }
  const { status } = updateDecoded(inner, { old, body, options, tracker, subresource: 'scale' })
  const stored = options.dryRun ? body : storedObject(call).body
  return { status, text: JSON.stringify(scaleOf(paths, stored)) }
}

function pathsOf({ kind }: ApiCall): ScalePaths {
  if (kind.scale === undefined) throw noSuchPath()
  return kind.scale
}

function scaleOf(paths: ScalePaths, body: JsonObject): JsonObject {
  const metadata = metaOf(body)
  const kept = ['name', 'namespace', 'uid', 'resourceVersion', 'creationTimestamp'].filter((name) => metadata[name] !== undefined)
  const selector = selectorOf(paths, body)
  const replicas = at(body, ...paths.spec)
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: Object.fromEntries(kept.map((name) => [name, metadata[name] ?? null])),
    spec: typeof replicas === 'number' && replicas !== 0 ? { replicas } : {},
    status: { replicas: at(body, ...paths.status) ?? 0, ...(selector === '' ? {} : { selector }) },
  }
}

function selectorOf(paths: ScalePaths, body: JsonObject): string {
  if (paths.selector) return textAt(body, ...paths.selector)
  const selector = at(body, 'spec', 'selector')
  if (isObject(selector) && Object.values(selector).some((value) => typeof value === 'string'))
    return parseLabelSelector({ matchLabels: selector as Record<string, string> }).text // the plain map of a ReplicationController
  return isObject(selector) ? parseLabelSelector(selector as Parameters<typeof parseLabelSelector>[0]).text : ''
}
