import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import type { StoredObject } from '../../store/stored-object.ts'
import { readContinue } from '../http/continue-token.ts'
import { type ApiAnswer, type ApiCall, answerBody, answerStored, formOf, storedObject } from '../http/request-context.ts'
import { notAcceptable } from '../http/response-form.ts'
import { itemText } from '../objects/object-encoder.ts'
import { finalizersOf } from '../objects/object-meta.ts'
import { objectFilter } from '../objects/selectors.ts'
import { apiVersionOf, at, CRD_TYPE, metaOf, type ServedKind, textAt, without } from '../objects/served-kind.ts'
import { conflict, forbidden, methodNotAllowed, success } from '../objects/status-error.ts'
import { finishDefinition } from './definition-cleanup.ts'
import { type DeleteOptions, deleteOptions } from './delete-options.ts'
import { askedRevision } from './list-objects.ts'
import { checkListOptions } from './list-options.ts'

export function deleteObject(call: ApiCall, input: Json | undefined): ApiAnswer {
  const { kind } = call
  const options = deleteOptions(call.query, input)
  const object = storedObject(call)
  checkAllowed(kind, object)
  checkPreconditions(kind, object, options)
  const { gone, state } = deleteStored(call, object, options)
  if (!gone || kind.rules.returnsDeleted)
    return 'text' in state ? answerStored(call, state as StoredObject) : answerBody(call, state as JsonObject)
  return { status: 200, text: JSON.stringify(success(kind, { name: object.name, uid: textAt(object.body, 'metadata', 'uid') })) }
}

/** Deletes what the selectors keep, one by one, and answers with it. */
export function deleteCollection(call: ApiCall, input: Json | undefined): ApiAnswer {
  const { kind, path, query, env } = call
  if (kind.type === 'namespaces' || (kind.namespaced && path.namespace === undefined)) throw methodNotAllowed()
  if (formOf(call) !== 'Object') throw notAcceptable('a deleted collection is answered as a plain list only')
  checkListOptions(query)
  askedRevision(query)
  const token = query.get('continue') ?? ''
  if (token !== '') readContinue(token)
  const options = deleteOptions(query, input)
  const page = env.store.list({ type: kind.type, namespace: path.namespace, keep: objectFilter(kind, query) })
  const objects = page === 'expired' ? [] : page.objects
  for (const object of objects) {
    checkPreconditions(kind, object, options)
    deleteStored(call, object, options)
  }
  const head = JSON.stringify({
    kind: kind.listKind,
    apiVersion: apiVersionOf(kind),
    metadata: { resourceVersion: String(env.store.revision) },
  })
  return { status: 200, text: `${head.slice(0, -1)},"items":[${objects.map((object) => itemText(kind, object)).join(',')}]}` }
}

/** The object goes at once, or begins to: when something holds it, or it may have time to end. */
function deleteStored(call: ApiCall, object: StoredObject, options: DeleteOptions): { gone: boolean; state: StoredObject | JsonObject } {
  const { kind, env } = call
  const finalizers = propagated(finalizersOf(object.body), options.propagation || defaultPropagation(kind, object.body))
  const grace = kind.rules.gracePeriod?.(object.body, options.graceSeconds) ?? 0
  const held = finalizers.length > 0 || (kind.rules.held?.(object.body) ?? false) || grace > 0
  if (!held) {
    if (options.dryRun) return { gone: true, state: object }
    // An object with a grace period shows in its last state that it had none.
    const last = kind.rules.gracePeriod === undefined ? undefined : begin(call, object.body, { finalizers, grace })
    const result = env.store.delete(object, last)
    if ('refused' in result) throw conflict(kind, object.name)
    finishDefinition(env, kind)
    return { gone: true, state: result.object }
  }
  const body = begin(call, object.body, { finalizers, grace })
  if (body === undefined || options.dryRun) return { gone: false, state: body ?? object }
  const result = env.store.update(object, body)
  if ('refused' in result) throw conflict(kind, object.name)
  if (kind.type !== CRD_TYPE) return { gone: false, state: result.object }
  emptyDefinition(call, result.object)
  return { gone: env.store.get(CRD_TYPE, object.key) === undefined, state: result.object }
}

/** Undefined when the deletion has begun already and this one changes nothing. */
function begin(
  { kind, env }: ApiCall,
  body: JsonObject,
  { finalizers, grace }: { finalizers: string[]; grace: number },
): JsonObject | undefined {
  const metadata = metaOf(body)
  const list = finalizers.length > 0 ? { finalizers } : {}
  const since = textAt(metadata, 'deletionTimestamp')
  const before = at(metadata, 'deletionGracePeriodSeconds')
  if (since !== '' && grace >= (typeof before === 'number' ? before : 0)) {
    if (finalizers.length === finalizersOf(body).length) return undefined
    return { ...body, metadata: { ...without(metadata, 'finalizers'), ...list } }
  }
  const deletionTimestamp = new Date(env.clock.now() + grace * 1_000).toISOString().replace(/\.\d+Z$/, 'Z')
  const generation = metadata['generation']
  const next = typeof generation === 'number' && since === '' ? { generation: generation + 1 } : {}
  const begun = {
    ...body,
    metadata: { ...without(metadata, 'finalizers'), ...list, ...next, deletionTimestamp, deletionGracePeriodSeconds: grace },
  }
  return kind.rules.beginDeletion?.(begun) ?? begun
}

/** All objects of a definition go with it; those that something holds keep it until they are gone. */
function emptyDefinition(call: ApiCall, crd: StoredObject): void {
  const { env } = call
  const kind = env.registry.all().find((one) => one.custom && one.type === crd.name)
  if (kind === undefined) return
  const page = env.store.list({ type: kind.type })
  const options: DeleteOptions = { dryRun: false, graceSeconds: undefined, propagation: '' }
  for (const object of page === 'expired' ? [] : page.objects) deleteStored({ ...call, kind }, object, options)
  finishDefinition(env, kind)
}

const GC_FINALIZERS: readonly string[] = ['orphan', 'foregroundDeletion']

function defaultPropagation({ rules }: ServedKind, body: JsonObject): string {
  const isSaid = finalizersOf(body).some((finalizer) => GC_FINALIZERS.includes(finalizer))
  return rules.orphansDependents && !isSaid ? 'Orphan' : ''
}

/** How dependents are treated is written into the finalizers, for the garbage collector. */
function propagated(finalizers: readonly string[], policy: string): string[] {
  if (policy === '') return [...finalizers]
  const others = finalizers.filter((finalizer) => !GC_FINALIZERS.includes(finalizer))
  if (policy === 'Orphan') return [...others, 'orphan']
  return policy === 'Foreground' ? [...others, 'foregroundDeletion'] : others
}

const KEPT_NAMESPACES: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public'])

function checkAllowed(kind: ServedKind, object: StoredObject): void {
  if (kind.type === 'namespaces' && KEPT_NAMESPACES.has(object.name))
    throw forbidden(kind, object.name, 'this namespace may not be deleted')
}

function checkPreconditions(kind: ServedKind, object: StoredObject, { uid, resourceVersion }: DeleteOptions): void {
  const own = textAt(object.body, 'metadata', 'uid')
  const named = { ...kind, plural: kind.kind } // so does the real server here
  if (uid !== undefined && uid !== own) {
    const why = `the UID in the precondition (${uid}) does not match the UID in record (${own}). The object might have been deleted and then recreated`
    throw conflict(named, object.name, why)
  }
  if (resourceVersion !== undefined && resourceVersion !== String(object.revision)) {
    const why = `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${object.revision}). The object might have been modified`
    throw conflict(named, object.name, why)
  }
}
