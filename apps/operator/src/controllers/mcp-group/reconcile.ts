import {
  done,
  dropFinalizer,
  formatKey,
  type ObjectKey,
  type Outcome,
  type ReconcileContext,
  type ResourceType,
  writeStatus,
} from '@thv/kube'
import { MCP_GROUP_FINALIZER } from '@thv/resources/kinds/mcp-group/constants'
import { type MCPGroup, mcpGroupType } from '@thv/resources/kinds/mcp-group/schema'
import type { Env } from '../../environment.ts'
import { REFERENCE_INDEXES } from '../../references/references.ts'
import { groupStatus } from './status.ts'

const type = mcpGroupType as ResourceType<MCPGroup>

/**
 * Lists who names the group. Members watch their group and say themselves when it is gone, so deletion needs no finalizer; one that
 * another operator left behind is taken off.
 */
export async function reconcileMcpGroup(key: ObjectKey, env: Env, { signal }: ReconcileContext): Promise<Outcome> {
  const group = env.caches.groups.get(key)
  if (group === undefined) return done
  if (group.metadata.deletionTimestamp !== undefined) {
    await dropFinalizer(env.client, { type, object: group, name: MCP_GROUP_FINALIZER }, { signal })
    return done
  }
  const members = membersOf(key, env)
  await writeStatus(
    env.client,
    { type, key, cached: group },
    { mutate: (current) => groupStatus(current, members, env.clock.now()), signal, clock: env.clock },
  )
  return done
}

function membersOf(key: ObjectKey, { caches }: Env) {
  const id = formatKey(key)
  const names = (objects: readonly { metadata: { name: string; deletionTimestamp?: string } }[]) =>
    objects.filter(({ metadata }) => metadata.deletionTimestamp === undefined).map(({ metadata }) => metadata.name)
  return {
    servers: names(caches.servers.byIndex(REFERENCE_INDEXES.groups, id)),
    remoteProxies: names(caches.remoteProxies.byIndex(REFERENCE_INDEXES.groups, id)),
    serverEntries: names(caches.serverEntries.byIndex(REFERENCE_INDEXES.groups, id)),
  }
}
