import { done, dropFinalizer, formatKey, type ObjectKey, type Outcome, type ReconcileContext, writeStatus } from '@thv/kube'
import { MCP_GROUP_FINALIZER } from '@thv/resources/kinds/mcp-group/constants'
import type { MCPGroup } from '@thv/resources/kinds/mcp-group/schema'
import type { Env } from '../../environment.ts'
import { groupCache } from '../../references/referenced-caches.ts'
import { groupStatus, type Members, unlistedStatus } from './status.ts'

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
  const problems = listingProblems(key, env)
  // Not examined yet: a source wakes the group when the members are listed, and until then its status says what it said before.
  if (problems === 'pending') return done
  const members = membersOf(key, env)
  const mutate = (current: MCPGroup) =>
    problems.length > 0 ? unlistedStatus(current, problems, env.clock.now()) : groupStatus(current, members, env.clock.now())
  await writeStatus(env.client, { type, key, cached: group }, { mutate, signal, clock: env.clock })
  return done
}

/** Why members of some kind cannot be listed. */
function listingProblems({ namespace }: ObjectKey, { caches }: Env): 'pending' | readonly string[] {
  const kinds = caches
    .referring('groups')
    .filter(({ kind }) => isMember(kind))
    .map(({ kind, cache }) => ({ kind, listing: cache.listing(namespace) }))
  const problems = kinds.flatMap(({ kind, listing }) =>
    listing.state === 'rejected' ? [`objects of kind ${kind} cannot be listed: ${listing.error.message}`] : [],
  )
  return problems.length === 0 && kinds.some(({ listing }) => listing.state === 'pending') ? 'pending' : problems
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
