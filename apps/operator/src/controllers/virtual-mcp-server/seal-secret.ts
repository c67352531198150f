import { randomBytes } from 'node:crypto'
import { isConflict, isControlledBy, type KubeObject, keyOf, type ObjectKey, secrets, setControllerReference } from '@thv/kube'
import {
  VirtualMCPServerCondition as Condition,
  VirtualMCPServerEvent as Event,
  VirtualMCPServerReason as Reason,
} from '@thv/resources/kinds/virtual-mcp-server/constants'
import { virtualMcpServerType } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { secretCache } from '../../caches/built-in-caches.ts'
import type { ForeignChild } from '../../deployment/child-applier.ts'
import type { Blocker } from '../../deployment/contribution.ts'
import type { Env } from '../../environment.ts'
import { virtualServerNames } from '../../proxy/names.ts'
import { SEAL_KEY } from './objects/deployment.ts'

export type Seal =
  | { readonly ok: true }
  | { readonly ok: false; readonly foreign: ForeignChild }
  | { readonly ok: false; readonly blocker: Blocker }

const SEAL_BYTES = 32
/** Versions of Secrets that were found right, by operator: contents are not cached, so they are read once per version. */
const checked = new WeakMap<object, Map<string, string>>()

/** Makes the Secret that seals what clients carry back, once. One of somebody else is left alone; one that is no seal is not used. */
export async function ensureSeal(server: KubeObject, env: Env, signal: AbortSignal): Promise<Seal> {
  const { namespace = '', name } = server.metadata
  const key: ObjectKey = { namespace, name: virtualServerNames(name).seal }
  const live = env.caches.of(secretCache).get(key)
  if (live === undefined) return await create(server, key, { env, signal })
  if (!isControlledBy(live, server)) return { ok: false, foreign: foreign(live) }
  return await check(key, `${live.metadata.uid}/${live.metadata.resourceVersion}`, { env, signal })
}

interface Deps {
  readonly env: Env
  readonly signal: AbortSignal
}

async function create(server: KubeObject, key: ObjectKey, { env, signal }: Deps): Promise<Seal> {
  const secret = {
    metadata: {
      ...key,
      labels: {
        'app.kubernetes.io/name': 'virtualmcpserver',
        'app.kubernetes.io/instance': server.metadata.name,
        'app.kubernetes.io/component': 'session-security',
        'app.kubernetes.io/managed-by': 'toolhive-operator',
      },
      annotations: { 'toolhive.stacklok.dev/purpose': 'hmac-secret-for-session-token-binding' },
    },
    type: 'Opaque',
    data: { [SEAL_KEY]: Buffer.from(randomBytes(SEAL_BYTES).toString('base64')).toString('base64') },
  }
  try {
    await env.client.create(secrets, setControllerReference(secret, { object: server, type: virtualMcpServerType }), { signal })
    env.events.record(server, { type: 'Normal', reason: Event.HMACSecretCreated, note: `Secret ${key.name} was made` })
    return { ok: true }
  } catch (error) {
    // The cache is behind: it exists.
    if (!isConflict(error)) throw error
    const existing = await env.client.tryGet(secrets, key, { signal })
    if (existing !== undefined && !isControlledBy(existing, server)) return { ok: false, foreign: foreign(existing) }
    return { ok: true }
  }
}

async function check(key: ObjectKey, version: string, { env, signal }: Deps): Promise<Seal> {
  const known = checked.get(env.caches) ?? new Map<string, string>()
  checked.set(env.caches, known)
  const id = `${key.namespace}/${key.name}`
  if (known.get(id) === version) return { ok: true }
  const secret = await env.client.tryGet(secrets, key, { signal })
  if (secret === undefined || isSeal(secret.data?.[SEAL_KEY])) {
    if (secret !== undefined) known.set(id, version)
    return { ok: true }
  }
  const message = `Secret ${key.name} has no ${SEAL_BYTES} random bytes in base64 under ${SEAL_KEY}: delete it, and a new one is made`
  return { ok: false, blocker: { condition: Condition.Valid, reason: Reason.SealSecretInvalid, message } }
}

function isSeal(data: string | undefined): boolean {
  const bytes = Buffer.from(Buffer.from(data ?? '', 'base64').toString('utf8'), 'base64')
  return bytes.length === SEAL_BYTES && bytes.some((byte) => byte !== 0)
}

function foreign(live: KubeObject): ForeignChild {
  const controller = live.metadata.ownerReferences?.find((reference) => reference.controller === true)
  return {
    kind: 'foreign',
    name: keyOf(live).name,
    childKind: 'Secret',
    controller: controller && `${controller.kind} ${controller.name}`,
  }
}
