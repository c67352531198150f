import { systemClock } from '@thv/kernel/clock'
import { tryParseDuration } from '@thv/kernel/duration'
import { ThvError } from '@thv/kernel/errors'
import type { KubeClient } from '@thv/kube/client/client'
import { isNotFound } from '@thv/kube/client/kube-api-error'
import type { ObjectKey } from '@thv/kube/objects/types'
import { loadKinds, type ServedResource, shownName } from '../cluster/kind-catalog.ts'
import { type ClusterFlags, withCluster } from '../cluster/open-cluster.ts'
import { parseTargets } from '../cluster/targets.ts'
import type { ProgramEnv } from '../program.ts'
import { createKinds, placed } from './apply-command.ts'
import { type ManifestObject, readManifests } from './manifest-files.ts'
import { createObjectFailures, type ObjectFailures } from './object-failures.ts'

export interface DeleteOptions extends ClusterFlags {
  readonly filename: readonly string[]
  readonly selector?: string
  readonly all?: boolean
  readonly ignoreNotFound?: boolean
  readonly wait: boolean
  readonly timeout: string
}

/** One object that shall go. */
interface Doomed {
  readonly resource: ServedResource
  readonly key: ObjectKey
  readonly manifest?: ManifestObject
}

interface Deleting {
  readonly client: KubeClient
  readonly options: DeleteOptions
  readonly env: ProgramEnv
  readonly failures: ObjectFailures
}

/** thv delete -f FILE|FOLDER|- , or KIND NAME… : waits until the objects are gone. */
export async function runDelete(words: readonly string[], options: DeleteOptions, env: ProgramEnv): Promise<void> {
  const timeoutMs = timeoutOf(options.timeout)
  if (words.length > 0 === options.filename.length > 0) throw new ThvError('usage', 'specify either KIND NAME… or -f FILE')
  const failures = createObjectFailures(env)
  const { objects, problems } = await readManifests(options.filename, env)
  for (const problem of problems) failures.problem(problem)
  const total = await withCluster(options, env, async ({ client, namespace }) => {
    const deleting = { client, options, env, failures }
    // In reverse: later objects depend on earlier ones.
    const doomed =
      words.length > 0
        ? await named(words, { ...deleting, namespace })
        : await ofManifests(objects.toReversed(), { ...deleting, namespace })
    const gone: (Doomed & { uid: string })[] = []
    for (const each of doomed) {
      const uid = await deleteObject(each, deleting)
      if (uid !== undefined) gone.push({ ...each, uid })
    }
    if (options.wait) await waitUntilGone(gone, { ...deleting, timeoutMs })
    return doomed.length
  })
  failures.finish(Math.max(total + problems.length, failures.count), 'deleted')
}

async function named(words: readonly string[], { client, options, env, namespace }: Deleting & { namespace: string }): Promise<Doomed[]> {
  const doomed: Doomed[] = []
  for (const { resource, names } of parseTargets(words, await loadKinds(client, env.signal))) {
    const place = resource.type.namespaced ? { namespace } : {}
    if (names !== undefined && (options.all || options.selector !== undefined))
      throw new ThvError('usage', 'specify only one of names, --all and --selector')
    if (names === undefined && !options.all && options.selector === undefined)
      throw new ThvError('usage', `specify the names of the ${resource.type.plural} to delete, or --all`)
    const found =
      names ?? (await client.listAll(resource.type, { ...place, labelSelector: options.selector })).items.map((each) => each.metadata.name)
    doomed.push(...found.map((name) => ({ resource, key: { ...place, name } })))
  }
  if (doomed.length === 0) env.err('No resources found\n')
  return doomed
}

async function ofManifests(objects: readonly ManifestObject[], deleting: Deleting & { namespace: string }): Promise<Doomed[]> {
  const { client, options, env, namespace, failures } = deleting
  const kinds = createKinds(client, env.signal)
  const doomed: Doomed[] = []
  for (const manifest of objects) {
    try {
      const resource = await kinds.of(manifest.object)
      const { metadata } = placed(manifest.object, { resource, namespace, demanded: options.namespace })
      const key = metadata.namespace ? { namespace: metadata.namespace, name: metadata.name } : { name: metadata.name }
      doomed.push({ resource, key, manifest })
    } catch (error) {
      failures.of(manifest, error)
    }
  }
  return doomed
}

/** The uid of what goes; undefined when there is nothing to wait for. */
async function deleteObject(
  { resource, key, manifest }: Doomed,
  { client, options, env, failures }: Deleting,
): Promise<string | undefined> {
  try {
    const { metadata } = await client.get(resource.type, key, { signal: env.signal })
    await client.delete(resource.type, key, { propagationPolicy: 'Background', signal: env.signal })
    env.out(`${shownName(resource, key.name)} deleted\n`)
    return metadata.uid
  } catch (error) {
    if (isNotFound(error) && options.ignoreNotFound) return undefined
    if (manifest) failures.of(manifest, error)
    else failures.ofObject(shownName(resource, key.name), error)
    return undefined
  }
}

const FIRST_LOOK_MS = 50
const LONGEST_LOOK_MS = 1_000

async function waitUntilGone(gone: readonly (Doomed & { uid: string })[], waiting: Deleting & { timeoutMs: number }): Promise<void> {
  const { client, env, timeoutMs, failures } = waiting
  const deadline = systemClock.monotonic() + timeoutMs
  for (const { resource, key, uid } of gone) {
    for (let pause = FIRST_LOOK_MS; ; pause = Math.min(pause * 2, LONGEST_LOOK_MS)) {
      const object = await client.tryGet(resource.type, key, { signal: env.signal })
      if (object === undefined || object.metadata.uid !== uid) break
      if (systemClock.monotonic() > deadline) {
        const { finalizers = [] } = object.metadata
        const why = finalizers.length > 0 ? `held by ${finalizers.join(', ')}` : 'its dependents have not terminated yet'
        failures.ofObject(shownName(resource, key.name), new ThvError('timeout', `still exists after ${waiting.options.timeout} (${why})`))
        break
      }
      await systemClock.sleep(pause, env.signal)
    }
  }
}

function timeoutOf(text: string): number {
  const ms = tryParseDuration(text)
  if (ms === undefined || ms < 0) throw new ThvError('usage', `--timeout must be a duration such as 30s or 2m, not ${JSON.stringify(text)}`)
  return ms
}
