import {
  clusterRoleBindings,
  dropFinalizer,
  ensureFinalizer,
  formatKey,
  hasFinalizer,
  isForbidden,
  isNotFound,
  type KubeObject,
  keyOf,
  type ObjectKey,
  type ResourceType,
  roleBindings,
  roles,
} from '@thv/kube'
import { MCP_REGISTRY_FINALIZER } from '@thv/resources/kinds/mcp-registry/constants'
import { type MCPRegistry, mcpRegistryType as type } from '@thv/resources/kinds/mcp-registry/schema'
import { roleBindingCache, roleCache } from '../../caches/built-in-caches.ts'
import { MANAGED_BY, MANAGED_BY_LABEL } from '../../caches/cache-shapes.ts'
import { FIELD_MANAGER } from '../../deployment/child-applier.ts'
import { covers } from '../../deployment/is-subset.ts'
import type { Env } from '../../environment.ts'
import type { ExportScope } from '../../export/export-scope.ts'
import { clusterAccess, type ExportAccess, foreignAccess, foreignName } from './objects/export-access.ts'

interface Work {
  readonly registry: MCPRegistry
  readonly env: Env
  readonly signal: AbortSignal
}

const finalizer = (registry: MCPRegistry) => ({ type, object: registry, name: MCP_REGISTRY_FINALIZER })

/** By operator and registry: the namespaces with rights that it made and the caches may not show yet. */
const granted = new WeakMap<object, Map<string, Set<string>>>()

function grantedTo({ registry, env }: Work): Set<string> {
  const all = granted.get(env.caches) ?? new Map<string, Set<string>>()
  granted.set(env.caches, all)
  const id = formatKey(keyOf(registry))
  const namespaces = all.get(id) ?? new Set()
  all.set(id, namespaces)
  return namespaces
}

/**
 * Rights in other namespaces, which have no owner: a finalizer, set only while there are some, removes them with the registry. Objects
 * of somebody else with such a name are left alone.
 */
export async function ensureForeignAccess(work: Work, scope: ExportScope | undefined): Promise<void> {
  const { registry, env, signal } = work
  const { wanted, everywhere, isNeeded } = accessFor(work, scope)
  if (isNeeded) {
    // Before the first of them, so that none can be left behind.
    const held = await ensureFinalizer(env.client, finalizer(registry), { signal, clock: env.clock })
    if (held === undefined || !hasFinalizer(held, MCP_REGISTRY_FINALIZER)) return // it is being deleted, or gone
  }
  for (const access of wanted) await grant(work, access)
  if (everywhere !== undefined) {
    const live = await env.client.tryGet(clusterRoleBindings, { name: everywhere.metadata.name }, { signal })
    await ensure(work, { type: clusterRoleBindings, object: everywhere, live })
  }
  await withdrawForeignAccess(work, scope)
}

async function grant(work: Work, { role, binding }: ExportAccess): Promise<void> {
  const { caches } = work.env
  grantedTo(work).add(role.metadata.namespace ?? '')
  try {
    await ensure(work, { type: roles, object: role, live: caches.of(roleCache).get(keyOf(role)) })
    await ensure(work, { type: roleBindings, object: binding, live: caches.of(roleBindingCache).get(keyOf(binding)) })
  } catch (error) {
    if (!isNotFound(error)) throw error // the namespace does not exist, which the server reports
  }
}

/** Removes what the scope does not need any more, and grants nothing. */
export async function withdrawForeignAccess(work: Work, scope: ExportScope | undefined): Promise<void> {
  const { registry, env, signal } = work
  const { wanted, everywhere, isNeeded } = accessFor(work, scope)
  if (!isNeeded && !hasFinalizer(registry, MCP_REGISTRY_FINALIZER)) return
  await removeOthers(work, {
    namespaces: new Set(wanted.map(({ role }) => role.metadata.namespace ?? '')),
    everywhere: everywhere !== undefined,
  })
  if (!isNeeded) await dropFinalizer(env.client, finalizer(registry), { signal, clock: env.clock })
}

/** Removes them all, then the finalizer; also one that another operator left behind. */
export async function removeForeignAccess(work: Work): Promise<void> {
  await withdrawForeignAccess(work, undefined)
  granted.get(work.env.caches)?.delete(formatKey(keyOf(work.registry)))
}

function accessFor({ registry, env }: Work, scope: ExportScope | undefined) {
  const place = placeOf(registry)
  const wanted = foreignAccess(place, scope)
  const everywhere = clusterAccess(place, scope, env.settings.registryExport.clusterRole ?? '')
  return { wanted, everywhere, isNeeded: wanted.length > 0 || everywhere !== undefined }
}

async function removeOthers(work: Work, kept: { namespaces: ReadonlySet<string>; everywhere: boolean }): Promise<void> {
  const { registry, env } = work
  const name = foreignName(placeOf(registry))
  const made = grantedTo(work)
  const isOver = ({ metadata }: KubeObject) =>
    metadata.name === name && !kept.namespaces.has(metadata.namespace ?? '') && !made.has(metadata.namespace ?? '')
  for (const binding of env.caches.of(roleBindingCache).list().filter(isOver)) await remove(work, roleBindings, binding)
  for (const role of env.caches.of(roleCache).list().filter(isOver)) await remove(work, roles, role)
  for (const namespace of [...made].filter((each) => !kept.namespaces.has(each))) {
    await removeLive(work, roleBindings, { namespace, name })
    await removeLive(work, roles, { namespace, name })
    made.delete(namespace)
  }
  if (!kept.everywhere) await removeEverywhere(work, name)
}

/** By operator: registries whose binding of an earlier operator, with other settings, was looked for. */
const lookedFor = new WeakMap<object, Set<string>>()

/** Without "*" in the chart value the operator may not do it, and the ClusterRole that the binding refers to is gone. Then one try is enough. */
async function removeEverywhere(work: Work, name: string): Promise<void> {
  const { caches, settings } = work.env
  if (settings.registryExport.namespaces !== 'all') {
    const seen = lookedFor.get(caches) ?? new Set<string>()
    if (seen.has(name)) return
    lookedFor.set(caches, seen.add(name))
  }
  try {
    await removeLive(work, clusterRoleBindings, { name })
  } catch (error) {
    if (!isForbidden(error)) throw error
    work.env.log.info('a ClusterRoleBinding of an earlier export cannot be removed; it grants nothing', { name })
  }
}

async function removeLive<T extends KubeObject>(work: Work, type: ResourceType<T>, key: ObjectKey): Promise<void> {
  const live = await work.env.client.tryGet(type, key, { signal: work.signal })
  if (live !== undefined) await remove(work, type, live)
}

async function ensure<T extends KubeObject>(
  { env, signal }: Work,
  { type, object, live }: { type: ResourceType<T>; object: T; live: T | undefined },
): Promise<void> {
  if (live !== undefined && (!isOurs(live) || covers(live, object))) return
  await env.client.apply(type, object, { fieldManager: FIELD_MANAGER, force: true, signal })
}

async function remove<T extends KubeObject>({ env, signal }: Work, type: ResourceType<T>, live: T): Promise<void> {
  if (!isOurs(live)) return
  try {
    await env.client.delete(type, keyOf(live), { preconditions: { uid: live.metadata.uid }, signal })
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}

function isOurs({ metadata }: KubeObject): boolean {
  return metadata.labels?.[MANAGED_BY_LABEL] === MANAGED_BY
}

function placeOf({ metadata }: MCPRegistry): { name: string; namespace: string } {
  return { name: metadata.name, namespace: metadata.namespace ?? '' }
}
