import { notSupported, required } from '@thv/kube-schema/field-problems'
import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { objectKey, type StoredObject } from '../../store/stored-object.ts'
import { type ApiAnswer, type ApiCall, timestamp } from '../http/request-context.ts'
import { listOf } from '../objects/field-checks.ts'
import { at, isObject, metaOf, textAt, without } from '../objects/served-kind.ts'
import { badRequest, conflict, notFound, StatusError } from '../objects/status-error.ts'
import { writeOptions } from './write-options.ts'

const PODS = { group: '', kind: 'Pod', plural: 'pods' }

/**
 * POST of a Binding: the pod belongs to a node from now on. Once only, so that of two schedulers one loses. `name` is that of the path;
 * absent at the path of the bindings themselves.
 */
export function bindPod(call: ApiCall, input: Json, name: string | undefined): ApiAnswer {
  const { env, path } = call
  const { dryRun } = writeOptions(call, 'CreateOptions')
  const binding = isObject(input) ? input : {}
  const bound = textAt(binding, 'metadata', 'name')
  const elsewhere = textAt(binding, 'metadata', 'namespace')
  if (elsewhere !== '' && elsewhere !== path.namespace)
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  if (name !== undefined && name !== bound) throw badRequest('name in URL does not match name in Binding object')
  checkTarget(binding)
  const pod = env.store.get('pods', objectKey(path.namespace, bound))
  if (pod === undefined) throw notFound(PODS, bound)
  checkPreconditions(pod, binding)
  checkFree(pod)
  if (!dryRun) {
    const result = env.store.update(pod, boundBody(pod.body, binding, timestamp(env.clock)))
    if ('refused' in result) throw conflict(PODS, bound)
  }
  return { status: 201, text: JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }) }
}

/** The real server answers 500 to these. */
function checkTarget(binding: JsonObject): void {
  const kind = textAt(binding, 'target', 'kind')
  const problems = [
    ...(kind === '' || kind === 'Node' ? [] : [notSupported('target.kind', kind, ['Node', '<empty>'])]),
    ...(textAt(binding, 'target', 'name') === '' ? [required('target.name')] : []),
  ]
  if (problems.length === 0) return
  const texts = problems.map(({ detail }) => detail)
  throw new StatusError({ code: 500, reason: '', message: texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]` })
}

function checkPreconditions({ body, revision, key, name }: StoredObject, binding: JsonObject): void {
  const wanted = [
    ['UID', textAt(binding, 'metadata', 'uid'), textAt(body, 'metadata', 'uid')],
    ['ResourceVersion', textAt(binding, 'metadata', 'resourceVersion'), String(revision)],
  ] as const
  for (const [what, asked, own] of wanted) {
    if (asked === '' || asked === own) continue
    const why = `Precondition failed: ${what} in precondition: ${asked}, ${what} in object meta: ${own}`
    throw conflict(
      PODS,
      name,
      `StorageError: invalid object, Code: 4, Key: /registry/pods/${key}, ResourceVersion: 0, AdditionalErrorMsg: ${why}`,
    )
  }
}

function checkFree({ body, name }: StoredObject): void {
  const refuse = (why: string) => conflict({ ...PODS, plural: 'pods/binding' }, name, `pod ${name} ${why}`)
  const node = textAt(body, 'spec', 'nodeName')
  if (textAt(body, 'metadata', 'deletionTimestamp') !== '') throw refuse('is being deleted, cannot be assigned to a host')
  if (node !== '') throw refuse(`is already assigned to node ${JSON.stringify(node)}`)
  if (listOf(at(body, 'spec', 'schedulingGates')).length > 0) throw refuse('has non-empty .spec.schedulingGates')
}

function boundBody(pod: JsonObject, binding: JsonObject, now: string): JsonObject {
  const added = at(binding, 'metadata', 'annotations')
  const own = at(pod, 'metadata', 'annotations')
  const annotations = { ...(isObject(own) ? own : {}), ...(isObject(added) ? added : {}) }
  const [spec, status] = [pod['spec'], pod['status']]
  const conditions = listOf(at(pod, 'status', 'conditions'))
  const before = conditions.find((condition) => condition['type'] === 'PodScheduled')
  const since = before?.['status'] === 'True' ? (before['lastTransitionTime'] ?? now) : now
  const scheduled: JsonObject = { type: 'PodScheduled', status: 'True', lastProbeTime: null, lastTransitionTime: since }
  const others = conditions.map((condition) => (condition === before ? scheduled : condition))
  return {
    ...pod,
    metadata: { ...metaOf(pod), ...(Object.keys(annotations).length === 0 ? {} : { annotations }) },
    spec: { ...(isObject(spec) ? spec : {}), nodeName: textAt(binding, 'target', 'name') },
    status: {
      ...without(isObject(status) ? status : {}, 'nominatedNodeName'),
      conditions: before === undefined ? [...conditions, scheduled] : others,
    },
  }
}
