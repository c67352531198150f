import { linkSignals } from '@thv/kernel/lifecycle'
import {
  apiVersionOf,
  createController,
  customResourceDefinitions,
  done,
  type KubeObject,
  type ObjectEvent,
  type ObjectKey,
  type Outcome,
  type OwnerReference,
  type ReconcileContext,
  requeueAfter,
} from '@thv/kube'
import type { ControllerEnv, RunningController } from '../controller-env.ts'
import { listServedResources, type ServedResource } from '../served-resources.ts'
import { collect } from './collect.ts'
import { createKindMonitors, type StoppedKind } from './kind-monitors.ts'
import { type GraphNode, OwnerGraph } from './owner-graph.ts'

const REFRESH_MS = 30_000
const SETTLE_MS = 50
const COLLECTED_VERBS = ['delete', 'list', 'watch']

/**
 * Deletes what has no owner left, and ends deletions that wait for dependents or leave them behind. Works on every kind that the server
 * lists, custom ones as soon as they are there. One queue of uids: what an uid needs is read off the graph when its turn comes.
 */
export function garbageCollector(env: ControllerEnv): RunningController {
  const { client, clock, onError } = env
  const resources = new Map<string, ServedResource>()
  const find = (apiVersion: string, kind: string) => resources.get(`${apiVersion} ${kind}`)
  const wake = (uid: string) => controller.enqueue({ name: encodeURIComponent(uid) }) // a reference may hold any text for a uid
  const graph = new OwnerGraph({ wake, wrongNamespace })
  const asked = new WeakSet<GraphNode>()
  const monitors = createKindMonitors({ client, clock, onError, onEvent })

  function onEvent({ type, object }: ObjectEvent): void {
    if (type === 'DELETED') graph.remove(object)
    else graph.observe(object)
  }

  function wrongNamespace({ identity }: GraphNode, owner: OwnerReference): void {
    const { apiVersion, kind, namespace, name, uid } = identity
    const type = find(apiVersion, kind)
    if (type === undefined) return
    const object: KubeObject = { metadata: { name, uid, ...(namespace === '' ? {} : { namespace }) } }
    const named = `[${owner.apiVersion}/${owner.kind}, namespace: ${namespace}, name: ${owner.name}, uid: ${owner.uid}]`
    const note = `ownerRef ${named} does not exist in namespace "${namespace}"`
    env.events.record(type, object, { type: 'Warning', reason: 'OwnerRefInvalidNamespace', note })
  }

  async function reconcile({ name }: ObjectKey, { signal }: ReconcileContext): Promise<Outcome> {
    if (!monitors.ready) return requeueAfter(SETTLE_MS) // who its dependents are is not known yet
    const node = graph.get(decodeURIComponent(name))
    return node === undefined ? done : await collect(node, { client, graph, find, wake, asked }, signal)
  }

  async function refresh(signal: AbortSignal): Promise<void> {
    const served = await listServedResources(client, signal)
    resources.clear()
    for (const resource of served) resources.set(`${apiVersionOf(resource)} ${resource.kind}`, resource)
    for (const stopped of monitors.follow(served.filter(isCollected))) await forget(stopped, served, signal)
  }

  /** With its definition all objects of a kind go, perhaps faster than their watch could tell. */
  async function forget({ resource, objects }: StoppedKind, served: readonly ServedResource[], signal: AbortSignal): Promise<void> {
    const { group, plural } = resource
    if (served.some((other) => other.group === group && other.plural === plural)) return // in another version
    const definition = await client.tryGet(customResourceDefinitions, { name: `${plural}.${group}` }, { signal })
    if (definition === undefined) for (const object of objects) graph.remove(object)
  }

  /** Follows the definitions of kinds, and looks from time to time. */
  async function followKinds(signal: AbortSignal): Promise<void> {
    let kick = Promise.withResolvers<void>()
    const leave = env.caches.metadataOf(customResourceDefinitions).addHandler(() => kick.resolve())
    while (!signal.aborted) {
      const pause = new AbortController()
      const timer = clock.sleep(REFRESH_MS, linkSignals(signal, pause.signal)).catch(() => undefined) // ended early
      await Promise.race([kick.promise, timer])
      pause.abort()
      await clock.sleep(SETTLE_MS, signal).catch(() => undefined) // aborted: the loop ends
      kick = Promise.withResolvers()
      if (!signal.aborted) await refresh(signal).catch(onError)
    }
    leave()
  }

  async function run(signal: AbortSignal): Promise<void> {
    try {
      await refresh(signal)
      await Promise.all([controller.run(signal), followKinds(signal)])
    } finally {
      await monitors.close()
    }
  }

  const controller = createController({
    name: 'garbage-collector',
    reconcile,
    sources: [], // the graph wakes it
    concurrency: 8,
    queue: { backoff: { baseMs: 50, maxMs: 60_000 } },
    clock,
    onError,
  })
  return { name: controller.name, run }
}

function isCollected({ group, plural, preferred, verbs }: ServedResource): boolean {
  const isEvent = plural === 'events' && (group === '' || group === 'events.k8s.io')
  return preferred && !isEvent && COLLECTED_VERBS.every((verb) => verbs.includes(verb))
}
