import {
  controllerOf,
  controllerRef,
  formatKey,
  isAlreadyExists,
  isConflict,
  isControlledBy,
  type KubeObject,
  type ObjectKey,
  type ResourceType,
  type Secret,
  secrets,
  setControllerReference,
} from '@thv/kube'
import { deploymentCache, podCache, secretCache, WORKLOAD_INDEX } from '../caches/built-in-caches.ts'
import type { Env } from '../environment.ts'
import {
  earlierSecretName,
  isManagedFile,
  type KeyData,
  type KeyOwnerKind,
  managedSecretName,
  newKeyData,
  ROTATED_AT,
  rotatedKeyData,
  untilRotation,
} from './managed-keys.ts'

export type ManagedKeys =
  | { readonly ok: true; readonly secret: string; readonly untilRotationMs: number }
  /** A Secret of somebody else has the name. */
  | { readonly ok: false; readonly secret: string }

interface Owner<T extends KubeObject> {
  readonly object: T
  readonly type: ResourceType<T>
  readonly kind: KeyOwnerKind
}

/** Makes the Secret with keys of an authorization server, and replaces keys that are old. Contents are read only to rotate or to move them. */
export async function ensureManagedKeys<T extends KubeObject>(owner: Owner<T>, env: Env, signal: AbortSignal): Promise<ManagedKeys> {
  const { object, kind } = owner
  const { namespace = '', name } = object.metadata
  const key: ObjectKey = { namespace, name: managedSecretName(kind, name) }
  const cached = env.caches.of(secretCache).get(key)
  if (cached === undefined) return await create(owner, key, { env, signal })
  if (!isControlledBy(cached, object))
    return isAbandoned(cached, owner, env) ? await take(owner, key, { env, signal }) : { ok: false, secret: key.name }
  const left = untilRotation(cached.metadata.annotations?.[ROTATED_AT], env.clock.now())
  return left > 0 ? { ok: true, secret: key.name, untilRotationMs: left } : await rotate(owner, key, { env, signal })
}

interface Deps {
  readonly env: Env
  readonly signal: AbortSignal
}

const LABELS = { 'app.kubernetes.io/name': 'authserver', 'app.kubernetes.io/managed-by': 'toolhive-operator' }

async function create<T extends KubeObject>(owner: Owner<T>, key: ObjectKey, { env, signal }: Deps): Promise<ManagedKeys> {
  const { object, type } = owner
  const now = env.clock.now()
  const earlier = await earlierKeys(owner, key, { env, signal })
  const secret = {
    metadata: {
      ...key,
      labels: { ...LABELS, 'app.kubernetes.io/instance': object.metadata.name },
      annotations: { [ROTATED_AT]: earlier?.rotatedAt ?? new Date(now).toISOString() },
    },
    type: 'Opaque',
    data: { ...newKeyData(), ...earlier?.data },
  }
  const made: ManagedKeys = { ok: true, secret: key.name, untilRotationMs: untilRotation(secret.metadata.annotations[ROTATED_AT], now) }
  try {
    await env.client.create(secrets, setControllerReference(secret, { object, type }), { signal })
    const note = earlier === undefined ? `Secret ${key.name} was made` : `Secret ${key.name} was made with the keys of ${earlier.secret}`
    env.events.record(object, { type: 'Normal', reason: 'SigningKeysCreated', note })
    return made
  } catch (error) {
    // The cache is behind: it exists.
    if (!isAlreadyExists(error)) throw error
    const existing = await env.client.tryGet(secrets, key, { signal })
    return existing === undefined || isControlledBy(existing, object) ? made : { ok: false, secret: key.name }
  }
}

/**
 * Keys of a Secret that an earlier version of the operator made for this owner under another name: clients and sessions depend on them. It stays,
 * because pods that are not replaced yet mount it, until its owner goes or an MCPExternalAuthConfig of that name takes it.
 */
async function earlierKeys<T extends KubeObject>(
  { object, kind }: Owner<T>,
  { namespace = '' }: ObjectKey,
  { env, signal }: Deps,
): Promise<{ readonly secret: string; readonly rotatedAt: string | undefined; readonly data: KeyData } | undefined> {
  const name = earlierSecretName(kind, object.metadata.name)
  const cached = name === undefined ? undefined : env.caches.of(secretCache).get({ namespace, name })
  if (name === undefined || cached === undefined || !isControlledBy(cached, object)) return undefined
  const live = await env.client.tryGet(secrets, { namespace, name }, { signal })
  if (live === undefined || !isControlledBy(live, object) || !isOurs(live)) return undefined
  const data = Object.fromEntries(Object.entries(live.data ?? {}).filter(([file, value]) => isManagedFile(file) && value !== ''))
  return { secret: name, rotatedAt: live.metadata.annotations?.[ROTATED_AT], data }
}

/**
 * An earlier version of the operator made a Secret with the name that this owner needs, for a VirtualMCPServer of its name. That one has keys of its own by
 * now, with the same contents, and none of its pods mounts the old Secret any more.
 */
function isAbandoned<T extends KubeObject>(cached: Secret, { object, kind }: Owner<T>, { caches }: Env): boolean {
  const { namespace = '', name } = object.metadata
  const before = controllerOf(cached)
  if (kind !== 'MCPExternalAuthConfig' || before?.kind !== 'VirtualMCPServer' || before.name !== name || !isOurs(cached)) return false
  const successor = caches.of(secretCache).get({ namespace, name: managedSecretName('VirtualMCPServer', name) })
  if (successor === undefined || controllerOf(successor)?.uid !== before.uid) return false
  const deployment = caches.of(deploymentCache).get({ namespace, name })
  const pods = caches.of(podCache).byIndex(WORKLOAD_INDEX, formatKey({ namespace, name }))
  const specs = [deployment?.spec?.template?.spec, ...pods.map(({ spec }) => spec)]
  return !specs.some((spec) => JSON.stringify(spec?.volumes ?? []).includes(JSON.stringify(cached.metadata.name)))
}

/** Makes it this owner's, with new keys. */
async function take<T extends KubeObject>(owner: Owner<T>, key: ObjectKey, { env, signal }: Deps): Promise<ManagedKeys> {
  const { object, type } = owner
  const now = env.clock.now()
  const live = await env.client.tryGet(secrets, key, { signal })
  if (live === undefined || !isAbandoned(live, owner, env)) return { ok: false, secret: key.name }
  const rotatedAt = new Date(now).toISOString()
  const next = {
    ...live,
    metadata: {
      ...live.metadata,
      labels: { ...live.metadata.labels, ...LABELS, 'app.kubernetes.io/instance': object.metadata.name },
      annotations: { ...live.metadata.annotations, [ROTATED_AT]: rotatedAt },
      ownerReferences: [controllerRef(object, type)],
    },
    data: newKeyData(),
  }
  try {
    // The version of what was read: a change in between is a conflict.
    await env.client.update(secrets, next, { signal })
  } catch (error) {
    if (!isConflict(error)) throw error
    return { ok: false, secret: key.name }
  }
  env.events.record(object, {
    type: 'Normal',
    reason: 'SigningKeysCreated',
    note: `Secret ${key.name} has new keys: VirtualMCPServer ${object.metadata.name} uses it no more`,
  })
  return { ok: true, secret: key.name, untilRotationMs: untilRotation(rotatedAt, now) }
}

function isOurs({ metadata }: KubeObject): boolean {
  return Object.entries(LABELS).every(([label, value]) => metadata.labels?.[label] === value)
}

async function rotate<T extends KubeObject>({ object }: Owner<T>, key: ObjectKey, { env, signal }: Deps): Promise<ManagedKeys> {
  const now = env.clock.now()
  const live = await env.client.tryGet(secrets, key, { signal })
  const left = untilRotation(live?.metadata.annotations?.[ROTATED_AT], now)
  // The cache is behind.
  if (live === undefined || !isControlledBy(live, object) || left > 0)
    return { ok: true, secret: key.name, untilRotationMs: Math.max(left, 1_000) }
  const rotatedAt = new Date(now).toISOString()
  // The version of what was read makes sure that no other operator rotates at the same time.
  const next = {
    ...live,
    metadata: { ...live.metadata, annotations: { ...live.metadata.annotations, [ROTATED_AT]: rotatedAt } },
    data: rotatedKeyData(live.data ?? {}),
  }
  try {
    await env.client.update(secrets, next, { signal })
    env.events.record(object, { type: 'Normal', reason: 'SigningKeysRotated', note: `keys of Secret ${key.name} were replaced` })
  } catch (error) {
    if (!isConflict(error)) throw error
  }
  return { ok: true, secret: key.name, untilRotationMs: untilRotation(rotatedAt, now) }
}
