import { createHash } from 'node:crypto'
import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { isNotFound, type KubeClient, type KubeObject, keyOf, type ResourceType } from '@thv/kube'

/** One object, and where it goes. */
export interface PlatformManifest {
  readonly type: ResourceType
  readonly object: KubeObject
}

export interface ApplyManifestsOptions {
  readonly client: KubeClient
  readonly clock: Clock
  readonly signal: AbortSignal
}

const FIELD_MANAGER = 'thv-platform'
/** The last applied state, so that an unchanged object costs one read, and what a user changed by hand stays. */
const HASH = 'toolhive.stacklok.dev/platform-manifest'
const DEFINITION = 'CustomResourceDefinition'
const ESTABLISHED_WITHIN_MS = 10_000

/** Applies in order those that differ from what was applied last; definitions are served when it resolves. Returns how many there were. */
export async function applyManifests(manifests: readonly PlatformManifest[], options: ApplyManifestsOptions): Promise<number> {
  const { client, signal } = options
  const stale = await Promise.all(manifests.map(async (manifest) => await isStale(manifest, options)))
  const changed = manifests.filter((_, index) => stale[index])
  for (const { type, object } of changed) await client.apply(type, marked(object), { fieldManager: FIELD_MANAGER, force: true, signal })
  for (const { type, object } of changed) if (object.kind === DEFINITION) await established(type, object, options)
  return changed.length
}

/** Whether the platform has made it; one of the same name may be the user's. */
export function isPlatformObject({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[HASH] !== undefined
}

async function isStale({ type, object }: PlatformManifest, { client, signal }: ApplyManifestsOptions): Promise<boolean> {
  try {
    const live = await client.get(type, keyOf(object), { signal })
    return live.metadata.annotations?.[HASH] !== hashOf(object)
  } catch (error) {
    if (isNotFound(error)) return true
    throw error
  }
}

async function established(type: ResourceType, { metadata }: KubeObject, { client, clock, signal }: ApplyManifestsOptions): Promise<void> {
  const deadline = clock.monotonic() + ESTABLISHED_WITHIN_MS
  for (;;) {
    const { status } = (await client.get(type, { name: metadata.name }, { signal })) as KubeObject & {
      status?: { conditions?: { type: string; status: string; message?: string }[] }
    }
    const conditions = status?.conditions ?? []
    if (conditions.some((each) => each.type === 'Established' && each.status === 'True')) return
    if (clock.monotonic() > deadline) {
      const why = conditions.map((each) => `${each.type} ${each.status} ${each.message ?? ''}`.trim()).join('; ') || 'no condition'
      throw new ThvError('crd_schema_invalid', `the API server does not serve ${metadata.name}: ${why}`)
    }
    await clock.sleep(20, signal)
  }
}

function marked(object: KubeObject): KubeObject {
  return { ...object, metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, [HASH]: hashOf(object) } } }
}

function hashOf(object: KubeObject): string {
  return createHash('sha256').update(JSON.stringify(object)).digest('hex').slice(0, 16)
}
