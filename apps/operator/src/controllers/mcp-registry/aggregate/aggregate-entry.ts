import type { Contribution } from '@thv/catalog/merge/merge-documents'
import { ShardedMerge } from '@thv/catalog/shards/sharded-merge'
import { MCPRegistryReason, REGISTRY_PRIORITY_ANNOTATION } from '@thv/resources/kinds/mcp-registry/constants'
import type { CanonicalRegistryEntry } from '@thv/resources/kinds/mcp-registry/normalise'
import type { ReadMap } from './contribution-reader.ts'

/** The result of one entry's selector. */
export interface EntryAggregate {
  /** Name of the entry of spec.registries. */
  readonly entry: string
  readonly maps: readonly MapResult[]
  readonly servers: number
  /** Undefined: the data that are there stay, for the reason given. */
  readonly texts: readonly (string | undefined)[] | undefined
  readonly refused?: { readonly reason: string; readonly message: string }
}

export interface MapResult {
  readonly name: string
  readonly servers: number
  readonly error?: string
}

/** Merges what the selected ConfigMaps hold. `standing`: the last merge of this entry, which makes a small change cheap. */
export function aggregateEntry(entry: CanonicalRegistryEntry, maps: readonly ReadMap[], standing = new ShardedMerge()): EntryAggregate {
  const strategy = entry.configMapSelector?.conflictStrategy ?? 'prefix'
  const contributions = maps.flatMap(({ name, annotations, reading }): Contribution[] =>
    reading.ok ? [{ name, priority: priorityOf(annotations), document: reading.document }] : [],
  )
  const merge = standing.merge(contributions, { format: entry.format, strategy, filter: entry.filter })
  const dropped = merge.kind === 'merged' ? merge.dropped : []
  const results = maps.map((map) => mapResult(map, dropped))
  const common = { entry: entry.name, maps: results }
  if (merge.kind === 'conflict')
    return {
      ...common,
      servers: 0,
      texts: undefined,
      refused: {
        reason: MCPRegistryReason.NameConflict,
        message: `${entry.name}: several ConfigMaps define ${listed(merge.names)}: rename these, or set conflictStrategy to prefix or priority. The last good data is served`,
      },
    }
  if (maps.length > 0 && contributions.length === 0)
    return {
      ...common,
      servers: 0,
      texts: undefined,
      refused: {
        reason: MCPRegistryReason.InvalidData,
        message: `${entry.name}: none of the ${maps.length} selected ConfigMaps is valid: status.configMaps says why. The last good data is served`,
      },
    }
  const { sharding } = merge
  if (!sharding.ok)
    return {
      ...common,
      servers: 0,
      texts: undefined,
      refused: {
        reason: MCPRegistryReason.AggregateTooLarge,
        message: `${entry.name}: ${sharding.bytes} bytes do not fit into 16 ConfigMaps: filter, or use a git or api source. The last good data is served`,
      },
    }
  return { ...common, servers: merge.servers, texts: sharding.texts }
}

function mapResult({ name, reading }: ReadMap, dropped: readonly { contribution: string; entry: string; message: string }[]): MapResult {
  if (!reading.ok) return { name, servers: 0, error: reading.problem }
  const problems = [
    ...reading.problems.map(({ entry, message }) => `${entry} ${message}`),
    ...dropped.filter(({ contribution }) => contribution === name).map(({ entry, message }) => `${entry} ${message}`),
  ]
  const servers = reading.document.entries.length - dropped.filter(({ contribution }) => contribution === name).length
  if (problems.length === 0) return { name, servers }
  return { name, servers, error: `${problems.length} left out: ${listed(problems)}` }
}

/** An annotation that is no integer counts as none. */
export function priorityOf(annotations: Readonly<Record<string, string>>): number {
  const text = annotations[REGISTRY_PRIORITY_ANNOTATION]
  return text !== undefined && /^-?\d{1,9}$/.test(text) ? Number(text) : 0
}

const MAX_LISTED = 10

export function listed(names: readonly string[]): string {
  const more = names.length - MAX_LISTED
  return more > 0 ? `${names.slice(0, MAX_LISTED).join(', ')} and ${more} more` : names.join(', ')
}
