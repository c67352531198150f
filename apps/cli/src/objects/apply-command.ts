import { systemClock } from '@thv/kernel/clock'
import { isThvError, ThvError } from '@thv/kernel/errors'
import type { KubeClient } from '@thv/kube/client/client'
import { keyOf } from '@thv/kube/objects/object-key'
import type { KubeObject } from '@thv/kube/objects/types'
import { type KindCatalog, loadKinds, type ServedResource, shownName } from '../cluster/kind-catalog.ts'
import { type ClusterFlags, withCluster } from '../cluster/open-cluster.ts'
import { createPatience, noPatience, type Patience } from '../cluster/patience.ts'
import type { ProgramEnv } from '../program.ts'
import { readManifests } from './manifest-files.ts'
import { createObjectFailures } from './object-failures.ts'

export interface ApplyOptions extends ClusterFlags {
  readonly filename: readonly string[]
  readonly forceConflicts?: boolean
  /** How long to try again while the API server is busy or away. Without it, calls fail soon: somebody waits, and can repeat the command. */
  readonly withinMs?: number
}

export const FIELD_MANAGER = 'thv'
/** A definition that was just applied is served a moment later. */
const KIND_WITHIN_MS = 10_000

/** thv apply -f FILE|FOLDER|- : each object by itself; what fails is listed with its line, and the rest is still applied. */
export async function runApply(options: ApplyOptions, env: ProgramEnv): Promise<void> {
  if (options.filename.length === 0) throw new ThvError('usage', 'nothing to apply: set -f to a file, a folder, or - for standard input')
  const { objects, problems } = await readManifests(options.filename, env)
  const failures = createObjectFailures(env)
  for (const problem of problems) failures.problem(problem)
  if (objects.length === 0 && problems.length === 0) throw new ThvError('usage', 'no objects found in the files of -f')
  if (objects.length > 0) {
    await withCluster(options, env, async ({ client, namespace }) => {
      const kinds = createKinds(client, env.signal)
      const { withinMs } = options
      const patience = withinMs === undefined ? noPatience : createPatience({ withinMs, signal: env.signal })
      for (const manifest of objects) {
        try {
          const resource = await patience(() => kinds.of(manifest.object))
          const object = placed(manifest.object, { resource, namespace, demanded: options.namespace })
          const outcome = await applyObject(client, {
            resource,
            object,
            force: options.forceConflicts === true,
            signal: env.signal,
            patience,
          })
          env.out(`${shownName(resource, object.metadata.name)} ${outcome}\n`)
          if (object.kind === 'CustomResourceDefinition') kinds.expectMore()
        } catch (error) {
          if (isThvError(error, 'timeout')) throw error // no time is left for the others, either
          failures.of(manifest, error)
        }
      }
    })
  }
  failures.finish(objects.length + problems.length, 'applied')
}

interface ApplyCall {
  readonly resource: ServedResource
  readonly object: KubeObject
  readonly force: boolean
  readonly signal: AbortSignal | undefined
  readonly patience: Patience
}

async function applyObject(client: KubeClient, { resource, object, force, signal, patience }: ApplyCall): Promise<string> {
  const before = await patience(() => client.tryGet(resource.type, keyOf(object), { signal }))
  const options = { fieldManager: FIELD_MANAGER, force, fieldValidation: 'Strict', signal } as const
  const after = await patience(() => client.apply(resource.type, object, options))
  if (before === undefined || before.metadata.uid !== after.metadata.uid) return 'created'
  return before.metadata.resourceVersion === after.metadata.resourceVersion ? 'unchanged' : 'configured'
}

/** The object with its namespace. */
export function placed(
  object: KubeObject,
  { resource, namespace, demanded }: { resource: ServedResource; namespace: string; demanded: string | undefined },
): KubeObject {
  const own = object.metadata.namespace
  if (!resource.type.namespaced) return object
  if (own && demanded !== undefined && own !== demanded)
    throw new ThvError('usage', `metadata.namespace is ${own}, but -n is ${demanded}; they must be the same`)
  return { ...object, metadata: { ...object.metadata, namespace: own || namespace } }
}

/** The kinds of the server; read again when a kind is unknown that an applied definition may bring. */
export function createKinds(client: KubeClient, signal: AbortSignal | undefined) {
  let catalog: KindCatalog | undefined
  let mayGrow = false
  return {
    /** Throws `usage` when the server has no such kind. */
    async of({ apiVersion = '', kind = '' }: KubeObject): Promise<ServedResource> {
      const deadline = systemClock.monotonic() + KIND_WITHIN_MS
      for (;;) {
        catalog ??= await loadKinds(client, signal)
        const found = catalog.ofManifest(apiVersion, kind)
        if (found) return found
        if (!mayGrow || systemClock.monotonic() > deadline) throw new ThvError('usage', catalog.missing(apiVersion, kind))
        catalog = undefined
        await systemClock.sleep(100, signal)
      }
    },
    expectMore(): void {
      mayGrow = true
      catalog = undefined
    },
  }
}
