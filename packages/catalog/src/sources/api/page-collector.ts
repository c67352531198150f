import { hash } from 'node:crypto'
import { ThvError } from '@thv/kernel/errors'
import type { FetchedEntry } from '../fetch/registry-handler.ts'
import { createEntryCollector, type EntryCollector } from '../format/entry-collector.ts'
import type { EntryReading } from '../format/read-entry.ts'

/** Entries of many pages. While they are read the other registry goes on: an entry that comes twice counts as it came last. */
export interface PageCollector extends Pick<EntryCollector, 'entries' | 'problems' | 'dropped'> {
  take(reading: EntryReading): void
  /** After each page: how many in a row, this one included, had nothing new. */
  endPage(): number
}

export function createPageCollector(maxEntries: number): PageCollector {
  const told = createEntryCollector(maxEntries)
  const byIdentity = new Map<string, FetchedEntry>()
  const badOnes = new Set<string>()
  let fresh = false
  let idlePages = 0
  let index = 0

  /** Whether it is new. */
  function takeOne({ entry, name, problems }: EntryReading): boolean {
    const place = name ?? `servers/${index}`
    index += 1
    if (entry === undefined) {
      // Of bad ones there may be as many as there is room for, each with a hundred problems.
      const identity = hash('sha256', JSON.stringify([name, problems]), 'base64url')
      const known = badOnes.has(identity)
      badOnes.add(identity)
      if (!known) told.drop(place, problems)
      return !known
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
    take(reading) {
      if (takeOne(reading)) fresh = true
    },
    endPage() {
      idlePages = fresh ? 0 : idlePages + 1
      fresh = false
      return idlePages
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
  }
}
