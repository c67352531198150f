import {
  isAlreadyExists,
  isConflict,
  isControlledBy,
  type KubeObject,
  type ObjectKey,
  type ResourceType,
  secrets,
  setControllerReference,
} from '@thv/kube'
import { secretCache } from '../caches/built-in-caches.ts'
import type { Env } from '../environment.ts'
import { type KeyOwnerKind, managedSecretName, newKeyData, ROTATED_AT, rotatedKeyData, untilRotation } from './managed-keys.ts'

export type ManagedKeys =
  | { readonly ok: true; readonly secret: string; readonly untilRotationMs: number }
  /** A Secret of somebody else has the name. */
  | { readonly ok: false; readonly secret: string }

interface Owner<T extends KubeObject> {
  readonly object: T
  readonly type: ResourceType<T>
  readonly kind: KeyOwnerKind
}

/** Makes the Secret with keys of an authorization server, and replaces keys that are old. Contents are read only to rotate them. */
export async function ensureManagedKeys<T extends KubeObject>(owner: Owner<T>, env: Env, signal: AbortSignal): Promise<ManagedKeys> {
  const { object, kind } = owner
  const { namespace = '', name } = object.metadata
  const key: ObjectKey = { namespace, name: managedSecretName(kind, name) }
  const cached = env.caches.of(secretCache).get(key)
  if (cached === undefined) return await create(owner, key, { env, signal })
  if (!isControlledBy(cached, object)) return { ok: false, secret: key.name }
  const left = untilRotation(cached.metadata.annotations?.[ROTATED_AT], env.clock.now())
  return left > 0 ? { ok: true, secret: key.name, untilRotationMs: left } : await rotate(owner, key, { env, signal })
}

interface Deps {
  readonly env: Env
  readonly signal: AbortSignal
}

async function create<T extends KubeObject>({ object, type }: Owner<T>, key: ObjectKey, { env, signal }: Deps): Promise<ManagedKeys> {
  const now = env.clock.now()
  const secret = {
    metadata: {
      ...key,
      labels: {
        'app.kubernetes.io/name': 'authserver',
        'app.kubernetes.io/instance': object.metadata.name,
        'app.kubernetes.io/managed-by': 'toolhive-operator',
      },
      annotations: { [ROTATED_AT]: new Date(now).toISOString() },
    },
    type: 'Opaque',
    data: newKeyData(),
  }
  const made: ManagedKeys = { ok: true, secret: key.name, untilRotationMs: untilRotation(secret.metadata.annotations[ROTATED_AT], now) }
  try {
    await env.client.create(secrets, setControllerReference(secret, { object, type }), { signal })
    env.events.record(object, { type: 'Normal', reason: 'SigningKeysCreated', note: `Secret ${key.name} was made` })
    return made
  } catch (error) {
    // The cache is behind: it exists.
    if (!isAlreadyExists(error)) throw error
    const existing = await env.client.tryGet(secrets, key, { signal })
    return existing === undefined || isControlledBy(existing, object) ? made : { ok: false, secret: key.name }
  }
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
