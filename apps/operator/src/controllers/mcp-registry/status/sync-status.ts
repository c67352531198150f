import type { SourceReport, SourcesReport } from '@thv/catalog/status/sources-report'
import { configHash } from '@thv/kernel/config-hash'
import type { ConditionUpdate } from '@thv/kube'
import { MCPRegistryCondition, MCPRegistryReason } from '@thv/resources/kinds/mcp-registry/constants'
import type { MCPRegistry } from '@thv/resources/kinds/mcp-registry/schema'

export type SyncStatus = NonNullable<NonNullable<MCPRegistry['status']>['syncStatus']>

/** The state of the data, wherever it was found out. */
export interface SyncFacts {
  readonly status: SyncStatus | undefined
  readonly conditions: readonly ConditionUpdate[]
  /** No source has ever brought data, and none is on its way. */
  readonly neverSucceeded: boolean
  /** The trigger that is done. */
  readonly doneTrigger?: string | undefined
  /** Something is under way: look again soon. */
  readonly pending: boolean
  /** When the next sync of the operator is due. */
  readonly nextMs?: number | undefined
}

/** From the report of the registry server. Undefined: no pod answers; what was known stays. */
export function syncFactsOf(report: SourcesReport | undefined, before: SyncStatus | undefined): SyncFacts {
  if (report === undefined)
    return {
      status: before,
      conditions: [unknown('the state of the sources cannot be read: no API pod answers on its internal port')],
      neverSucceeded: false,
      pending: true,
    }
  const { sources, syncRequest } = report
  const failed = sources.filter(({ phase }) => phase === 'failed')
  const under = sources.filter(({ phase }) => phase === 'pending' || phase === 'syncing')
  return {
    status: statusOf(report, { failed, under }),
    conditions: [syncCondition({ failed, under, count: sources.length }), dataCondition(sources)],
    neverSucceeded: sources.length > 0 && sources.every(({ phase, lastSuccess }) => phase === 'failed' && lastSuccess === undefined),
    doneTrigger: syncRequest?.done ? syncRequest.value : undefined,
    pending: under.length > 0 || syncRequest?.done === false,
  }
}

/** Sources that a message names: a server may have thousands, and a condition holds 32 KiB. */
const MAX_TOLD = 5

interface Grouped {
  readonly failed: readonly SourceReport[]
  readonly under: readonly SourceReport[]
}

function statusOf({ sources }: SourcesReport, { failed, under }: Grouped): SyncStatus {
  const newest = (times: readonly (string | undefined)[]) =>
    times
      .filter((time) => time !== undefined)
      .sort()
      .at(-1)
  const lastAttempt = newest(sources.map((source) => source.lastAttempt))
  const lastSyncTime = newest(sources.map((source) => source.lastSuccess))
  const hashes = sources.map(({ name, hash }) => [name, hash ?? ''])
  return {
    phase: failed.length > 0 ? 'Failed' : under.length > 0 ? 'Syncing' : 'Complete',
    message: failed.length > 0 ? failedMessage(failed, sources.length) : `${sources.length} sources`,
    attemptCount: Math.max(0, ...sources.map(({ attemptCount }) => attemptCount)),
    ...(lastAttempt !== undefined && { lastAttempt }),
    ...(lastSyncTime !== undefined && { lastSyncTime }),
    lastSyncHash: configHash(hashes),
    serverCount: sources.reduce((sum, { serverCount }) => sum + serverCount, 0),
  }
}

function syncCondition({ failed, under, count }: Grouped & { count: number }): ConditionUpdate {
  const type = MCPRegistryCondition.SyncSuccessful
  if (failed.length > 0)
    return { type, status: 'False', reason: MCPRegistryReason.PartialSyncFailure, message: failedMessage(failed, count) }
  if (under.length > 0)
    return { type, status: 'Unknown', reason: MCPRegistryReason.SyncInProgress, message: 'sources are being read for the first time' }
  return { type, status: 'True', reason: MCPRegistryReason.SyncComplete, message: 'all sources have been read' }
}

function dataCondition(sources: readonly SourceReport[]): ConditionUpdate {
  const type = MCPRegistryCondition.DataValid
  const bad = sources.filter(({ problemCount }) => problemCount > 0)
  if (bad.length === 0) return { type, status: 'True', reason: MCPRegistryReason.DataValid, message: 'all entries can be used' }
  const told = bad.slice(0, MAX_TOLD).map(({ name, problemCount }) => `${name}: ${problemCount} problems`)
  const more = bad.length - told.length
  const message = `${told.join(', ')}${more > 0 ? ` and ${more} more` : ''}; see the log of the API`
  return { type, status: 'False', reason: MCPRegistryReason.InvalidData, message }
}

function failedMessage(failed: readonly SourceReport[], count: number): string {
  const told = failed.slice(0, MAX_TOLD).map(({ name, message }) => `${name}: ${message}`)
  const more = failed.length - told.length
  return `${failed.length} of ${count} sources failed: ${told.join('; ')}${more > 0 ? `; and ${more} more` : ''}`
}

function unknown(message: string): ConditionUpdate {
  return { type: MCPRegistryCondition.SyncSuccessful, status: 'Unknown', reason: MCPRegistryReason.StatusNotReadable, message }
}
