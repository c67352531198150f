import { ThvError } from '@thv/kernel/errors'
import type { EntryCollector } from '../format/entry-collector.ts'

/**
 * A source that has entries and not one that can be used is broken, or read in a wrong format: what it had before stays. One without any
 * entry is empty on purpose.
 */
export function refuseUnusable(into: Pick<EntryCollector, 'entries' | 'problems' | 'dropped'>, { files, badFiles }: FileCounts): void {
  if (into.entries.length > 0) return
  const first = into.problems.find(({ severity }) => severity === 'dropped') ?? into.problems[0]
  const where = first === undefined ? '' : ` The first problem: ${first.entry}${first.pointer}: ${first.message}`
  if (into.dropped > 0) throw new ThvError('source_failed', `none of the ${into.dropped} entries can be used.${where}`)
  if (badFiles > 0 && badFiles === files) throw new ThvError('source_failed', `none of the ${files} files can be used.${where}`)
}

export interface FileCounts {
  readonly files: number
  readonly badFiles: number
}
