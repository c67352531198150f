import { ThvError } from '@thv/kernel/errors'
import { createEntryCollector, type EntryCollector } from './entry-collector.ts'
import type { EntryReading } from './read-entry.ts'
import type { FetchedEntry } from './registry-handler.ts'

/** Entries of many pages. While they are read the other registry goes on: an entry that comes twice counts as it came last. */
export interface PageCollector extends Pick<EntryCollector, 'entries' | 'problems' | 'dropped'> {
  /** False: nothing of the page is new. */
  take(readings: readonly EntryReading[]): boolean
  /** How many pages in a row had nothing new. */
  readonly idlePages: number
}

export function createPageCollector(maxEntries: number): PageCollector {
  const told = createEntryCollector(maxEntries)
  const byIdentity = new Map<string, FetchedEntry>()
  const badOnes = new Set<string>()
  let idlePages = 0
  let index = 0

  function takeOne({ entry, name, problems }: EntryReading): boolean {
    const place = name ?? `servers/${index}`
    index += 1
    if (entry === undefined) {
      const identity = JSON.stringify([name, problems])
      const fresh = !badOnes.has(identity)
      badOnes.add(identity)
      if (fresh) told.drop(place, problems)
      return fresh
    }
    const identity = `${entry.name}\n${entry.version}`
    const known = byIdentity.has(identity)
    byIdentity.set(identity, entry)
    if (!known) {
      if (byIdentity.size > maxEntries) throw new ThvError('source_limit', `the source has more than ${maxEntries} entries`)
      if (problems.length > 0) told.warn(place, problems)
    }
    return !known
  }

  return {
    take(readings) {
      const fresh = readings.map(takeOne).includes(true)
      idlePages = fresh ? 0 : idlePages + 1
      return fresh
    },
    get entries() {
      return [...byIdentity.values()]
    },
    get problems() {
      return told.problems
    },
    get dropped() {
      return told.dropped
    },
    get idlePages() {
      return idlePages
    },
  }
}
