import { type Conditions, done, type ObjectKey, type Outcome, type ReconcileContext, writeStatus } from '@thv/kube'
import { MCPServerEntryCondition } from '@thv/resources/kinds/mcp-server-entry/constants'
import { type MCPServerEntry, mcpServerEntryType } from '@thv/resources/kinds/mcp-server-entry/schema'
import { transitionEvents } from '../../deployment/status/conditions.ts'
import type { Env } from '../../environment.ts'
import { loadLookup } from '../../references/load-lookup.ts'
import { referencesOfServerEntry } from '../../references/references.ts'
import { cache } from './cache.ts'
import { entryStatus } from './status.ts'

/**
 * Says whether a VirtualMCPServer can use the entry. It makes no object, calls no server and holds no deletion; a change of a referenced object wakes it
 * again.
 */
export async function reconcileMcpServerEntry(key: ObjectKey, env: Env, { signal }: ReconcileContext): Promise<Outcome> {
  const entry = env.caches.of(cache).get(key)
  if (entry === undefined || entry.metadata.deletionTimestamp !== undefined) return done
  const { namespace = '' } = key
  const lookup = await loadLookup(env, { namespace, references: referencesOfServerEntry(entry) }, signal)

  let before: Conditions = []
  let after: Conditions = []
  const { written, object } = await writeStatus(
    env.client,
    { type: mcpServerEntryType, key, cached: entry },
    {
      mutate(current) {
        // References of a newer version were not looked up; its event is under way.
        if (!isSameSpec(current, entry)) return undefined
        const status = entryStatus(current, { lookup, settings: env.settings, now: env.clock.now() })
        before = toldBy(current.status)
        after = toldBy(status)
        return status
      },
      signal,
      clock: env.clock,
    },
  )
  if (written && object !== undefined) for (const event of transitionEvents(before, after)) env.events.record(object, event)
  return done
}

function isSameSpec(a: MCPServerEntry, b: MCPServerEntry): boolean {
  return a.metadata.uid === b.metadata.uid && a.metadata.generation === b.metadata.generation
}

/** Ready says the same as Valid: one event is enough. */
function toldBy(status: MCPServerEntry['status']): Conditions {
  const conditions = (status?.conditions ?? []) as Conditions
  return conditions.filter(({ type }) => type !== MCPServerEntryCondition.Ready)
}
