import type { Row } from './catalog-row.ts'
import type { Group } from './version-group.ts'

/** One version of a name as a registry serves it. */
export interface Shown {
  readonly row: Row
  /** Epoch ms; the row's own unless something else changed what is served. */
  readonly updatedMs: number
  /** The row's source still has it, the registry has not. */
  readonly gone: boolean
}

/**
 * Which versions of one name a registry has. `groups` are those of its sources that the reader may see, first source first.
 *
 * The winner is the first source with a version that is not deleted (if all are deleted: the first source). Its versions are the name's;
 * what the others have is hidden. A reader of changes (`updated_since`) has to hear of each version that appears, changes or goes when
 * the winner changes, so:
 * - versions that only others have are shown as deleted;
 * - a winner behind other sources took over when the last version of those was deleted: nothing of it is older than that;
 * - a winner before other sources took over no later than its oldest living version is: what was hidden by it is no older than that.
 * Times err to the late side: an entry may be reported once more, none is lost.
 */
export function shownVersions(groups: readonly Group[], order: (a: string, b: string) => number): Shown[] {
  const living = groups.findIndex((group) => group.rows.some((row) => !row.deleted))
  const won = Math.max(living, 0)
  const winner = groups[won]
  if (!winner) return []
  const tookOver = newest(groups.slice(0, won))
  const hidSince = living === -1 ? 0 : oldestLiving(winner)
  const shown = new Map<string, Shown>()
  for (const row of winner.rows) shown.set(row.version, { row, updatedMs: Math.max(row.updatedMs, tookOver), gone: false })
  for (const [place, group] of groups.entries()) {
    if (group === winner) continue
    for (const row of group.rows) {
      const updatedMs = place < won ? row.updatedMs : Math.max(row.updatedMs, hidSince)
      const known = shown.get(row.version)
      if (!known) shown.set(row.version, { row, updatedMs, gone: !row.deleted })
      else if (known.row.deleted || known.gone) shown.set(row.version, { ...known, updatedMs: Math.max(known.updatedMs, updatedMs) })
    }
  }
  return [...shown.values()].sort((a, b) => order(a.row.version, b.row.version))
}

function newest(groups: readonly Group[]): number {
  return groups.reduce((time, group) => group.rows.reduce((t, row) => Math.max(t, row.updatedMs), time), 0)
}

function oldestLiving(group: Group): number {
  return group.rows.reduce((time, row) => (row.deleted ? time : Math.min(time, row.updatedMs)), Number.POSITIVE_INFINITY)
}
