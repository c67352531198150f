import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { generatedName } from '@thv/kube-schema/values/object-name'
import { objectKey } from '../../../store/stored-object.ts'
import { type Allocation, at, textAt } from '../../objects/served-kind.ts'
import { forbidden } from '../../objects/status-error.ts'
import { changedItems, flagAt, givenText, numberAt, objectsAt } from './validation/fields.ts'

const PODS = { group: '', kind: 'Pod', plural: 'pods' }
const TOKEN_PATH = '/var/run/secrets/kubernetes.io/serviceaccount'
const VOLUME_PREFIX = 'kube-api-access-'
/** An hour and seven seconds, by which the server knows the tokens that it asked for itself. */
const TOKEN_SECONDS = 3_607

/** Fields that the server itself adds to a pod, from its ServiceAccount and by custom. Throws 403 for a pod that no node could run. */
export function admitPod(pod: JsonObject, context: Pick<Allocation, 'store' | 'old'>): JsonObject {
  const spec = (pod['spec'] ?? {}) as JsonObject
  const { old } = context
  if (old !== undefined) return { ...pod, spec: tolerant(prioritisedAsBefore(spec, old)) }
  return { ...pod, spec: runnable(tolerant(prioritised(accounted(spec, pod, context), pod)), pod) }
}

function accounted(spec: JsonObject, pod: JsonObject, { store }: Pick<Allocation, 'store'>): JsonObject {
  const namespace = textAt(pod, 'metadata', 'namespace')
  const name = textAt(spec, 'serviceAccountName') || 'default'
  const account = store.get('serviceaccounts', objectKey(namespace, name))?.body
  if (account === undefined) throw refused(pod, `error looking up service account ${namespace}/${name}: serviceaccount "${name}" not found`)
  const named: JsonObject = { ...spec, serviceAccountName: name, serviceAccount: name }
  const mounts = flagAt(spec, 'automountServiceAccountToken') ?? flagAt(account, 'automountServiceAccountToken') ?? true
  const mounted = mounts ? withToken(named) : named
  const secrets = objectsAt(account, 'imagePullSecrets')
  return secrets.length > 0 && objectsAt(spec, 'imagePullSecrets').length === 0
    ? { ...mounted, imagePullSecrets: secrets.map((secret) => ({ name: textAt(secret, 'name') })) }
    : mounted
}

/** Every container gets the token of the account, unless it has something else mounted in its place. */
function withToken(spec: JsonObject): JsonObject {
  const present = objectsAt(spec, 'volumes').find((volume) => textAt(volume, 'name').startsWith(VOLUME_PREFIX))
  const name = present ? textAt(present, 'name') : generatedName(VOLUME_PREFIX)
  const mount = { name, readOnly: true, mountPath: TOKEN_PATH }
  let needed = false
  const container = (one: JsonObject): JsonObject => {
    const mounts = objectsAt(one, 'volumeMounts')
    if (mounts.some((other) => textAt(other, 'mountPath') === TOKEN_PATH)) return one
    needed = true
    return { ...one, volumeMounts: [...mounts, mount] }
  }
  const mounted = changedItems(changedItems(spec, 'initContainers', container), 'containers', container)
  return needed && !present ? { ...mounted, volumes: [...objectsAt(spec, 'volumes'), tokenVolume(name)] } : mounted
}

function tokenVolume(name: string): JsonObject {
  const namespace = { path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }
  const sources = [
    { serviceAccountToken: { expirationSeconds: TOKEN_SECONDS, path: 'token' } },
    { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
    { downwardAPI: { items: [namespace] } },
  ]
  return { name, projected: { sources, defaultMode: 0o644 } }
}

/** The classes that every cluster has; there is no way to make others here. */
const CLASSES: Readonly<Record<string, number>> = { 'system-cluster-critical': 2_000_000_000, 'system-node-critical': 2_000_001_000 }

function prioritised(spec: JsonObject, pod: JsonObject): JsonObject {
  const name = textAt(spec, 'priorityClassName')
  const computed = name === '' ? 0 : Object.hasOwn(CLASSES, name) ? CLASSES[name] : undefined
  if (computed === undefined) throw refused(pod, `no PriorityClass with name ${name} was found`)
  const given = numberAt(spec, 'priority')
  const why = (what: string, asked: unknown, value: unknown) =>
    `the ${what} (${asked}) must not be provided in pod spec; priority admission controller computed ${value} from the given PriorityClass name`
  if (given !== undefined && given !== computed) throw refused(pod, why('integer value of priority', given, computed))
  const policy = givenText(spec, 'preemptionPolicy')
  if (policy !== undefined && policy !== PREEMPTION) throw refused(pod, why('string value of PreemptionPolicy', policy, PREEMPTION))
  return { ...spec, priority: computed, preemptionPolicy: PREEMPTION }
}

const PREEMPTION = 'PreemptLowerPriority'

function prioritisedAsBefore(spec: JsonObject, old: JsonObject): JsonObject {
  const members = ['priority', 'preemptionPolicy'].flatMap((name) => {
    const before = at(old, 'spec', name)
    return spec[name] === undefined && before !== undefined ? [[name, before] as const] : []
  })
  return { ...spec, ...Object.fromEntries(members) }
}

const TROUBLES = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']

/** A pod stays for five minutes on a node that is in trouble. */
function tolerant(spec: JsonObject): JsonObject {
  const tolerations = objectsAt(spec, 'tolerations')
  const missing = TROUBLES.filter(
    (key) => !tolerations.some((one) => ['', key].includes(textAt(one, 'key')) && ['', 'NoExecute'].includes(textAt(one, 'effect'))),
  )
  if (missing.length === 0) return spec
  const added = missing.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 }))
  return { ...spec, tolerations: [...tolerations, ...added] }
}

/** There are no RuntimeClasses here, so none is found. */
function runnable(spec: JsonObject, pod: JsonObject): JsonObject {
  const name = givenText(spec, 'runtimeClassName')
  if (name === undefined || name === '') return spec
  throw refused(pod, `pod rejected: RuntimeClass "${name}" not found`)
}

function refused(pod: JsonObject, why: string) {
  // The real server refuses before it makes a name.
  return forbidden(PODS, textAt(pod, 'metadata', 'generateName') || textAt(pod, 'metadata', 'name'), why)
}
