import { jsonEqual } from '@thv/kernel/json-equal'
import type { FieldProblem, Json, JsonObject } from './kind-schema.ts'
import type { NameRule } from './object-name.ts'
import { at, isObject, type KindRules, metaOf, textAt, without } from './served-kind.ts'
import { forbiddenValue, invalidValue, problem } from './status-error.ts'

/** Rules of a kind that has nothing special. */
export function plainRules(name: NameRule = 'subdomain', more: Partial<KindRules> = {}): KindRules {
  return { name, generation: [], unconditionalUpdate: true, returnsDeleted: false, ...more }
}

export const customRules: KindRules = plainRules('subdomain', { generation: ['*'], unconditionalUpdate: false })

/** Kinds with a spec of their own and a status that only the subresource writes. */
export function specRules(name: NameRule = 'subdomain', more: Partial<KindRules> = {}): KindRules {
  return plainRules(name, { generation: ['spec'], prepareCreate: (object) => without(object, 'status'), ...more })
}

export const namespaceRules: KindRules = plainRules('label', {
  returnsDeleted: true,
  applyDefaults: labelled,
  prepareCreate: (object) => ({
    ...object,
    spec: { ...objectAt(object, 'spec'), finalizers: ['kubernetes'] },
    status: { phase: 'Active' },
  }),
  prepareUpdate: (object, old) => ({ ...object, spec: old['spec'] ?? {} }),
  beginDeletion: (object) => ({ ...object, status: { ...objectAt(object, 'status'), phase: 'Terminating' } }),
  held: (object) => {
    const finalizers = at(object, 'spec', 'finalizers')
    return Array.isArray(finalizers) && finalizers.length > 0
  },
  selectable: { 'status.phase': (object) => textAt(object, 'status', 'phase') },
})

export const podRules: KindRules = plainRules('subdomain', {
  generation: ['spec'],
  returnsDeleted: true,
  prepareCreate: (object) => ({ ...object, status: { phase: 'Pending', qosClass: 'BestEffort' } }),
  gracePeriod: (object, asked) => {
    const own = at(object, 'spec', 'terminationGracePeriodSeconds')
    const period = asked ?? (typeof own === 'number' ? own : 30)
    // Nobody runs it, so nobody has to stop it.
    if (textAt(object, 'spec', 'nodeName') === '') return 0
    return ['Succeeded', 'Failed'].includes(textAt(object, 'status', 'phase')) ? 0 : Math.max(period, asked === 0 ? 0 : 1)
  },
  selectable: {
    'spec.nodeName': (object) => textAt(object, 'spec', 'nodeName'),
    'spec.restartPolicy': (object) => textAt(object, 'spec', 'restartPolicy'),
    'spec.schedulerName': (object) => textAt(object, 'spec', 'schedulerName'),
    'spec.serviceAccountName': (object) => textAt(object, 'spec', 'serviceAccountName'),
    'status.phase': (object) => textAt(object, 'status', 'phase'),
    'status.podIP': (object) => textAt(object, 'status', 'podIP'),
    'status.nominatedNodeName': (object) => textAt(object, 'status', 'nominatedNodeName'),
  },
})

const EVENT_FIELDS = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath']

/** Of the stored form, that of the core group. */
export const eventRules: KindRules = plainRules('subdomain', {
  applyDefaults: (object) => ({
    eventTime: null,
    firstTimestamp: null,
    lastTimestamp: null,
    reportingComponent: '',
    reportingInstance: '',
    ...object,
  }),
  selectable: {
    ...Object.fromEntries(
      EVENT_FIELDS.map((name) => [`involvedObject.${name}`, (object: JsonObject) => textAt(object, 'involvedObject', name)]),
    ),
    reason: (object) => textAt(object, 'reason'),
    reportingComponent: (object) => textAt(object, 'reportingComponent'),
    source: (object) => textAt(object, 'source', 'component'),
    type: (object) => textAt(object, 'type'),
  },
})

export const configMapRules: KindRules = plainRules('subdomain', {
  validate: (object, old) => [...keyProblems(object, ['data', 'binaryData']), ...immutableProblems(object, old, ['data', 'binaryData'])],
})

export const secretRules: KindRules = plainRules('subdomain', {
  applyDefaults: secretData,
  validate: (object, old) => [
    ...keyProblems(object, ['data']),
    ...(old && object['type'] !== old['type'] ? [invalidValue('type', object['type'], 'field is immutable')] : []),
    ...immutableProblems(object, old, ['data']),
  ],
  selectable: { type: (object) => textAt(object, 'type') },
})

/** `stringData` is a way of writing `data`; it is never stored. */
function secretData(object: JsonObject): JsonObject {
  const { stringData, ...rest } = object
  const type = textAt(rest, 'type') === '' ? 'Opaque' : (rest['type'] ?? 'Opaque')
  if (!isObject(stringData)) return { ...rest, type }
  const encoded = Object.entries(stringData).map(([key, value]) => [key, Buffer.from(String(value)).toString('base64')])
  return { ...rest, type, data: { ...objectAt(rest, 'data'), ...Object.fromEntries(encoded) } }
}

const CONFIG_KEY = /^[-._a-zA-Z0-9]+$/
const MAX_DATA_BYTES = 1 << 20
const CONFIG_KEY_TEXT =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"

function keyProblems(object: JsonObject, members: readonly string[]): FieldProblem[] {
  const problems: FieldProblem[] = []
  let bytes = 0
  for (const member of members)
    for (const [key, value] of Object.entries(objectAt(object, member))) {
      bytes += Buffer.byteLength(String(value))
      const field = `${member}[${key}]`
      if (key.length > 253) problems.push(invalidValue(field, key, 'must be no more than 253 characters'))
      if (!CONFIG_KEY.test(key)) problems.push(invalidValue(field, key, CONFIG_KEY_TEXT))
      else if (key === '.') problems.push(invalidValue(field, key, "must not be '.'"))
      else if (key === '..') problems.push(invalidValue(field, key, "must not be '..'"))
      else if (key.startsWith('..')) problems.push(invalidValue(field, key, "must not start with '..'"))
    }
  const first = members.length === 1 ? (members[0] ?? '') : ''
  if (bytes > MAX_DATA_BYTES) problems.push(problem(first, 'FieldValueTooLong', `Too long: may not be more than ${MAX_DATA_BYTES} bytes`))
  return problems
}

function immutableProblems(object: JsonObject, old: JsonObject | undefined, members: readonly string[]): FieldProblem[] {
  if (old?.['immutable'] !== true) return []
  const changed = members.filter((member) => !jsonEqual(emptyIsAbsent(object[member]), emptyIsAbsent(old[member])))
  const names = object['immutable'] === true ? changed : ['immutable', ...changed]
  return names.map((name) => forbiddenValue(name, 'field is immutable when `immutable` is set'))
}

function emptyIsAbsent(value: Json | undefined): Json | undefined {
  return isObject(value) && Object.keys(value).length === 0 ? undefined : value
}

function labelled(namespace: JsonObject): JsonObject {
  const metadata = metaOf(namespace)
  const labels = { ...objectAt(metadata, 'labels'), 'kubernetes.io/metadata.name': textAt(metadata, 'name') }
  return { ...namespace, metadata: { ...metadata, labels } }
}

function objectAt(object: JsonObject, name: string): JsonObject {
  const value = object[name]
  return isObject(value) ? value : {}
}
