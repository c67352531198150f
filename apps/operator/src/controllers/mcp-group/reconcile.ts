import { done, dropFinalizer, formatKey, type ObjectKey, type Outcome, type ReconcileContext, writeStatus } from '@thv/kube'
import { MCP_GROUP_FINALIZER } from '@thv/resources/kinds/mcp-group/constants'
import type { Env } from '../../environment.ts'
import { groupCache } from '../../references/referenced-caches.ts'
import { groupStatus, type Members } from './status.ts'

const { type } = groupCache

/**
 * Lists who names the group. Members watch their group and say themselves when it is gone, so deletion needs no finalizer; one that
 * another operator left behind is taken off.
 */
export async function reconcileMcpGroup(key: ObjectKey, env: Env, { signal }: ReconcileContext): Promise<Outcome> {
  const group = env.caches.of(groupCache).get(key)
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

/** The kinds that belong to a group, by member of its status. */
const MEMBER_KINDS = { servers: 'MCPServer', remoteProxies: 'MCPRemoteProxy', serverEntries: 'MCPServerEntry' } as const

export function isMember(kind: string): boolean {
  return Object.values<string>(MEMBER_KINDS).includes(kind)
}

function membersOf(key: ObjectKey, { caches }: Env): Members {
  const referring = caches.referring('groups')
  const names = (kind: string) =>
    referring
      .filter((each) => each.kind === kind)
      .flatMap((each) => each.objects(formatKey(key)))
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .map(({ metadata }) => metadata.name)
  return {
    servers: names(MEMBER_KINDS.servers),
    remoteProxies: names(MEMBER_KINDS.remoteProxies),
    serverEntries: names(MEMBER_KINDS.serverEntries),
  }
}
