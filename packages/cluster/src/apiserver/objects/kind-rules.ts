import { invalid } from '@thv/kube-schema/field-problems'
import type { FieldProblem, Json, JsonObject } from '@thv/kube-schema/kind-schema'
import type { NameRule } from '@thv/kube-schema/values/object-name'
import { type EmptyFields, withoutEmpty } from './empty-fields.ts'
import { qualifiedNameProblems, textsOf } from './field-checks.ts'
import { at, isObject, type KindRules, metaOf, textAt, without } from './served-kind.ts'

/** Rules of a kind that has nothing special. */
export function plainRules(name: NameRule = 'subdomain', more: Partial<KindRules> = {}): KindRules {
  return { name, generation: [], unconditionalUpdate: true, returnsDeleted: false, ...more }
}

export const customRules: KindRules = plainRules('subdomain', { generation: ['*'], unconditionalUpdate: false })

export const namespaceRules: KindRules = plainRules('label', {
  returnsDeleted: true,
  applyDefaults: labelled,
  prepareCreate: (object) => ({
    ...object,
    spec: { ...objectAt(object, 'spec'), finalizers: [...new Set([...finalizersOf(object), 'kubernetes'])] },
    status: { phase: 'Active' },
  }),
  prepareUpdate: (object, old) => ({ ...object, spec: old['spec'] ?? {} }),
  beginDeletion: (object) => ({
    ...object,
    metadata: without(metaOf(object), 'deletionGracePeriodSeconds'),
    status: { ...objectAt(object, 'status'), phase: 'Terminating' },
  }),
  held: (object) => finalizersOf(object).length > 0,
  validate: (object, old) =>
    finalizersOf(object).flatMap((finalizer, index) =>
      namespaceFinalizerProblems(old === undefined ? 'spec.finalizers' : `spec.finalizers[${index}]`, finalizer),
    ),
  validateStatus: phaseProblems,
  selectable: { 'status.phase': (object) => textAt(object, 'status', 'phase') },
})

const ACCOUNT_EMPTY: EmptyFields = { kept: new Set(['automountServiceAccountToken']), maps: new Set(['metadata']) }

export const serviceAccountRules: KindRules = plainRules('subdomain', {
  returnsDeleted: true,
  applyDefaults: (account) => withoutEmpty(account, ACCOUNT_EMPTY),
  prepareCreate: withSecretNames,
  prepareUpdate: withSecretNames,
})

/** A reference to a Secret is its name: whatever else is said there is forgotten. */
function withSecretNames(account: JsonObject): JsonObject {
  const secrets = account['secrets']
  return Array.isArray(secrets) ? { ...account, secrets: secrets.map(nameOnly) } : account
}

function nameOnly(secret: Json): JsonObject {
  const name = textAt(secret, 'name')
  return name === '' ? {} : { name }
}

function finalizersOf(namespace: JsonObject): string[] {
  return textsOf(at(namespace, 'spec', 'finalizers'))
}

function namespaceFinalizerProblems(field: string, finalizer: string): FieldProblem[] {
  const wrong = qualifiedNameProblems(field, finalizer)
  if (wrong.length > 0 || finalizer.includes('/') || ['kubernetes', 'orphan', 'foregroundDeletion'].includes(finalizer)) return wrong
  return [invalid(field, finalizer, 'name is neither a standard finalizer name nor is it fully qualified')]
}

function phaseProblems(namespace: JsonObject): FieldProblem[] {
  const ending = textAt(namespace, 'metadata', 'deletionTimestamp') !== ''
  const phase = textAt(namespace, 'status', 'phase')
  if (phase === (ending ? 'Terminating' : 'Active')) return []
  const why = ending
    ? "may only be 'Terminating' if `deletionTimestamp` is not empty"
    : "may only be 'Active' if `deletionTimestamp` is empty"
  return [invalid('status.Phase', phase, why)]
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
