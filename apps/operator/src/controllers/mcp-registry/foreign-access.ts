import {
  clusterRoleBindings,
  dropFinalizer,
  ensureFinalizer,
  hasFinalizer,
  isNotFound,
  type KubeObject,
  keyOf,
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
import { clusterAccess, foreignAccess, foreignName } from './objects/export-access.ts'

interface Work {
  readonly registry: MCPRegistry
  readonly env: Env
  readonly signal: AbortSignal
}

const finalizer = (registry: MCPRegistry) => ({ type, object: registry, name: MCP_REGISTRY_FINALIZER })

/**
 * Rights in other namespaces, which have no owner: a finalizer, set only while there are some, removes them with the registry. Objects
 * of somebody else with such a name are left alone.
 */
export async function ensureForeignAccess(work: Work, scope: ExportScope | undefined): Promise<void> {
  const { registry, env, signal } = work
  const place = placeOf(registry)
  const wanted = foreignAccess(place, scope)
  const everywhere = clusterAccess(place, scope, env.settings.registryExport.clusterRole ?? '')
  const isNeeded = wanted.length > 0 || everywhere !== undefined
  if (!isNeeded && !hasFinalizer(registry, MCP_REGISTRY_FINALIZER)) return
  // Before the first of them, so that none can be left behind.
  if (isNeeded) await ensureFinalizer(env.client, finalizer(registry), { signal, clock: env.clock })
  for (const { role, binding } of wanted) {
    await ensure(work, { type: roles, object: role, live: env.caches.of(roleCache).get(keyOf(role)) })
    await ensure(work, { type: roleBindings, object: binding, live: env.caches.of(roleBindingCache).get(keyOf(binding)) })
  }
  if (everywhere !== undefined) {
    const live = await env.client.tryGet(clusterRoleBindings, { name: everywhere.metadata.name }, { signal })
    await ensure(work, { type: clusterRoleBindings, object: everywhere, live })
  }
  await removeOthers(work, {
    namespaces: new Set(wanted.map(({ role }) => role.metadata.namespace ?? '')),
    everywhere: everywhere !== undefined,
  })
  if (!isNeeded) await dropFinalizer(env.client, finalizer(registry), { signal, clock: env.clock })
}

/** Removes them all, then the finalizer; also one that another operator left behind. */
export async function removeForeignAccess(work: Work): Promise<void> {
  const { registry, env, signal } = work
  if (!hasFinalizer(registry, MCP_REGISTRY_FINALIZER)) return
  await removeOthers(work, { namespaces: new Set(), everywhere: false })
  await dropFinalizer(env.client, finalizer(registry), { signal, clock: env.clock })
}

async function removeOthers(work: Work, kept: { namespaces: ReadonlySet<string>; everywhere: boolean }): Promise<void> {
  const { registry, env, signal } = work
  const name = foreignName(placeOf(registry))
  const isOver = ({ metadata }: KubeObject) => metadata.name === name && !kept.namespaces.has(metadata.namespace ?? '')
  for (const binding of env.caches.of(roleBindingCache).list().filter(isOver)) await remove(work, roleBindings, binding)
  for (const role of env.caches.of(roleCache).list().filter(isOver)) await remove(work, roles, role)
  if (kept.everywhere || env.settings.registryExport.namespaces !== 'all') return
  const binding = await env.client.tryGet(clusterRoleBindings, { name }, { signal })
  if (binding !== undefined) await remove(work, clusterRoleBindings, binding)
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
