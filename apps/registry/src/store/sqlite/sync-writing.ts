import { ThvError } from '@thv/kernel/errors'
import { type Lease, type SyncedEntry, type SyncOutcome, type SyncStatus, UNCHANGED_MESSAGE } from '../registry-store.ts'
import type { Draft, SourceRow } from './draft.ts'
import type { EntryTable } from './entry-table.ts'

type Changed = Extract<SyncOutcome, { kind: 'changed' }>

const MAX_PROBLEMS = 100

/** Writes entries and status, inside the transaction of the draft. `at`: when the attempt ended. */
export function writeChanged(draft: Draft, table: EntryTable, work: { source: SourceRow; outcome: Changed; at: string }): void {
  const { source, outcome, at } = work
  let more = 0
  for (const entry of outcome.upserts) more += upsert(draft, table, source.id, entry)
  for (const { name, version } of outcome.gone) {
    const old = table.find(source.id, name, version)
    if (!old || old.status === 'deleted') continue
    const { time } = draft
    table.update({ ...old, status: 'deleted', status_message: null, updated_at: time, status_changed_at: time, revision: draft.revision })
    more--
  }
  const { hash, message, problems, problemCount, state } = outcome
  const sync: SyncStatus = {
    phase: 'complete',
    attemptCount: 0,
    lastAttempt: at,
    lastSuccess: at,
    serverCount: source.sync.serverCount + more,
    message,
    problems: problems.slice(0, MAX_PROBLEMS),
    problemCount,
    hash,
  }
  draft.sources.set(source.config.name, { ...source, sync, state })
  draft.keep()
}

/** After an attempt that brought nothing to write. */
export function afterAttempt(source: SourceRow, outcome: Exclude<SyncOutcome, Changed>, at: string): SourceRow {
  const { sync } = source
  if (outcome.kind === 'failed') {
    return { ...source, sync: { ...sync, phase: 'failed', attemptCount: sync.attemptCount + 1, lastAttempt: at, message: outcome.message } }
  }
  return {
    ...source,
    state: outcome.state,
    sync: {
      ...sync,
      phase: 'complete',
      attemptCount: 0,
      lastAttempt: at,
      lastSuccess: at,
      message: UNCHANGED_MESSAGE,
      ...(outcome.problems && { problems: outcome.problems.slice(0, MAX_PROBLEMS), problemCount: outcome.problemCount ?? 0 }),
    },
  }
}

export function leaseLost({ source }: Lease): ThvError {
  return new ThvError('lease_lost', `the lease on source ${source} was lost; nothing of this sync was written`)
}

function claimsOf({ claims }: SyncedEntry, stored: string | null): string | null {
  if (claims === undefined) return stored
  return claims === null ? null : JSON.stringify(claims)
}

/** Gives by how many the entries that are served have become more. */
function upsert(draft: Draft, table: EntryTable, sourceId: number, entry: SyncedEntry): number {
  const { name, version, text, hash, status } = entry
  const old = table.find(sourceId, name, version)
  if (old && old.hash === hash && old.status === status) return 0
  const { time } = draft
  const written = {
    source_id: sourceId,
    name,
    version,
    hash,
    status,
    status_message: entry.statusMessage ?? null,
    published_at: entry.publishedAt ?? old?.published_at ?? time,
    updated_at: time,
    status_changed_at: old?.status === status ? old.status_changed_at : time,
    claims: claimsOf(entry, old?.claims ?? null),
    revision: draft.revision,
  }
  if (old) table.update({ ...written, id: old.id }, text)
  else table.insert({ ...written, text })
  return Number(status !== 'deleted') - Number(old !== undefined && old.status !== 'deleted')
}
