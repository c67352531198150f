import { ThvError } from '@thv/kernel/errors'
import type { DocumentProblem } from '../../catalog-entry.ts'
import { quote } from '../../problems.ts'
import type { FetchedEntry, FetchProblem } from '../fetch/registry-handler.ts'

/** Where the entries of one source gather, from however many files or pages. */
export interface EntryCollector {
  readonly entries: readonly FetchedEntry[]
  /** Reported problems; bounded, with a last one that says so. */
  readonly problems: readonly FetchProblem[]
  /** Entries that were not taken. */
  readonly dropped: number
  /** The first of a name and version is taken; an equal one is no problem. Throws `source_limit` when there are more entries than allowed. */
  add(entry: FetchedEntry, place: string): void
  drop(place: string, problems: readonly DocumentProblem[]): void
  /** A file, of several. */
  leaveOut(file: string, message: string): void
  warn(place: string, problems: readonly DocumentProblem[]): void
}

const MAX_PROBLEMS = 10_000

export function createEntryCollector(maxEntries: number): EntryCollector {
  const entries: FetchedEntry[] = []
  const problems: FetchProblem[] = []
  /** Their texts, by name and version. */
  const seen = new Map<string, string>()
  let dropped = 0

  function tell(place: string, severity: FetchProblem['severity'], found: readonly DocumentProblem[]): void {
    for (const { pointer, message } of found) {
      if (problems.length < MAX_PROBLEMS) problems.push({ entry: place, pointer, message, severity })
      else if (problems.length === MAX_PROBLEMS)
        problems.push({ entry: '', pointer: '', message: `there are more problems than the ${MAX_PROBLEMS} listed`, severity: 'warning' })
    }
  }

  function drop(place: string, found: readonly DocumentProblem[]): void {
    count()
    dropped += 1
    tell(place, 'dropped', found)
  }

  function count(): void {
    if (entries.length + dropped >= maxEntries) throw new ThvError('source_limit', `the source has more than ${maxEntries} entries`)
  }

  return {
    entries,
    problems,
    get dropped() {
      return dropped
    },
    drop,
    leaveOut: (file, message) => tell(file, 'dropped', [{ pointer: '', message }]),
    warn: (place, found) => tell(place, 'warning', found),
    add(entry, place) {
      const { name, version } = entry
      const identity = `${name}\n${version}`
      const known = seen.get(identity)
      if (known === entry.text) return // files of one folder that repeat an entry while it moves between them
      if (known !== undefined) {
        drop(place, [{ pointer: '', message: `${quote(name)} ${quote(version)} is there already; the first one counts` }])
        return
      }
      count()
      seen.set(identity, entry.text)
      entries.push(entry)
    },
  }
}
